package openstack

import (
	"context"

	"github.com/privatecloud/operator/internal/cloud"
)

var _ cloud.SnapshotRemover = (*Client)(nil)

// DeleteSnapshots deletes the images that this client made from a server which is gone,
// while it had this owner. Those of others stay, and so do hidden ones and those that are
// protected or in use: they are listed as long as they exist.
//
// The images are deleted after the server. Were they deleted before it, a deletion that
// compute refuses would leave a server without its snapshots.
func (c *Client) DeleteSnapshots(ctx context.Context, serverID, owner string) error {
	op := "delete the snapshots of server " + quote(serverID)
	ctx, end, failed := c.session.beginAbout(ctx, op, serverID)
	if failed != nil {
		return failed
	}
	defer end()
	images, failed := c.snapshots.listVisible(ctx, op, serverID)
	if failed != nil {
		return failed
	}
	for _, i := range images {
		if !i.ours() || i.Owner != owner {
			continue
		}
		switch err := c.snapshots.delete(ctx, op, i.ID); {
		case err == nil, err.Kind == cloud.NotFound:
		case err.Kind == cloud.Busy: // it is in use
			switch left, failed := c.remainderOf(ctx, op, serverID); {
			case failed != nil:
				return failed
			case left.kept: // the server may use its data
				return err
			}
		case i.Protected && err.Kind == cloud.Forbidden, err.Kind == cloud.Rejected:
		default:
			return err
		}
	}
	return nil
}
