package vsphere_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

const (
	vmCall     = "RetrievePropertiesEx: VirtualMachine"
	folderCall = "RetrievePropertiesEx: Folder"
)

// wantCalls checks which calls came since the last ForgetCalls.
func (v *vcenter) wantCalls(t *testing.T, when string, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, v.Front.Calls()); diff != "" {
		t.Errorf("%s: calls (-want +got):\n%s", when, diff)
	}
	v.Front.ForgetCalls()
}

// taskOf returns the task of an operation.
func taskOf(id string) types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "Task", Value: strings.Split(id, "/")[1]}
}

// await waits until the tasks of operations have ended.
func (v *vcenter) await(ids ...string) {
	for _, id := range ids {
		v.Model.Map().Get(taskOf(id)).(*simulator.Task).Wait() //nolint:forcetypeassert // it is a task
	}
}

// begin sends creates, and returns the ids of their operations, whose tasks have ended.
func (v *vcenter) begin(t *testing.T, c *vsphere.Client, names ...string) []string {
	t.Helper()
	var ids []string
	for _, name := range names {
		result, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: name, IdempotencyKey: uuid.NewString(), First: true})
		if err != nil {
			t.Fatalf("CreateServer(%s): %v", name, err)
		}
		ids = append(ids, result.Operation)
	}
	v.await(ids...)
	return ids
}

// states asks for all operations at once.
func states(t *testing.T, c *vsphere.Client, ids []string) (all []cloud.Operation, errs []error) {
	t.Helper()
	all, errs = make([]cloud.Operation, len(ids)), make([]error, len(ids))
	var calls sync.WaitGroup
	for i, id := range ids {
		calls.Go(func() { all[i], errs[i] = c.GetOperation(t.Context(), id) })
	}
	calls.Wait()
	return all, errs
}

func TestVMTakesFewCalls(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	remove(t, c, create(t, c, cloud.CreateServer{Name: "first", IdempotencyKey: uuid.NewString()}).ID) // the client learns what it remembers
	v.Front.ForgetCalls()
	result, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web", IdempotencyKey: uuid.NewString(), First: true})
	if err != nil {
		t.Fatal(err)
	}
	v.wantCalls(t, "a create", map[string]int{"CloneVM_Task": 1})
	v.await(result.Operation)
	made, err := c.GetOperation(t.Context(), result.Operation)
	if err != nil || !made.Done || made.Server == nil || made.Server.ID != made.ServerID || made.Server.State != cloud.StateActive {
		t.Fatalf("the operation of the create: %+v, %v, want it done with the server", made, err)
	}
	v.wantCalls(t, "the end of a create", map[string]int{vcsim.TaskCall: 1, vmCall: 1})
	result, err = c.DeleteServer(t.Context(), made.ServerID)
	if err != nil {
		t.Fatal(err)
	}
	looks := v.Front.Calls()[vcsim.TaskCall] // their number depends on how long it takes to power the VM off
	v.wantCalls(t, "a deletion, which looks for disks of others", map[string]int{"FindAllByUuid": 1, vmCall: 2, "PowerOffVM_Task": 1, vcsim.TaskCall: max(1, looks), "Destroy_Task": 1})
	v.await(result.Operation)
	gone, err := c.GetOperation(t.Context(), result.Operation)
	if want := (cloud.Operation{Done: true, Progress: 100, ServerID: made.ServerID, Gone: true}); err != nil || !cmp.Equal(gone, want) {
		t.Errorf("the operation of the deletion: %+v, %v, want %+v", gone, err, want)
	}
	v.wantCalls(t, "the end of a deletion", map[string]int{vcsim.TaskCall: 1})
}

func TestFolderIsLookedForOnceForCreatesInARow(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	inFolder := func(name string) cloud.CreateServer {
		return cloud.CreateServer{Name: name, Folder: "team-a", IdempotencyKey: uuid.NewString(), First: true}
	}
	create(t, c, inFolder("one"))
	v.Front.ForgetCalls()
	if _, err := c.CreateServer(t.Context(), inFolder("two")); err != nil {
		t.Fatal(err)
	}
	v.wantCalls(t, "the second VM of a folder", map[string]int{"CloneVM_Task": 1})
}

func TestFolderThatOthersRemovedIsMadeAgain(t *testing.T) {
	v := newVCenter(t)
	c, other := v.client(t), v.client(t)
	one := create(t, c, cloud.CreateServer{Name: "one", Folder: "team-a"})
	remove(t, other, one.ID)
	req := cloud.CreateServer{Name: "two", Folder: "team-a", IdempotencyKey: uuid.NewString(), First: true}
	two := create(t, c, req)
	if two.Folder != "team-a" {
		t.Errorf("the VM is in folder %q", two.Folder)
	}
	remove(t, other, two.ID)
	if got := create(t, c, cloud.CreateServer{Name: "three", Folder: "team-a"}); got.Folder != "team-a" {
		t.Errorf("the VM is in folder %q", got.Folder)
	}
}

func TestTakenNameFailsTheOperation(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	mine := cloud.CreateServer{Name: "web", CPU: 2, IdempotencyKey: uuid.NewString(), First: true}
	made := create(t, c, mine)
	theirs, larger := mine, mine
	theirs.IdempotencyKey, larger.CPU = uuid.NewString(), 4
	for name, tc := range map[string]struct {
		req  cloud.CreateServer
		kind cloud.Kind
	}{
		"another key: taken":                {theirs, cloud.Taken},
		"the key, another size: key reused": {larger, cloud.KeyReused},
		"the key and the size: the same VM": {mine, ""},
		"no key: taken":                     {cloud.CreateServer{Name: "web", First: true}, cloud.Taken},
	} {
		t.Run(name, func(t *testing.T) {
			fresh := v.client(t) // has seen no VM
			result, err := fresh.CreateServer(t.Context(), tc.req)
			if err != nil || result.Operation == "" {
				t.Fatalf("%+v, %v, want an operation", result, err)
			}
			v.await(result.Operation)
			state, err := fresh.GetOperation(t.Context(), result.Operation)
			switch {
			case err != nil || !state.Done:
				t.Fatalf("%+v, %v, want it done", state, err)
			case tc.kind == "" && (state.Err != nil || state.ServerID != made.ID):
				t.Errorf("%+v, want VM %s", state, made.ID)
			case tc.kind != "" && (state.Err == nil || state.Err.Kind != tc.kind || state.ServerID != ""):
				t.Errorf("%+v, want %s", state, tc.kind)
			}
		})
	}
	v.Front.ForgetCalls()
	theirs.First = false
	_, err := c.CreateServer(t.Context(), theirs)
	wantError(t, err, cloud.Taken)
	if calls := v.Front.Calls(); calls["CloneVM_Task"] > 0 {
		t.Errorf("a repeated create made the calls %v, want no clone that fails", calls)
	}
	if got := list(t, c); len(got) != 1 {
		t.Errorf("%d VMs, want one", len(got))
	}
}

// Somebody renames the VM of a create, and the object loses its claim, so that the next
// create looks like the first one.
func TestRenamedVMThatAListingShowsIsFoundBeforeTheFirstCreate(t *testing.T) {
	v := newVCenter(t)
	req := cloud.CreateServer{Name: "web", IdempotencyKey: uuid.NewString(), First: true}
	made := create(t, v.client(t), req)
	v.Change(v.VM("web").Self, types.PropertyChange{Name: "name", Val: "renamed"})
	c := v.client(t)
	list(t, c)
	v.Front.ForgetCalls()
	result, err := c.CreateServer(t.Context(), req)
	if err != nil || result.Server.ID != made.ID {
		t.Errorf("CreateServer: %+v, %v, want VM %s", result, err, made.ID)
	}
	if calls := v.Front.Calls(); calls["CloneVM_Task"] != 0 {
		t.Errorf("calls %v, want no clone", calls)
	}
}

// What the task of a create made is not taken for the VM of the create once it is another.
func TestClonedVMThatWasChangedIsSearchedFor(t *testing.T) {
	for name, change := range map[string]types.PropertyChange{
		"it has another id":  {Name: "config.instanceUuid", Val: uuid.NewString()},
		"it lost its mark":   {Name: "config.extraConfig", Val: []types.BaseOptionValue(nil)},
		"it is a template":   {Name: "config.template", Val: true},
		"it is inaccessible": {Name: "config.instanceUuid", Val: ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVCenter(t)
			c := v.client(t)
			ids := v.begin(t, c, "web")
			v.Change(v.VM("web").Self, change)
			state, err := c.GetOperation(t.Context(), ids[0])
			if err != nil || !state.Done || state.Server != nil {
				t.Errorf("%+v, %v, want it done without a server", state, err)
			}
		})
	}
}

func TestVMIsGoneOnlyAfterItsOwnDeletion(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	made := create(t, c, cloud.CreateServer{Name: "web"})
	result, err := c.UpdateServer(t.Context(), made.ID, cloud.Update{cloud.SetCPU(4)})
	if err != nil {
		t.Fatal(err)
	}
	v.await(result.Operation)
	state, err := c.GetOperation(t.Context(), result.Operation)
	if err != nil || !state.Done || state.Gone || state.Server == nil || state.Server.CPU != 4 {
		t.Errorf("a change: %+v, %v, want it done, and the VM there", state, err)
	}
	restore := v.FailTasks("Destroy_Task", &types.ResourceInUse{}, nil)
	result, err = c.DeleteServer(t.Context(), made.ID)
	restore()
	if err != nil {
		t.Fatal(err)
	}
	v.await(result.Operation)
	state, err = c.GetOperation(t.Context(), result.Operation)
	if err != nil || state.Err == nil || state.Gone {
		t.Errorf("a deletion that fails: %+v, %v, want its fault, and the VM there", state, err)
	}
}

// A vCenter that was restored from a backup gives the names of tasks again.
func TestTaskOfAnotherChangeProvesNoDeletion(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	web, other := create(t, c, cloud.CreateServer{Name: "web"}), create(t, c, cloud.CreateServer{Name: "other"})
	changed, err := c.UpdateServer(t.Context(), web.ID, cloud.Update{cloud.SetCPU(4)})
	if err != nil {
		t.Fatal(err)
	}
	deleted, err := c.DeleteServer(t.Context(), other.ID)
	if err != nil {
		t.Fatal(err)
	}
	for name, operation := range map[string]string{"a change of the VM": changed.Operation, "the deletion of another VM": deleted.Operation} {
		t.Run(name, func(t *testing.T) {
			v.await(operation)
			task := strings.Split(operation, "/")[1]
			state, err := c.GetOperation(t.Context(), "delete/"+task+"/"+web.ID)
			if err != nil || state.Gone {
				t.Errorf("%+v, %v, want no proof that the VM is gone", state, err)
			}
		})
	}
}

func TestReadsOfVMsAreShared(t *testing.T) {
	const n = 20
	v := newVCenter(t)
	v.Front.LeaveStopped()
	c := v.client(t)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("vm-%d", i)
	}
	ids := v.begin(t, c, names...)
	v.Front.ForgetCalls()
	done, errs := states(t, c, ids)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, state := range done {
		if state.Server == nil || state.Server.Name != names[i] {
			t.Fatalf("operation %d: %+v, want server %s", i, state, names[i])
		}
		seen[state.Server.ID] = true
	}
	if len(seen) != n {
		t.Errorf("%d ids of %d VMs", len(seen), n)
	}
	calls := maps.Clone(v.Front.Calls())
	if calls[vmCall] > n/2 || calls[folderCall] > 0 {
		t.Errorf("calls %v for %d VMs, want them read together", calls, n)
	}
}
