package vm

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/tenancy"
)

func inNamespaceX(vm *pcapi.VM) { vm.Namespace = "x" }

func keptByOthers(vm *pcapi.VM) { vm.Finalizers = []string{"example.com/other"} }

func TestNameOfVMsThatAreBeingDeletedIsAwaited(t *testing.T) {
	has := func(vm *pcapi.VM) { withClaim(vm); vm.Status.VMID = "sb" }
	const awaited, taken = "False Progressing", "False Taken"
	tests := []struct {
		name   string
		others []client.Object
		want   string
		says   string
	}{
		{name: "one of the namespace: it is named", others: []client.Object{other("b", has, deleted)}, want: awaited, says: `VM "b"`},
		{name: "one of the namespace and one of another: the first is named", others: []client.Object{other("b", has, deleted, inNamespaceX), other("c", has, deleted)}, want: awaited, says: `VM "c"`},
		{name: "one of another namespace: not named", others: []client.Object{other("b", has, deleted, inNamespaceX)}, want: awaited, says: "a VM object of another namespace"},
		{name: "one whose create was not recorded", others: []client.Object{other("b", withClaim, deleted)}, want: awaited, says: `VM "b"`},
		{name: "one to which a user gave the finalizer: taken by something else", others: []client.Object{other("b", deleted, func(vm *pcapi.VM) {
			vm.Finalizers = []string{pcapi.VMFinalizer}
		})}, want: taken},
		{name: "one that stays, too: taken", others: []client.Object{other("b", has, deleted), other("c", has)}, want: taken},
		{name: "one on another Cloud: taken by something else", others: []client.Object{other("b", has, deleted, func(vm *pcapi.VM) {
			vm.Spec.CloudRef, vm.Status.Cloud = &pcapi.CloudReference{Name: "x"}, "x"
		})}, want: taken},
		{name: "one that only another finalizer keeps: taken by something else", others: []client.Object{other("b", has, deleted, keptByOthers)}, want: taken},
		{name: "none: taken by something else", want: taken},
	}
	for clouds, caps := range map[string]cloud.Capabilities{"the cloud refuses the name": everything, "names alone": uniqueNamesOnly, "names that the Cloud does not say are unique": without(cloud.UniqueNames)} {
		for _, tc := range tests {
			t.Run(clouds+", "+tc.name, func(t *testing.T) {
				h := newHarness(t, caps, append([]client.Object{vmWith()}, tc.others...)...)
				h.cloud.AddServers(cloud.Server{ID: "sb", Name: "web"})
				h.poll()
				if !caps.Has(cloud.UniqueNames) {
					h.cloud.FailAlways(cloudfake.CheckName, errTaken, false)
				}
				for range 2 {
					h.mustReconcile()
					h.wantCondition(pcapi.ReadyCondition, tc.want, tc.says)
					h.wantCondition(pcapi.NameCheckedCondition, "False Taken", tc.says)
				}
				if checks := h.cloud.TakeCalls(cloudfake.ListServers); len(slices.DeleteFunc(checks, func(call string) bool { return call != "check web" })) > 1 {
					t.Errorf("the name was checked again: %q", checks)
				}
				h.wantClaim("")
				if _, message := h.condition(pcapi.ReadyCondition); strings.Contains(message, `"x"`) || strings.Contains(message, "/b") {
					t.Errorf("the message %q shows another namespace", message)
				}
			})
		}
	}
}

func TestNameOfVMThatAnotherFinalizerKeepsIsFree(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"with labels": everything, "names alone": uniqueNamesOnly} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith(), other("b", withClaim, func(vm *pcapi.VM) { vm.Status.VMID = "sb" }, deleted, keptByOthers))
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

// leave has the events of the deletion of a VM handled: of its begin, its end, or both. It returns what they enqueue.
func (h *harness) leave(vm *pcapi.VM, begin, end bool) []queuedRequest {
	q := &priorityQueue{}
	on := freed{find: tenancy.NewFinder(h.client, &pcapi.VMList{}), reader: h.client, cloudOf: h.kind.CloudOf, refusals: h.kind.refusals}.handler()
	deleting := vm.DeepCopy()
	deleted(deleting)
	if begin {
		on.Update(h.t.Context(), event.UpdateEvent{ObjectOld: vm, ObjectNew: deleting}, q)
	}
	if end {
		// The API server reports the object as it was before the last finalizer was removed.
		on.Delete(h.t.Context(), event.DeleteEvent{Object: deleting}, q)
	}
	return q.queued
}

func TestVMGoesOnWhenTheVMThatHadItsNameIsGone(t *testing.T) {
	for name, begin := range map[string]bool{"the deletion was seen to begin": true, "only its end was seen": false} {
		t.Run(name, func(t *testing.T) {
			was := other("b", withClaim, func(vm *pcapi.VM) { vm.Status.VMID = "sb" })
			h := newHarness(t, everything, vmWith(), was)
			h.cloud.AddServers(cloud.Server{ID: "sb", Name: "web"})
			h.poll()
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "False Taken")
			if err := h.client.Delete(t.Context(), was); err != nil {
				t.Fatal(err)
			}
			if begin {
				equal(t, "enqueued at the begin", []queuedRequest{{"ns/a", priorityUnderWay}}, h.leave(was, true, false))
				h.mustReconcile()
				h.wantCondition(pcapi.ReadyCondition, "False Progressing", `VM "b"`)
			}
			var stored pcapi.VM
			if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(was), &stored); err != nil {
				t.Fatal(err)
			}
			stored.Finalizers = nil
			if err := h.client.Update(t.Context(), &stored); err != nil {
				t.Fatal(err)
			}
			h.cloud.RemoveServers("sb")
			equal(t, "enqueued at the end", []queuedRequest{{"ns/a", priorityUnderWay}}, h.leave(was, false, true))
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

func TestOnlyVMsThatWantWhatAVMHadAreEnqueued(t *testing.T) {
	address := func(vm *pcapi.VM) {
		vm.Spec.Network = &pcapi.VMNetwork{Interfaces: []pcapi.VMInterface{{Name: "eth0", NetworkRef: pcapi.NetworkReference{Name: "net"}, Addresses: []pcapi.VMAddress{"10.0.0.5"}}}}
	}
	named := func(name string) func(*pcapi.VM) { return func(vm *pcapi.VM) { vm.Spec.VMName = name } }
	imports := func(vm *pcapi.VM) { vm.Spec.Import = &pcapi.VMImport{VMID: "sb"} }
	for name, tc := range map[string]struct {
		vm   *pcapi.VM
		want bool
	}{
		"its name":                          {vmWith(), true},
		"its name in another case":          {vmWith(named("Web")), true},
		"its name, in another namespace":    {vmWith(inNamespaceX), true},
		"its name, and has a server":        {vmWith(recorded), false},
		"its name, on another Cloud":        {vmWith(func(vm *pcapi.VM) { vm.Spec.CloudRef.Name = "x" }), false},
		"its server":                        {vmWith(named("db"), imports), true},
		"its address":                       {vmWith(named("db"), address), true},
		"its address, in another namespace": {vmWith(named("db"), address, inNamespaceX), false},
		"nothing of it":                     {vmWith(named("db")), false},
	} {
		t.Run(name, func(t *testing.T) {
			was := other("b", withClaim, address, func(vm *pcapi.VM) { vm.Status.VMID = "sb" })
			h := newHarness(t, everything, tc.vm, was)
			for _, moment := range [][2]bool{{true, false}, {false, true}} {
				equal(t, "enqueued", tc.want, len(h.leave(was, moment[0], moment[1])) > 0)
			}
		})
	}
}

func TestRefusalOfACheckBeforeTheNameWasFreedDoesNotStand(t *testing.T) {
	now := startTime
	r := newRefusals(func() time.Time { return now })
	vm := vmWith()
	r.record(vm, "default", now, errTaken)
	r.free(other("b", func(vm *pcapi.VM) { vm.Spec.VMName = "other" }), []string{"default"})
	r.free(other("b"), []string{"another"})
	equal(t, "kept: another name or Cloud was freed", true, r.recall(vm, "default") != nil)
	now = now.Add(time.Second)
	r.free(other("b"), []string{"default"})
	equal(t, "dropped: the name was freed after the check", true, r.recall(vm, "default") == nil)
	r.record(vm, "default", now.Add(time.Second), errTaken)
	equal(t, "kept: it was checked after that", true, r.recall(vm, "default") != nil)
}

func TestStaticAddressOfAVMThatIsBeingDeletedIsAwaited(t *testing.T) {
	asks := func(vm *pcapi.VM) { on("a", "10.0.0.5")(vm) }
	has := func(vm *pcapi.VM) { withClaim(vm); vm.Status.VMID = "sb"; vm.Spec.VMName = "db" }
	for name, tc := range map[string]struct {
		others []client.Object
		want   string
	}{
		"it alone":                   {[]client.Object{other("b", asks, has, deleted)}, "False Progressing"},
		"another one has it, too":    {[]client.Object{other("b", asks, has, deleted), other("c", asks, has)}, "False AddressInUse"},
		"another finalizer keeps it": {[]client.Object{other("b", asks, has, deleted, keptByOthers)}, "True Running"},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithNetworks(t, withInterfaces, "10.0.0.0/24", append([]client.Object{vmWith(asks)}, tc.others...)...)
			result := h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, tc.want)
			if tc.want == "False Progressing" {
				h.wantCondition(pcapi.ReadyCondition, tc.want, `10.0.0.5 on Network "a" is still that of VM "b"`)
				h.wantRequeue(external.Safety, result)
			}
		})
	}
}
