package openstack

import (
	"context"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

var _ cloud.DiskRemover = (*Client)(nil)

// releaseDisks records in each disk of a server that it is deleted with the server. For a disk that is kept, it records only which disk
// it is.
// Compute deletes the volumes with the server; one that it cannot delete is not confused with a volume that somebody has detached
// before. That includes one that was detached after the server was restored from an earlier deletion; a deletion that failed leaves a
// server with an error.
func (c *Client) releaseDisks(ctx context.Context, op, id string) *cloud.Error {
	if usable, err := c.volumes.hasDisks(ctx, op); err != nil || !usable {
		return err
	}
	s, err := c.read(ctx, op, id)
	if err != nil || s.deleting() {
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
		if err := c.volumes.release(ctx, op, s, disk, v, set.unrecorded[v.ID]); err != nil {
			return err
		}
	}
	if s.state() == cloud.StateError {
		return nil
	}
	for _, id := range set.marked {
		if err := c.volumes.unmark(ctx, op, id); err != nil {
			return err
		}
	}
	return nil
}

// release records of an attached disk of a server that it is deleted with the server, unless it is kept or being detached.
func (c *volumeClient) release(ctx context.Context, op string, s *server, disk string, v blockVolume, unrecorded bool) *cloud.Error {
	marked, marks := v.Metadata[volumeDeletedKey] == s.ID, diskMarks(s.ID, disk, v.ID)
	switch {
	case s.isKept(v):
		if !marked && !unrecorded {
			return nil
		}
		marks[volumeDeletedKey] = "kept"
		return c.annotate(ctx, op, v.ID, marks)
	case s.state() != cloud.StateError && (v.Status == volumeAvailable || v.Status == "detaching"): // compute still shows it for a moment
		if marked {
			return c.unmark(ctx, op, v.ID)
		}
		return nil
	case marked:
		return nil
	}
	marks[volumeDeletedKey] = s.ID
	if err := c.annotate(ctx, op, v.ID, marks); err != nil && !cloud.Is(err, cloud.NotFound, cloud.Rejected, cloud.Forbidden) {
		return err
	}
	return nil
}

// unmark records that a volume, which somebody has detached, is not deleted with its server any more.
func (c *volumeClient) unmark(ctx context.Context, op, id string) *cloud.Error {
	if err := c.annotate(ctx, op, id, map[string]string{volumeDeletedKey: "restored"}); err != nil && err.Kind != cloud.NotFound {
		return err
	}
	return nil
}

// remainder is what compute still shows of a server whose deletion it accepted.
type remainder struct {
	// kept: the server is deleted, and the cloud keeps it so that it can be restored. restored: somebody has restored it.
	kept, restored bool
	// deletedLater are the ids of the volumes that compute deletes together with a server that is kept.
	deletedLater map[string]bool
}

// remainderOf returns what compute still shows of a server whose deletion it accepted. Most clouds show nothing.
func (c *Client) remainderOf(ctx context.Context, op, id string) (remainder, *cloud.Error) {
	s, err := c.readKept(ctx, op, id)
	switch {
	case err != nil && err.Kind == cloud.NotFound:
		return remainder{}, nil
	case err != nil:
		return remainder{}, err
	}
	left := remainder{kept: s.kept(), restored: s.state() != cloud.StateDeleting, deletedLater: map[string]bool{}}
	for _, v := range s.Volumes {
		left.deletedLater[v.ID] = left.kept && v.DeleteOnTermination
	}
	return left, nil
}

// DeleteDisks deletes the volumes of a server that is gone which compute left: those that the server had when its deletion began, and
// those that were being added to it. One that cannot be deleted stays, such as one with a snapshot. It fails if the account may not
// delete volumes. Volumes that compute deletes later, and those of a server that was restored, are left to compute.
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
	return asError(c.deleteLeft(ctx, op, serverID, listed))
}

// deleteLeft deletes those of the volumes recorded for a server that is gone which compute left.
func (c *Client) deleteLeft(ctx context.Context, op, serverID string, listed []blockVolume) (left *cloud.Error) {
	var of remainder
	if slices.ContainsFunc(listed, func(v blockVolume) bool { return v.attachedTo(serverID) }) {
		if of, left = c.remainderOf(ctx, op, serverID); left != nil {
			return left
		}
	}
	for _, v := range listed {
		deleted := v.diskOf(serverID) != "" && (v.pending() || v.Metadata[volumeDeletedKey] == serverID)
		switch {
		case !deleted, len(v.Attachments) > 0 && !v.attachedTo(serverID):
		case slices.Contains(deletable, v.Status):
			switch err := c.volumes.remove(ctx, op, v.ID); {
			case err == nil, err.Kind == cloud.Rejected:
			case err.Kind == cloud.Forbidden: // the account lacks the right
				left = err
			default:
				return err
			}
		case v.attachedTo(serverID) && (of.restored || of.deletedLater[v.ID]):
		case left != nil && left.Kind == cloud.Forbidden: // the missing right is reported first
		case v.attachedTo(serverID), v.pending() && slices.Contains(transient, v.Status), v.Status == "detaching":
			left = refuse(op, cloud.Busy, "volume %s is in the status %s: it is deleted once it is available", v.ID, quote(v.Status))
		}
	}
	return left
}
