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

// requireKeep refuses to keep disks where the cloud cannot.
func (c *volumeClient) requireKeep(ctx context.Context, op string) *cloud.Error {
	able, err := c.canKeep(ctx, op)
	if err != nil || !able {
		return cmp.Or(err, refuse(op, cloud.Unsupported, "this cloud lacks keepDisks"))
	}
	return nil
}

// checkKept refuses disks of a new server that cannot be kept.
func (c *volumeClient) checkKept(ctx context.Context, op string, disks cloud.Disks) *cloud.Error {
	kept := keptOf(disks)
	if kept == "" {
		return nil
	}
	if len(kept) > maxMetadata {
		return refuse(op, cloud.Rejected, "the names of the disks that are kept have more than %d characters together, which this cloud takes for a new server", maxMetadata)
	}
	return c.requireKeep(ctx, op)
}

// keptOf returns the names of the disks that are kept, in the form of metadata of the server.
func keptOf(disks cloud.Disks) string { return strings.Join(disks.KeptNames(), ",") }

// keeps reports whether a disk that compute made with the server was to be kept.
func (s *server) keeps(disk string) bool {
	return slices.Contains(strings.Split(s.Metadata[keptKey], ","), disk)
}

// setKeep changes which disks of a server are kept when the server is deleted.
func (c *volumeClient) setKeep(ctx context.Context, op string, s *server, changes []cloud.SetDiskKeep) *cloud.Error {
	if len(changes) == 0 {
		return nil
	}
	if err := c.requireKeep(ctx, op); err != nil {
		return err
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

// keep changes whether a recorded disk of a server is kept. While compute deletes the volume with the server, the mark has no effect:
// it is set before, and removed after that.
func (c *volumeClient) keep(ctx context.Context, op string, s *server, v blockVolume, keep bool) *cloud.Error {
	if keep {
		if err := c.markKept(ctx, op, v, true); err != nil {
			return err
		}
	}
	if s.leavesVolume(v.ID) != keep {
		err := c.session.do(ctx, &call{
			about: aboutReach, service: compute, method: http.MethodPut, route: "compute/servers/{id}/os-volume_attachments/{id}",
			path: "servers/" + s.ID + "/os-volume_attachments/" + v.ID, op: op,
			body: map[string]any{"volumeAttachment": map[string]any{"volumeId": v.ID, "delete_on_termination": !keep}},
		})
		if err != nil {
			return err
		}
	}
	if keep {
		return nil
	}
	return c.markKept(ctx, op, v, false)
}

// markKept marks a volume as one that is kept, or not, unless that is so.
func (c *volumeClient) markKept(ctx context.Context, op string, v blockVolume, keep bool) *cloud.Error {
	marks := map[string]string{}
	if v.toKeep() != keep {
		marks[volumeKeptKey] = strconv.FormatBool(keep)
	}
	if keep && v.Metadata[volumeDeletedKey] != "" { // by an earlier deletion
		marks[volumeDeletedKey] = "kept"
	}
	if len(marks) == 0 {
		return nil
	}
	return c.annotate(ctx, op, v.ID, marks)
}

// toKeep reports whether the volume has the mark of one that is kept.
func (v blockVolume) toKeep() bool { return v.Metadata[volumeKeptKey] == volumeKept }

// leavesVolume reports whether compute shows that a volume of the server is not deleted with it.
func (s *server) leavesVolume(id string) bool {
	return slices.Contains(s.Volumes, attachedVolume{ID: id, DeleteOnTermination: false})
}

// isKept reports whether a disk of the server is kept when the server is deleted.
func (s *server) isKept(v blockVolume) bool {
	return v.toKeep() && s.leavesVolume(v.ID)
}
