package vsphere

import (
	"testing"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/vim25/types"
)

func TestRefsFindVMsByTheirIDs(t *testing.T) {
	vm := func(value string) types.ManagedObjectReference {
		return types.ManagedObjectReference{Type: "VirtualMachine", Value: value}
	}
	first, second := uuid.NewString(), uuid.NewString()
	var r refs
	want := func(when, id, value string) {
		t.Helper()
		if got, ok := r.find(id); got.Value != value || ok != (value != "") {
			t.Errorf("%s: the VM is %q, want %q", when, got.Value, value)
		}
	}
	want("empty", first, "")
	r.put(vm("vm-1"), first)
	r.put(vm("vm-2"), second)
	r.put(vm("group-3"), first)
	want("one VM each", first, "vm-1")
	r.put(vm("vm-4"), first)
	r.put(vm("vm-5"), first)
	r.forget(vm("vm-1"))
	want("a copy is left", first, "vm-4")
	r.forget(vm("vm-5"))
	want("the last copy is forgotten", first, "vm-4")
	r.put(vm("vm-4"), second)
	want("the VM has another id now", first, "")
	want("the id that it has now", second, "vm-2")
	r.forget(vm("vm-2"))
	want("the other VM of that id", second, "vm-4")
	if got := r.id(vm("vm-4")); got != second {
		t.Errorf("the id is %s, want %s", got, second)
	}
	r.forget(vm("vm-4"))
	if r.count() != 0 || len(r.numbers) != 0 || len(r.copies) != 0 {
		t.Errorf("%d VMs, %d ids and %d copies are left", r.count(), len(r.numbers), len(r.copies))
	}
}
