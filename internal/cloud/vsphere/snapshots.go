package vsphere

import (
	"context"
	"slices"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// snapshotHold is how long a call waits for a snapshot to be taken or removed. Then the
	// caller comes back.
	snapshotHold = 5 * time.Second
	// quiesceFrom and quiesceTo bound the time that a vCenter gives a guest, in minutes.
	quiesceFrom = 5
	quiesceTo   = 240
)

var _ cloud.Snapshotter = (*Client)(nil)

// ListSnapshots returns the snapshots of a VM, oldest first.
func (c *Client) ListSnapshots(ctx context.Context, serverID string) ([]cloud.Snapshot, error) {
	op := "list snapshots of server " + quote(serverID)
	ctx, end, err := c.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer end()
	vm, at, err := c.lookUp(ctx, op, serverID)
	if err != nil {
		return nil, err
	}
	found, err := snapshotsOf(ctx, at, vm)
	return found, c.failed(ctx, op, err)
}

// CreateSnapshot takes a snapshot, unless the VM has one of the name: names contain what
// identifies their object, as keys do. While the vCenter takes one, no answer says
// whether it is that of an earlier call, so that the error has Uncertain set.
func (c *Client) CreateSnapshot(ctx context.Context, req cloud.CreateSnapshot) (cloud.Snapshot, error) {
	op := "create snapshot " + quote(req.Name)
	if req.Name == "" {
		return cloud.Snapshot{}, refuse(op, cloud.Rejected, "no name was given")
	}
	ctx, end, err := c.begin(ctx, op)
	if err != nil {
		return cloud.Snapshot{}, err
	}
	defer end()
	vm, at, err := c.lookUp(ctx, op, req.ServerID)
	if err != nil {
		return cloud.Snapshot{}, err
	}
	if made, err := named(ctx, at, vm, req.Name); made != nil || err != nil {
		return valueOf(made), c.failed(ctx, op, err)
	}
	res, err := methods.CreateSnapshotEx_Task(ctx, at.vim, &types.CreateSnapshotEx_Task{
		This: vm.ref, Name: req.Name, Description: req.Description, Memory: req.Memory, QuiesceSpec: quiesceSpec(req.Quiesce),
	})
	if _, working := faultOf(err).(*types.TaskInProgress); working {
		return cloud.Snapshot{}, unfinished(op)
	}
	if err != nil {
		return cloud.Snapshot{}, changed(c.fail(ctx, op, err), err)
	}
	if err := c.await(ctx, op, at, res.Returnval); err != nil {
		return cloud.Snapshot{}, err
	}
	made, err := named(ctx, at, vm, req.Name)
	if err == nil && made == nil {
		return cloud.Snapshot{}, unfinished(op)
	}
	if err != nil {
		failed := c.fail(ctx, op, err)
		failed.Uncertain = true
		return cloud.Snapshot{}, failed
	}
	return *made, nil
}

// DeleteSnapshot removes a snapshot of a VM, and merges its disks into those that follow.
func (c *Client) DeleteSnapshot(ctx context.Context, serverID, id string) error {
	op := "delete snapshot " + quote(id)
	ctx, end, err := c.begin(ctx, op)
	if err != nil {
		return err
	}
	defer end()
	vm, at, err := c.lookUp(ctx, op, serverID)
	if err != nil {
		return err
	}
	found, err := snapshotsOf(ctx, at, vm)
	if err != nil {
		return c.fail(ctx, op, err)
	}
	if !slices.ContainsFunc(found, func(s cloud.Snapshot) bool { return s.ID == id }) {
		return refuse(op, cloud.NotFound, "the VM has no such snapshot")
	}
	res, err := methods.RemoveSnapshot_Task(ctx, at.vim, &types.RemoveSnapshot_Task{
		This: types.ManagedObjectReference{Type: "VirtualMachineSnapshot", Value: id}, Consolidate: new(true),
	})
	if err != nil {
		return changed(c.fail(ctx, op, err), err)
	}
	return c.await(ctx, op, at, res.Returnval)
}

// unfinished is the error of a call while the vCenter works on the snapshots of the VM.
func unfinished(op string) *cloud.Error {
	e := refuse(op, cloud.Busy, "the vCenter works on the VM, which may be to take this snapshot")
	e.Uncertain = true
	return e
}

// await waits a short time for a task that changes the snapshots of a VM.
func (c *Client) await(ctx context.Context, op string, at *site, task types.ManagedObjectReference) error {
	c.started(task)
	end := time.Now().Add(snapshotHold)
	for pause := powerOffLook; time.Now().Before(end); pause *= 2 {
		info, err := c.task(ctx, at, task.Value, time.Now())
		switch {
		case err != nil:
			failed := c.fail(ctx, op, err)
			failed.Uncertain = true
			return failed
		case info == nil, info.State == types.TaskInfoStateSuccess:
			return nil
		case info.State == types.TaskInfoStateError && info.Error != nil:
			return c.refused(op, 0, info.Error.Fault, info.Error.LocalizedMessage)
		case !transport.Sleep(ctx, pause):
			return unfinished(op)
		}
	}
	return unfinished(op)
}

// quiesceSpec returns how the guest is brought to rest, nil if it is not. A vCenter counts
// the time in minutes.
func quiesceSpec(timeout time.Duration) types.BaseVirtualMachineGuestQuiesceSpec {
	if timeout == 0 {
		return nil
	}
	minutes := (timeout + time.Minute - 1) / time.Minute
	return &types.VirtualMachineGuestQuiesceSpec{Timeout: int32(min(max(minutes, quiesceFrom), quiesceTo))}
}

// named returns the oldest snapshot of a VM with a name, nil if there is none.
func named(ctx context.Context, at *site, vm entity, name string) (*cloud.Snapshot, error) {
	found, err := snapshotsOf(ctx, at, vm)
	for i := range found {
		if found[i].Name == name {
			return &found[i], nil
		}
	}
	return nil, err
}

func valueOf(s *cloud.Snapshot) cloud.Snapshot {
	if s == nil {
		return cloud.Snapshot{}
	}
	return *s
}

// snapshotsOf returns the snapshots of a VM, oldest first. Their sizes are not known.
func snapshotsOf(ctx context.Context, at *site, vm entity) ([]cloud.Snapshot, error) {
	found, err := retrieve(ctx, at.vim, "VirtualMachine", []string{"snapshot"}, vm.ref)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 || len(found[0].faults) > 0 {
		return nil, refuse("", cloud.Unavailable, "the snapshots of the VM cannot be read at the moment")
	}
	tree, _ := found[0].props["snapshot"].(types.VirtualMachineSnapshotInfo) // absent without snapshots
	all := flatten(tree.RootSnapshotList, nil)
	slices.SortStableFunc(all, func(a, b cloud.Snapshot) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all, nil
}

func flatten(trees []types.VirtualMachineSnapshotTree, onto []cloud.Snapshot) []cloud.Snapshot {
	for _, tree := range trees {
		onto = append(onto, cloud.Snapshot{ID: tree.Snapshot.Value, Name: tree.Name, CreatedAt: tree.CreateTime.UTC()})
		onto = flatten(tree.ChildSnapshotList, onto)
	}
	return onto
}
