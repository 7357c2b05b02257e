package vm

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/privatecloud/operator/api/v1alpha1"
)

func TestRefusalsExpire(t *testing.T) {
	now := startTime
	r := newRefusals(func() time.Time { return now })
	prohibited, taken := vmWith(), other("b")
	r.record(prohibited, "default", errProhibited)
	r.record(taken, "default", errTaken)
	stands := func(after time.Duration, vm *v1alpha1.VM, want error) {
		t.Helper()
		now = startTime.Add(after)
		if got := r.recall(vm, "default"); !errors.Is(got, want) {
			t.Errorf("after %v: %v, want %v", after, got, want)
		}
	}
	stands(0, other("c"), nil)
	stands(time.Minute-1, taken, errTaken)
	stands(time.Minute+1, taken, nil)
	stands(10*time.Minute-1, prohibited, errProhibited)
	stands(10*time.Minute+1, prohibited, nil)
}

func TestRefusalsApplyToOneNameAndRequest(t *testing.T) {
	r := newRefusals(func() time.Time { return startTime })
	r.record(vmWith(), "default", errProhibited)
	for name, change := range map[string]func(*v1alpha1.VM){
		"another name: checked again": func(vm *v1alpha1.VM) { vm.Spec.VMName = "db" },
		"another requested reconcile: checked again": func(vm *v1alpha1.VM) {
			vm.Annotations = map[string]string{v1alpha1.ReconcileRequestedAtAnnotation: "now"}
		},
		"another VM of the same vmname: checked again": func(vm *v1alpha1.VM) { vm.UID = "uid-b" },
		"a new object of the same name: checked again": func(vm *v1alpha1.VM) { vm.UID = "uid-a2" },
	} {
		if got := r.recall(vmWith(change), "default"); got != nil {
			t.Errorf("%s: %v, want it asked anew", name, got)
		}
	}
	if got := r.recall(vmWith(), "another"); got != nil {
		t.Errorf("another Cloud: %v, want it asked anew", got)
	}
	if got := r.recall(vmWith(func(vm *v1alpha1.VM) { vm.Spec.CPU = nil }), "default"); !errors.Is(got, errProhibited) {
		t.Errorf("an edit of something else: %v, want %v", got, errProhibited)
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	r := newRefusals(func() time.Time { return startTime })
	first := vmWith()
	r.record(first, "default", errProhibited)
	for i := range maxRefusals {
		r.record(other(fmt.Sprint(i)), "default", errProhibited)
	}
	if got := r.recall(first, "default"); got != nil {
		t.Errorf("the oldest of %d refusals was not dropped", maxRefusals+1)
	}
	if got := r.recall(other("0"), "default"); got == nil {
		t.Error("a younger refusal was dropped")
	}
}

// TestRefusalsConcurrently finds data races; run it with -race.
func TestRefusalsConcurrently(*testing.T) {
	r := newRefusals(time.Now)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				r.record(vmWith(), "default", errTaken)
				_ = r.recall(vmWith(), "default")
			}
		})
	}
	group.Wait()
}
