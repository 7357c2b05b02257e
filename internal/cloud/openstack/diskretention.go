package openstack

import (
	"cmp"
	"context"
	"net/http"
	"slices"
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
func keptOf(disks cloud.Disks) string {
	var names []string
	for _, disk := range disks.List() {
		if disk.Keep {
			names = append(names, disk.Name)
		}
	}
	return strings.Join(names, ",")
}

// keeps reports whether a disk that compute made with the server was to be kept.
func (s *server) keeps(disk string) bool {
	return slices.Contains(strings.Split(s.Metadata[keptKey], ","), disk)
}

// setKeep sets of disks of a server whether they are kept when it is deleted. Which disk a volume is is recorded before: the volume of
// a create of which that is not recorded is known by the fact that it is deleted with the server.
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
	for _, change := range changes {
		v, attached := set.attached[change.Name]
		switch {
		case !attached:
			return refuse(op, cloud.Rejected, "the server has no %s", diskText(change.Name))
		case !slices.ContainsFunc(s.Volumes, func(a attachedVolume) bool { return a.ID == v.ID }):
			return refuse(op, cloud.Busy, "%s is being attached to the server, or detached from it", diskText(change.Name))
		case s.deletesVolume(v.ID) != change.Keep:
			continue
		case set.unrecorded[v.ID]:
			if err := c.record(ctx, op, s, v.ID, change.Name, v.Name == volumeName(s.Name, change.Name)); err != nil {
				return err
			}
		}
		if err := c.setDeletion(ctx, op, s.ID, v.ID, !change.Keep); err != nil {
			return err
		}
	}
	return nil
}

// deletesVolume reports whether a volume is deleted with the server.
func (s *server) deletesVolume(id string) bool {
	return slices.Contains(s.Volumes, attachedVolume{ID: id, DeleteOnTermination: true})
}

// setDeletion sets whether compute deletes a volume with its server.
func (c *volumeClient) setDeletion(ctx context.Context, op, serverID, id string, deleted bool) *cloud.Error {
	return c.session.do(ctx, &call{
		about: aboutReach, service: compute, method: http.MethodPut, route: "compute/servers/{id}/os-volume_attachments/{id}",
		path: "servers/" + serverID + "/os-volume_attachments/" + id, op: op,
		body: map[string]any{"volumeAttachment": map[string]any{"volumeId": id, "delete_on_termination": deleted}},
	})
}
