package vsphere

import (
	"context"
	"slices"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// revert reverts a VM to a snapshot. A vCenter has no keys, and which snapshot is the
// current one of a VM says nothing about a revert: only the task of the revert does.
func (s *snapshots) revert(ctx context.Context, req cloud.RevertServer) (cloud.Result, error) {
	op := "revert to snapshot " + quote(req.SnapshotID)
	if req.Again {
		return cloud.Result{}, refuse(op, cloud.Unsupported, "a vCenter has no idempotency keys, so a second revert could follow the first")
	}
	ctx, end, err := s.calls.begin(ctx, op)
	if err != nil {
		return cloud.Result{}, err
	}
	defer end()
	vm, at, err := s.vms.lookUp(ctx, op, req.ServerID)
	if err != nil {
		return cloud.Result{}, err
	}
	found, _, err := s.of(ctx, at, vm)
	if err != nil {
		return cloud.Result{}, s.faults.fail(ctx, op, err)
	}
	if !slices.ContainsFunc(found, func(s cloud.Snapshot) bool { return s.ID == req.SnapshotID }) {
		return cloud.Result{}, refuse(op, cloud.NotFound, "the VM has no such snapshot")
	}
	res, err := methods.RevertToSnapshot_Task(ctx, at.vim, &types.RevertToSnapshot_Task{
		This: types.ManagedObjectReference{Type: "VirtualMachineSnapshot", Value: req.SnapshotID},
	})
	if err != nil {
		return cloud.Result{}, changed(s.faults.fail(ctx, op, err), err)
	}
	s.tasks.started(res.Returnval)
	return cloud.Result{Operation: operation{kind: updateOperation, task: res.Returnval.Value, server: req.ServerID}.String()}, nil
}
