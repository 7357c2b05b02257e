package vm

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/privatecloud/operator/api/v1alpha1"
)

func TestUncertainSince(t *testing.T) {
	began := dawn
	tests := []struct {
		name string
		do   func(*creates)
		want time.Time
	}{
		{name: "of what an earlier process sent, nothing is known but that it was before this one began", do: func(*creates) {}, want: began},
		{name: "the create that was sent last counts", do: func(c *creates) { c.mark("a", began.Add(time.Minute)); c.mark("a", began.Add(time.Hour)) }, want: began.Add(time.Hour)},
		{name: "an answer that came is not on record yet: a listing may lag behind it", do: func(c *creates) { c.answered("a", "s1", began.Add(time.Minute)) }, want: began.Add(time.Minute)},
		{name: "another VM's create does not count", do: func(c *creates) { c.mark("b", began.Add(time.Hour)) }, want: began},
		{name: "one that is settled does not count", do: func(c *creates) { c.mark("a", began.Add(time.Hour)); c.forget("a") }, want: began},
		{name: "a clock that was set back makes nothing certain sooner", do: func(c *creates) { c.mark("a", began.Add(-time.Hour)) }, want: began},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := newCreates()
			tc.do(c)
			equal(t, "uncertain since", tc.want, c.uncertainSince("a", began))
		})
	}
}

func TestCreatesRememberTheServerThatWasMade(t *testing.T) {
	type answer struct {
		ID    string
		Known bool
	}
	c := newCreates()
	made := func() answer {
		id, known := c.madeFor("a")
		return answer{id, known}
	}
	c.mark("a", dawn)
	equal(t, "before an answer came", answer{}, made())
	c.answered("a", "s1", dawn)
	equal(t, "once it came", answer{"s1", true}, made())
	c.forget("a")
	equal(t, "once it is on record", answer{}, made())
	if len(c.sent)+len(c.made) != 0 {
		t.Errorf("%d entries are left behind", len(c.sent)+len(c.made))
	}
}

func TestRefusalsStandForATime(t *testing.T) {
	now := dawn
	r := newRefusals(func() time.Time { return now })
	prohibited, taken := vmWith(), other("b")
	r.record(prohibited, "default", errProhibited)
	r.record(taken, "default", errTaken)
	stands := func(after time.Duration, vm *v1alpha1.VM, want error) {
		t.Helper()
		now = dawn.Add(after)
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

func TestRefusalsAreOfOneNameAndOneRequest(t *testing.T) {
	r := newRefusals(func() time.Time { return dawn })
	r.record(vmWith(), "default", errProhibited)
	for name, change := range map[string]func(*v1alpha1.VM){
		"another name": func(vm *v1alpha1.VM) { vm.Spec.VMName = "db" },
		"another request": func(vm *v1alpha1.VM) {
			vm.Annotations = map[string]string{v1alpha1.ReconcileRequestedAtAnnotation: "now"}
		},
		"another of that name":  func(vm *v1alpha1.VM) { vm.UID = "uid-b" },
		"its successor by name": func(vm *v1alpha1.VM) { vm.UID = "uid-a2" },
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
	r := newRefusals(func() time.Time { return dawn })
	first := vmWith()
	r.record(first, "default", errProhibited)
	for i := range maxRefusals {
		r.record(other(fmt.Sprint(i)), "default", errProhibited)
	}
	if got := r.recall(first, "default"); got != nil {
		t.Errorf("the oldest of %d refusals still stands", maxRefusals+1)
	}
	if got := r.recall(other("0"), "default"); got == nil {
		t.Error("a younger one was dropped")
	}
}

// TestMemoryAtOnce finds data races; run it with -race.
func TestMemoryAtOnce(*testing.T) {
	c, r := newCreates(), newRefusals(time.Now)
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			uid := types.UID(fmt.Sprint(n % 2))
			for range 200 {
				c.mark(uid, dawn)
				c.answered(uid, "s1", dawn)
				c.madeFor(uid)
				c.uncertainSince(uid, dawn)
				c.forget(uid)
				r.record(vmWith(), "default", errTaken)
				_ = r.recall(vmWith(), "default")
			}
		})
	}
	group.Wait()
}
