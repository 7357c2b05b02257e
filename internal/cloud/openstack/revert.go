package openstack

import (
	"context"

	"github.com/privatecloud/operator/internal/cloud"
)

var _ cloud.Reverter = (*Client)(nil)

// RevertServer rebuilds a server from an image that was made from it: the server keeps its
// id, ports, metadata and flavor, and its power state. Nothing of a server says that it was
// rebuilt, so the call is never repeated.
func (c *Client) RevertServer(ctx context.Context, req cloud.RevertServer) (cloud.Result, error) {
	op := "revert to snapshot " + quote(req.SnapshotID)
	if req.Again {
		return cloud.Result{}, refuse(op, cloud.Unsupported, "this cloud has no idempotency keys, so a second revert could follow the first")
	}
	if !isID(req.ServerID) {
		return cloud.Result{}, refuse(op, cloud.NotFound, "no id of a server of this cloud looks like that")
	}
	ctx, end, err := c.session.beginAbout(ctx, op, req.SnapshotID)
	if err != nil {
		return cloud.Result{}, err
	}
	defer end()
	i, err := c.snapshots.get(ctx, op, req.ServerID, req.SnapshotID)
	switch {
	case err != nil && err.Kind == cloud.NotFoundUnproven:
		return cloud.Result{}, refuse(op, cloud.Unavailable, "something in front of the cloud says that the image of the snapshot does not exist")
	case err != nil:
		return cloud.Result{}, err
	case i.Status != "active":
		return cloud.Result{}, refuse(op, cloud.Busy, "the image of the snapshot is in status %s, and cannot be used", quote(i.Status))
	}
	if err := c.session.do(ctx, action(op, req.ServerID, "rebuild", map[string]any{"imageRef": req.SnapshotID})); err != nil {
		return cloud.Result{}, c.confirm(ctx, op, req.ServerID, err)
	}
	return cloud.Result{Operation: operation(opRevert, req.ServerID)}, nil
}
