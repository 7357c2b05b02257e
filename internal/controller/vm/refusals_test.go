package vm

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func TestRefusalsExpire(t *testing.T) {
	prohibited, taken := vmWith(), other("b")
	tests := []struct {
		name  string
		vm    *pcapi.VM
		after time.Duration
		want  error
	}{
		{name: "no refusal: none", vm: other("c")},
		{name: "taken, before a minute: kept", vm: taken, after: time.Minute - 1, want: errTaken},
		{name: "taken, after a minute: expired", vm: taken, after: time.Minute + 1},
		{name: "prohibited, before ten minutes: kept", vm: prohibited, after: 10*time.Minute - 1, want: errProhibited},
		{name: "prohibited, after ten minutes: expired", vm: prohibited, after: 10*time.Minute + 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			now := startTime
			r := newRefusals(func() time.Time { return now })
			r.record(prohibited, "default", startTime, errProhibited)
			r.record(taken, "default", startTime, errTaken)
			now = startTime.Add(tc.after)
			if got := r.recall(tc.vm, "default"); !errors.Is(got, tc.want) {
				t.Errorf("refusal after %v: %v, want %v", tc.after, got, tc.want)
			}
		})
	}
}

func TestRefusalsApplyToOneNameAndRequest(t *testing.T) {
	r := newRefusals(func() time.Time { return startTime })
	r.record(vmWith(), "default", startTime, errProhibited)
	for name, change := range map[string]func(*pcapi.VM){
		"another name: checked again": func(vm *pcapi.VM) { vm.Spec.VMName = "db" },
		"another requested reconcile: checked again": func(vm *pcapi.VM) {
			vm.Annotations = map[string]string{pcapi.ReconcileRequestedAtAnnotation: "now"}
		},
		"another VM of the same vmname: checked again": func(vm *pcapi.VM) { vm.UID = "uid-b" },
		"a new object of the same name: checked again": func(vm *pcapi.VM) { vm.UID = "uid-a2" },
	} {
		t.Run(name, func(t *testing.T) {
			if got := r.recall(vmWith(change), "default"); got != nil {
				t.Errorf("refusal %v, want none", got)
			}
		})
	}
	t.Run("another Cloud: checked again", func(t *testing.T) {
		if got := r.recall(vmWith(), "another"); got != nil {
			t.Errorf("refusal %v, want none", got)
		}
	})
	t.Run("another field edited: refusal kept", func(t *testing.T) {
		if got := r.recall(vmWith(func(vm *pcapi.VM) { vm.Spec.CPU = nil }), "default"); !errors.Is(got, errProhibited) {
			t.Errorf("refusal %v, want %v", got, errProhibited)
		}
	})
}

func TestRefusalsAreBounded(t *testing.T) {
	r := newRefusals(func() time.Time { return startTime })
	first := vmWith()
	r.record(first, "default", startTime, errProhibited)
	for i := range maxRefusals {
		r.record(other(fmt.Sprint(i)), "default", startTime, errProhibited)
	}
	if got := r.recall(first, "default"); got != nil {
		t.Errorf("the oldest of %d refusals was not dropped", maxRefusals+1)
	}
	if got := r.recall(other("0"), "default"); got == nil {
		t.Error("a younger refusal was dropped")
	}
}

// TestRefusalsTakeBoundedMemory: a tenant edits its VMs, and requests reconciles of them, as often as it likes. What it
// writes is kept as a digest, and once for each VM.
func TestRefusalsTakeBoundedMemory(t *testing.T) {
	r := newRefusals(func() time.Time { return startTime })
	for vm := range 8 {
		for edit := range 200 {
			edited := other(fmt.Sprint(vm), func(vm *pcapi.VM) {
				vm.Annotations = map[string]string{pcapi.ReconcileRequestedAtAnnotation: fmt.Sprint(edit) + strings.Repeat("x", 1000)}
				vm.Generation = int64(edit)
			})
			r.record(edited, "default", startTime, errTaken)
			r.recordPart(cloud.LabelPart, edited, errTaken, time.Hour)
		}
	}
	equal(t, "remembered", 8+8, len(r.names.Keys())+len(r.parts.Keys()))
	for vm := range 8 {
		r.forget(other(fmt.Sprint(vm)).UID)
	}
	equal(t, "remembered of VMs that are gone", 0, len(r.names.Keys())+len(r.parts.Keys()))

	r.free(other("freed", func(vm *pcapi.VM) { vm.Spec.VMName = strings.Repeat("x", 1000) }), []string{strings.Repeat("y", 1000)})
	for _, key := range r.freed.Keys() {
		if _, ok := key.(digest); !ok {
			t.Errorf("a name that was freed is remembered as %T, want a digest of it", key)
		}
	}
	equal(t, "remembered of names that were freed", 1, len(r.freed.Keys()))
}

// TestRefusalsConcurrently finds data races; run it with -race.
func TestRefusalsConcurrently(*testing.T) {
	r := newRefusals(time.Now)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				r.record(vmWith(), "default", startTime, errTaken)
				_ = r.recall(vmWith(), "default")
			}
		})
	}
	group.Wait()
}
