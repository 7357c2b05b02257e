package vsphere

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// quiesceFrom and quiesceTo bound the time that a vCenter gives a guest, in minutes.
	quiesceFrom = 5
	quiesceTo   = 240
	// creatingSnapshot begins what a vCenter calls a task that takes a snapshot of a VM.
	creatingSnapshot = "VirtualMachine.createSnapshot"
)

// snapshots takes, lists and removes snapshots of VMs, and reverts to them.
type snapshots struct {
	calls  *calls
	faults *faults
	vms    *vms
	tasks  *tasks
}

// list returns the snapshots of a VM, oldest first. It also fails with Busy while
// the vCenter takes one: the VM has it only when its task has ended, which can take longer
// than a settle time.
func (s *snapshots) list(ctx context.Context, serverID string) ([]cloud.Snapshot, error) {
	op := "list snapshots of server " + quote(serverID)
	ctx, end, err := s.calls.begin(ctx, op)
	if err != nil {
		return nil, err
	}
	defer end()
	vm, at, err := s.vms.lookUp(ctx, op, serverID)
	if err != nil {
		return nil, err
	}
	found, taking, err := s.of(ctx, at, vm)
	if err == nil && taking {
		err = refuse(op, cloud.Busy, "the vCenter takes a snapshot of the VM, which is not listed yet")
	}
	return found, s.faults.failed(ctx, op, err)
}

// create takes a snapshot, unless the VM has one of the name: names contain what
// identifies their object, as keys do. While the vCenter takes one, no answer says
// whether it is that of an earlier call, so that the error has Uncertain set.
func (s *snapshots) create(ctx context.Context, req cloud.CreateSnapshot) (cloud.Snapshot, error) {
	op := "create snapshot " + quote(req.Name)
	if req.Name == "" {
		return cloud.Snapshot{}, refuse(op, cloud.Rejected, "no name was given")
	}
	ctx, end, err := s.calls.begin(ctx, op)
	if err != nil {
		return cloud.Snapshot{}, err
	}
	defer end()
	vm, at, err := s.vms.lookUp(ctx, op, req.ServerID)
	if err != nil {
		return cloud.Snapshot{}, err
	}
	switch made, taking, err := s.named(ctx, at, vm, req.Name); {
	case made != nil || err != nil:
		return valueOf(made), s.faults.failed(ctx, op, err)
	case taking:
		return cloud.Snapshot{}, unfinished(op, mayBeThis)
	}
	res, err := methods.CreateSnapshotEx_Task(ctx, at.vim, &types.CreateSnapshotEx_Task{
		This: vm.ref, Name: req.Name, Description: req.Description, Memory: req.Memory, QuiesceSpec: quiesceSpec(req.Quiesce),
	})
	if inProgress(faultOf(err)) {
		return cloud.Snapshot{}, unfinished(op, mayBeThis)
	}
	if err != nil {
		return cloud.Snapshot{}, changed(s.faults.fail(ctx, op, err), err)
	}
	if err := s.await(ctx, op, at, res.Returnval, mayBeThis); err != nil {
		return cloud.Snapshot{}, err
	}
	made, _, err := s.named(ctx, at, vm, req.Name)
	if err == nil && made == nil {
		return cloud.Snapshot{}, unfinished(op, mayBeThis)
	}
	if err != nil {
		failed := s.faults.fail(ctx, op, err)
		failed.Uncertain = true
		return cloud.Snapshot{}, failed
	}
	return *made, nil
}

// remove removes a snapshot of a VM, and merges its disks into those that follow.
func (s *snapshots) remove(ctx context.Context, serverID, id string) error {
	op := "delete snapshot " + quote(id)
	ctx, end, err := s.calls.begin(ctx, op)
	if err != nil {
		return err
	}
	defer end()
	vm, at, err := s.vms.lookUp(ctx, op, serverID)
	if err != nil {
		return err
	}
	found, _, err := s.of(ctx, at, vm)
	if err != nil {
		return s.faults.fail(ctx, op, err)
	}
	if !slices.ContainsFunc(found, func(s cloud.Snapshot) bool { return s.ID == id }) {
		return refuse(op, cloud.NotFound, "the VM has no such snapshot")
	}
	res, err := methods.RemoveSnapshot_Task(ctx, at.vim, &types.RemoveSnapshot_Task{
		This: types.ManagedObjectReference{Type: "VirtualMachineSnapshot", Value: id}, Consolidate: new(true),
	})
	if err != nil {
		return changed(s.faults.fail(ctx, op, err), err)
	}
	return s.await(ctx, op, at, res.Returnval, "the vCenter is removing the snapshot, or works on the VM otherwise")
}

// mayBeThis says why a create of a snapshot has no answer yet.
const mayBeThis = "the vCenter works on the VM, which may be to take this snapshot"

// unfinished is the error of a call while the vCenter works on the snapshots of the VM.
func unfinished(op, detail string) *cloud.Error {
	e := refuse(op, cloud.Busy, "%s", detail)
	e.Uncertain = true
	return e
}

// inProgress reports whether the vCenter refuses to work on a VM because it does already.
func inProgress(fault types.BaseMethodFault) bool {
	_, working := fault.(*types.TaskInProgress)
	return working
}

// await waits a short time for a task that changes the snapshots of a VM; working is what the
// vCenter does if it takes longer.
func (s *snapshots) await(ctx context.Context, op string, at *site, task types.ManagedObjectReference, working string) error {
	s.tasks.started(task)
	info, err := s.tasks.waitFor(ctx, at, task, transport.WorkTimeout)
	switch {
	case err != nil:
		failed := s.faults.fail(ctx, op, err)
		failed.Uncertain = true
		return failed
	case info == nil, info.State == types.TaskInfoStateSuccess:
		return nil
	case info.State == types.TaskInfoStateError && info.Error != nil && !inProgress(info.Error.Fault):
		return s.faults.refused(op, 0, info.Error.Fault, info.Error.LocalizedMessage)
	}
	return unfinished(op, working)
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

// named returns the oldest snapshot of a VM with a name, nil if there is none, and whether the
// vCenter takes one.
func (s *snapshots) named(ctx context.Context, at *site, vm entity, name string) (made *cloud.Snapshot, taking bool, err error) {
	found, taking, err := s.of(ctx, at, vm)
	for i := range found {
		if found[i].Name == name {
			return &found[i], taking, nil
		}
	}
	return nil, taking, err
}

func valueOf(s *cloud.Snapshot) cloud.Snapshot {
	if s == nil {
		return cloud.Snapshot{}
	}
	return *s
}

// of returns the snapshots of a VM, oldest first, and whether the vCenter takes one.
// Their sizes are not known.
func (s *snapshots) of(ctx context.Context, at *site, vm entity) (all []cloud.Snapshot, taking bool, err error) {
	all, tasks, err := readSnapshots(ctx, at, vm)
	if err != nil || len(tasks) == 0 {
		return all, false, err
	}
	states, err := s.tasks.read(ctx, at, tasks)
	if err != nil {
		return nil, false, err
	}
	takes := false
	for _, task := range states {
		if !strings.HasPrefix(task.info.DescriptionId, creatingSnapshot) {
			continue
		}
		takes = true
		taking = taking || task.info.State == types.TaskInfoStateQueued || task.info.State == types.TaskInfoStateRunning
	}
	if takes && !taking { // it may have ended since the first read
		all, _, err = readSnapshots(ctx, at, vm)
	}
	return all, taking, err
}

// readSnapshots reads the snapshots of a VM and the names of its tasks that run or ended a
// short time ago.
func readSnapshots(ctx context.Context, at *site, vm entity) (all []cloud.Snapshot, tasks []string, err error) {
	found, err := retrieve(ctx, at.vim, "VirtualMachine", []string{"snapshot", "recentTask", uuidPath}, vm.ref)
	if err != nil {
		return nil, nil, err
	}
	if len(found) != 1 || len(found[0].faults) > 0 || !found[0].configured() {
		return nil, nil, refuse("", cloud.Unavailable, "the snapshots of the VM cannot be read at the moment")
	}
	recent, _ := found[0].props["recentTask"].(types.ArrayOfManagedObjectReference) // absent without tasks
	for _, task := range recent.ManagedObjectReference {
		tasks = append(tasks, task.Value)
	}
	tree, _ := found[0].props["snapshot"].(types.VirtualMachineSnapshotInfo) // absent without snapshots
	all = flatten(tree.RootSnapshotList, nil)
	slices.SortStableFunc(all, func(a, b cloud.Snapshot) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all, tasks, nil
}

func flatten(trees []types.VirtualMachineSnapshotTree, onto []cloud.Snapshot) []cloud.Snapshot {
	for _, tree := range trees {
		onto = append(onto, cloud.Snapshot{ID: tree.Snapshot.Value, Name: tree.Name, CreatedAt: tree.CreateTime.UTC()})
		onto = flatten(tree.ChildSnapshotList, onto)
	}
	return onto
}
