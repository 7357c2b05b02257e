package vsphere

import (
	"context"
	"slices"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

var _ cloud.Reverter = (*Client)(nil)

// RevertServer reverts a VM to a snapshot. A vCenter has no keys, and which snapshot is the
// current one of a VM says nothing about a revert: only the task of the revert does.
func (c *Client) RevertServer(ctx context.Context, req cloud.RevertServer) (cloud.Result, error) {
	op := "revert to snapshot " + quote(req.SnapshotID)
	if req.Again {
		return cloud.Result{}, refuse(op, cloud.Unsupported, "a vCenter has no idempotency keys, so a second revert could follow the first")
	}
	ctx, end, err := c.begin(ctx, op)
	if err != nil {
		return cloud.Result{}, err
	}
	defer end()
	vm, at, err := c.lookUp(ctx, op, req.ServerID)
	if err != nil {
		return cloud.Result{}, err
	}
	found, _, err := c.snapshotsOf(ctx, at, vm)
	if err != nil {
		return cloud.Result{}, c.fail(ctx, op, err)
	}
	if !slices.ContainsFunc(found, func(s cloud.Snapshot) bool { return s.ID == req.SnapshotID }) {
		return cloud.Result{}, refuse(op, cloud.NotFound, "the VM has no such snapshot")
	}
	res, err := methods.RevertToSnapshot_Task(ctx, at.vim, &types.RevertToSnapshot_Task{
		This: types.ManagedObjectReference{Type: "VirtualMachineSnapshot", Value: req.SnapshotID},
	})
	if err != nil {
		return cloud.Result{}, changed(c.fail(ctx, op, err), err)
	}
	c.started(res.Returnval)
	return cloud.Result{Operation: operation{kind: updateOperation, task: res.Returnval.Value, server: req.ServerID}.String()}, nil
}
