package openstack

import (
	"context"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

var _ cloud.DiskRemover = (*Client)(nil)

// releaseDisks records of the disks of a server that they are deleted with it. Compute deletes them with the server; one that it cannot
// delete is not confused with a volume that somebody has detached before.
func (c *Client) releaseDisks(ctx context.Context, op, id string) *cloud.Error {
	if usable, err := c.volumes.hasDisks(ctx, op); err != nil || !usable {
		return err
	}
	s, err := c.read(ctx, op, id)
	if err != nil || s.deleting() || len(s.Volumes) == 0 {
		return err
	}
	set, err := c.volumes.diskSetOf(ctx, op, s)
	switch {
	case err == nil:
	case cloud.Is(err, cloud.Forbidden, cloud.Unsupported): // compute deletes the volumes all the same
		return nil
	default:
		err.Detail = "looking for its disks: " + err.Detail
		return err
	}
	for disk, v := range set.attached {
		if v.Metadata[volumeDeletedKey] == id {
			continue
		}
		marks := map[string]string{volumeServerKey: id, volumeDiskKey: disk, volumeSelfKey: v.ID, volumeDeletedKey: id}
		if err := c.volumes.annotate(ctx, op, v.ID, marks); err != nil && !cloud.Is(err, cloud.NotFound, cloud.Rejected, cloud.Forbidden) {
			return err
		}
	}
	return nil
}

// DeleteDisks deletes the volumes of a server that is gone which compute left: those that the server had when its deletion began, and
// those that were being added to it. One that the service refuses to delete stays, such as one with a snapshot.
func (c *Client) DeleteDisks(ctx context.Context, serverID string) error {
	op := "delete the disks of server " + quote(serverID)
	ctx, end, failed := c.session.beginAbout(ctx, op, serverID)
	if failed != nil {
		return failed
	}
	defer end()
	if usable, err := c.volumes.hasDisks(ctx, op); err != nil || !usable {
		return asError(err)
	}
	listed, err := c.volumes.listOf(ctx, op, serverID)
	if err != nil {
		return err
	}
	var busy *cloud.Error
	for _, v := range listed {
		deleted := v.diskOf(serverID) != "" && (v.pending() || v.Metadata[volumeDeletedKey] == serverID)
		switch {
		case !deleted, len(v.Attachments) > 0 && !v.attachedTo(serverID):
		case slices.Contains(deletable, v.Status):
			if err := c.volumes.remove(ctx, op, v.ID); err != nil && !cloud.Is(err, cloud.Rejected, cloud.Forbidden) {
				return err
			}
		case v.attachedTo(serverID), v.pending() && slices.Contains(transient, v.Status), v.Status == "detaching":
			busy = refuse(op, cloud.Busy, "volume %s is in the status %s: it is deleted once it is available", v.ID, quote(v.Status))
		}
	}
	return asError(busy)
}
