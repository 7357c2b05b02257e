package vm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// randomRun applies a random sequence of actions and faults to a harness.
type randomRun struct {
	*harness
	rand *rand.Rand
	// ends reports whether the VM is deleted at some time.
	ends bool
	// slow reports whether the cloud builds and deletes only when finish is called.
	slow bool
	// recorded is the first vmId that was recorded.
	recorded string
	trace    []string
}

func (f *randomRun) runStep() {
	acts := []struct {
		name   string
		weight int
		do     func()
	}{
		{"reconcile", 12, func() { _, _ = f.reconcile() }},
		{"advance time", 4, func() { f.advance(time.Duration(f.rand.IntN(40)) * time.Second) }},
		{"poll", 6, f.poll},
		{"create lost", 3, func() { f.loseAnswer(cloudfake.CreateServer) }},
		{"delete lost", 2, func() { f.loseAnswer(cloudfake.DeleteServer) }},
		{"update lost", 1, func() { f.loseAnswer(cloudfake.UpdateServer) }},
		{"get refused", 2, func() { f.cloud.Fail(cloudfake.GetServer, errRefused, false) }},
		{"throttled", 1, func() { f.cloud.Fail(cloudfake.CreateServer, errThrottled, false) }},
		{"status not written", 3, func() { f.refuse["status"] = append(f.refuse["status"], errAPIAway) }},
		{"conflict", 2, func() { f.refuse["object"] = append(f.refuse["object"], errConflict) }},
		{"restart", 2, func() { f.start(); f.connect() }},
		{"unavailable", 1, func() { f.inv.MarkUnavailable("connection refused") }},
		{"brake", 1, func() { f.inv.Brake(f.rand.IntN(2) == 0) }},
		{"builds", 1, func() { f.slow = !f.slow; f.cloud.SetSlow(f.slow) }},
		{"finish", 2, f.cloud.Finish},
		{"lag", 1, f.delayListing},
		{"hide", 1, f.hide},
		{"show", 2, func() { f.cloud.Show() }},
		{"edit", 1, f.resize},
		{"delete", 1, f.end},
	}
	total := 0
	for _, a := range acts {
		total += a.weight
	}
	at := f.rand.IntN(total)
	for _, a := range acts {
		if at -= a.weight; at < 0 {
			f.trace = append(f.trace, a.name)
			a.do()
			return
		}
	}
}

func (f *randomRun) loseAnswer(verb cloudfake.Verb) {
	f.cloud.Fail(verb, errReset, f.rand.IntN(2) == 0)
}

// delayListing makes the listing lag by less than the settle time.
func (f *randomRun) delayListing() { f.cloud.SetLag(time.Duration(f.rand.IntN(110)) * time.Second) }

// hide removes the recorded server from the listing. A server that is not recorded
// is only listed late.
func (f *randomRun) hide() {
	if vm, ok := f.find(); ok && vm.Status.VMID != "" {
		f.cloud.Hide(vm.Status.VMID)
	}
}

func (f *randomRun) resize() {
	if vm, ok := f.find(); ok && vm.DeletionTimestamp.IsZero() {
		f.edit(func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(f.rand.Int32N(4) + 1) })
	}
}

func (f *randomRun) end() {
	if vm, ok := f.find(); ok && f.ends && vm.DeletionTimestamp.IsZero() {
		f.remove()
	}
}

// endFaults ends all faults and reconciles until nothing is left to do.
func (f *randomRun) endFaults() {
	f.cloud.Heal()
	f.cloud.Show()
	clear(f.refuse)
	f.cloud.SetLag(0)
	f.cloud.SetSlow(false)
	f.inv.Brake(false)
	f.end()
	for range 12 {
		f.cloud.Finish()
		f.later(time.Minute)
		_, _ = f.reconcile()
	}
}

func (f *randomRun) ownServers() (ids []string) {
	for _, id := range f.cloud.ServerIDs() {
		if strings.HasPrefix(id, "s") {
			ids = append(ids, id)
		}
	}
	return ids
}

// checkInvariants checks what must hold after every action.
func (f *randomRun) checkInvariants(exactlyOnce bool) error {
	vm, ok := f.find()
	switch {
	case exactlyOnce && len(f.ownServers()) > 1:
		return fmt.Errorf("%d servers of one VM: %v", len(f.ownServers()), f.ownServers())
	case ok && f.recorded != "" && vm.Status.VMID != f.recorded:
		return fmt.Errorf("vmId changed from %q to %q", f.recorded, vm.Status.VMID)
	case !ok && len(f.ownServers()) > 0:
		return fmt.Errorf("the object is gone and servers are left: %v", f.ownServers())
	}
	if ok {
		f.recorded = vm.Status.VMID
	}
	return nil
}

// checkFinalState checks what must hold once all faults have ended.
func (f *randomRun) checkFinalState() error {
	vm, ok := f.find()
	if f.ends {
		if ok || len(f.ownServers()) > 0 {
			return fmt.Errorf("deleted, and there is the object %t and servers %v", ok, f.ownServers())
		}
		return nil
	}
	server, there := f.cloud.Server(vm.Status.VMID), f.cloud.HasServer(vm.Status.VMID)
	ready, message := f.condition(pcapi.ReadyCondition)
	switch {
	case len(f.ownServers()) != 1 || !there:
		return fmt.Errorf("vmId %q and servers %v; Ready=%s: %s", vm.Status.VMID, f.ownServers(), ready, message)
	case ready != "True Running":
		return fmt.Errorf("Ready=%s: %s", ready, message)
	case server.CPU != vm.Spec.CPU.Count():
		return fmt.Errorf("%d cores, want %d", server.CPU, vm.Spec.CPU.Count())
	}
	return nil
}

// TestRandomFaultsNeverLeaveTwoServers applies random actions and faults, on each cloud
// that can prove which VM owns a server. A failure names its seed and the actions.
func TestRandomFaultsNeverLeaveTwoServers(t *testing.T) {
	stranger := cloud.Server{ID: "x1", Name: "db", State: cloud.StateActive, CPU: 9, CreatedAt: startTime}
	namesake := cloud.Server{ID: "x2", Name: "web", State: cloud.StateActive, CPU: 9, CreatedAt: startTime}
	for name, caps := range profiles {
		if !caps.Has(cloud.Labels) && !caps.Has(cloud.UniqueNames) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(30) {
				f := &randomRun{harness: newHarness(t, caps, vmWith()), rand: rand.New(rand.NewPCG(seed, 1)), ends: seed%2 == 0}
				f.cloud.AddServers(stranger)
				if f.rand.IntN(2) == 0 {
					f.loseAnswer(cloudfake.CreateServer)
					f.delayListing()
				}
				if !caps.Has(cloud.UniqueNames) {
					f.cloud.AddServers(namesake)
				}
				err := func() error {
					for range 60 {
						f.runStep()
						if err := f.checkInvariants(caps.Has(cloud.Idempotency) || caps.Has(cloud.UniqueNames)); err != nil {
							return err
						}
					}
					f.endFaults()
					return f.checkFinalState()
				}()
				if err != nil {
					t.Fatalf("seed %d: %v\ncalls %v\nafter %s", seed, err, f.cloud.TakeCalls(cloudfake.ListServers), strings.Join(f.trace, ", "))
				}
				equal(t, "a foreign server", stranger, f.cloud.Server("x1"))
				if !caps.Has(cloud.UniqueNames) {
					equal(t, "a foreign server of the same name", namesake, f.cloud.Server("x2"))
				}
			}
		})
	}
}
