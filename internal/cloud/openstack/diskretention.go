package openstack

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// canKeep reports whether servers can have disks that are kept when they are deleted, as far as it is known.
func (c *volumeClient) canKeep(ctx context.Context, op string) (bool, *cloud.Error) {
	usable, err := c.hasDisks(ctx, op)
	c.mu.Lock()
	defer c.mu.Unlock()
	return usable && c.keeps, err
}

// checkKept refuses disks of a new server that cannot be kept.
func (c *volumeClient) checkKept(ctx context.Context, op string, disks cloud.Disks) *cloud.Error {
	kept := keptOf(disks)
	if kept == "" {
		return nil
	}
	if able, err := c.canKeep(ctx, op); err != nil || !able {
		return cmp.Or(err, refuse(op, cloud.Unsupported, "this cloud lacks keepDisks"))
	}
	if len(kept) > maxMetadata {
		return refuse(op, cloud.Rejected, "the names of the disks that are kept have more than %d characters together, which this cloud takes for a new server", maxMetadata)
	}
	return nil
}

// keptOf returns the names of the disks that are kept, in the form of metadata of the server.
func keptOf(disks cloud.Disks) string { return strings.Join(disks.KeptNames(), ",") }

// keeps reports whether a disk that compute made with the server was to be kept.
func (s *server) keeps(disk string) bool {
	return slices.Contains(strings.Split(s.Metadata[keptKey], ","), disk)
}

// setKeep sets of disks of a server whether they are kept when it is deleted.
func (c *volumeClient) setKeep(ctx context.Context, op string, s *server, changes []cloud.SetDiskKeep) *cloud.Error {
	if len(changes) == 0 {
		return nil
	}
	if able, err := c.canKeep(ctx, op); err != nil || !able {
		return cmp.Or(err, refuse(op, cloud.Unsupported, "this cloud lacks keepDisks"))
	}
	set, err := c.diskSetOf(ctx, op, s)
	if err != nil {
		return err
	}
	c.forget(s)
	for _, change := range changes {
		v, attached := set.attached[change.Name]
		switch {
		case !attached:
			return refuse(op, cloud.Rejected, "the server has no %s", diskText(change.Name))
		case !slices.ContainsFunc(s.Volumes, func(a attachedVolume) bool { return a.ID == v.ID }):
			return refuse(op, cloud.Busy, "%s is being attached to the server, or detached from it", diskText(change.Name))
		case set.unrecorded[v.ID]:
			// A volume of a create is known by the fact that it is deleted with the server until it is recorded.
			if err := c.record(ctx, op, s, change.Name, v); err != nil {
				return err
			}
		}
		if err := c.keep(ctx, op, s, v, change.Keep); err != nil {
			return err
		}
	}
	return nil
}

// keep sets of a recorded disk of a server whether it is kept. The mark comes first: while compute deletes the volume with the server,
// the mark has no effect.
func (c *volumeClient) keep(ctx context.Context, op string, s *server, v blockVolume, keep bool) *cloud.Error {
	marks := map[string]string{}
	if (v.Metadata[volumeKeptKey] == volumeKept) != keep {
		marks[volumeKeptKey] = strconv.FormatBool(keep)
	}
	if keep && v.Metadata[volumeDeletedKey] != "" { // by an earlier deletion
		marks[volumeDeletedKey] = "kept"
	}
	if len(marks) > 0 {
		if err := c.annotate(ctx, op, v.ID, marks); err != nil {
			return err
		}
	}
	if s.leavesVolume(v.ID) == keep {
		return nil
	}
	return c.session.do(ctx, &call{
		about: aboutReach, service: compute, method: http.MethodPut, route: "compute/servers/{id}/os-volume_attachments/{id}",
		path: "servers/" + s.ID + "/os-volume_attachments/" + v.ID, op: op,
		body: map[string]any{"volumeAttachment": map[string]any{"volumeId": v.ID, "delete_on_termination": !keep}},
	})
}

// leavesVolume reports whether compute shows that a volume of the server is not deleted with it.
func (s *server) leavesVolume(id string) bool {
	return slices.Contains(s.Volumes, attachedVolume{ID: id, DeleteOnTermination: false})
}

// isKept reports whether a disk of the server is kept when the server is deleted.
func (s *server) isKept(v blockVolume) bool {
	return v.Metadata[volumeKeptKey] == volumeKept && s.leavesVolume(v.ID)
}
