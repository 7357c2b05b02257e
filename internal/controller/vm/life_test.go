package vm

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// fate is what befalls a world, by a seed.
type fate struct {
	*world
	rand *rand.Rand
	// ends: the VM is deleted at some time.
	ends bool
	// slow is whether the cloud builds and deletes only when it is made to finish.
	slow bool
	// recorded is the first vmId that was ever obs on record.
	recorded string
	trace    []string
}

func (f *fate) strike() {
	acts := []struct {
		name   string
		weight int
		do     func()
	}{
		{"pass", 12, func() { _, _ = f.pass() }},
		{"time", 4, func() { f.advance(time.Duration(f.rand.IntN(40)) * time.Second) }},
		{"poll", 6, f.poll},
		{"create lost", 3, func() { f.lose(cloudfake.CreateServer) }},
		{"delete lost", 2, func() { f.lose(cloudfake.DeleteServer) }},
		{"update lost", 1, func() { f.lose(cloudfake.UpdateServer) }},
		{"get refused", 2, func() { f.cloud.Fail(cloudfake.GetServer, errRefused, false) }},
		{"throttled", 1, func() { f.cloud.Fail(cloudfake.CreateServer, errThrottled, false) }},
		{"status not written", 3, func() { f.refuse["status"] = append(f.refuse["status"], errAPIAway) }},
		{"conflict", 2, func() { f.refuse["object"] = append(f.refuse["object"], errConflict) }},
		{"restart", 2, func() { f.start(); f.connect() }},
		{"away", 1, func() { f.inv.MarkUnavailable("connection refused") }},
		{"brake", 1, func() { f.inv.Brake(f.rand.IntN(2) == 0) }},
		{"builds", 1, func() { f.slow = !f.slow; f.cloud.SetSlow(f.slow) }},
		{"finish", 2, f.cloud.Finish},
		{"lag", 1, f.slacken},
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

func (f *fate) lose(verb cloudfake.Verb) {
	f.cloud.Fail(verb, errReset, f.rand.IntN(2) == 0)
}

// slacken has the listing lag, by less than the settle time.
func (f *fate) slacken() { f.cloud.SetLag(time.Duration(f.rand.IntN(110)) * time.Second) }

// hide has the listing leave out what is recorded; what is not is only ever shown late.
func (f *fate) hide() {
	if vm, ok := f.find(); ok && vm.Status.VMID != "" {
		f.cloud.Hide(vm.Status.VMID)
	}
}

func (f *fate) resize() {
	if vm, ok := f.find(); ok && vm.DeletionTimestamp.IsZero() {
		f.edit(func(vm *v1alpha1.VM) { *vm.Spec.CPU = int32(f.rand.IntN(4) + 1) })
	}
}

func (f *fate) end() {
	if vm, ok := f.find(); ok && f.ends && vm.DeletionTimestamp.IsZero() {
		f.remove()
	}
}

// heal ends all trouble, and gives everything time to come to rest.
func (f *fate) heal() {
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
		_, _ = f.pass()
	}
}

func (f *fate) mine() (ids []string) {
	for _, id := range f.cloud.ServerIDs() {
		if strings.HasPrefix(id, "s") {
			ids = append(ids, id)
		}
	}
	return ids
}

// always checks what must hold at any moment.
func (f *fate) always(exactlyOnce bool) error {
	vm, ok := f.find()
	switch {
	case exactlyOnce && len(f.mine()) > 1:
		return fmt.Errorf("%d servers of one VM: %v", len(f.mine()), f.mine())
	case ok && f.recorded != "" && vm.Status.VMID != f.recorded:
		return fmt.Errorf("vmId changed from %q to %q", f.recorded, vm.Status.VMID)
	case !ok && len(f.mine()) > 0:
		return fmt.Errorf("the object is gone and left %v", f.mine())
	}
	if ok {
		f.recorded = vm.Status.VMID
	}
	return nil
}

// atLast checks what must hold once all trouble is over.
func (f *fate) atLast() error {
	vm, ok := f.find()
	if f.ends {
		if ok || len(f.mine()) > 0 {
			return fmt.Errorf("deleted, and there is the object %t and servers %v", ok, f.mine())
		}
		return nil
	}
	server, there := f.cloud.Server(vm.Status.VMID), f.cloud.HasServer(vm.Status.VMID)
	ready, message := f.says(v1alpha1.ReadyCondition)
	switch {
	case len(f.mine()) != 1 || !there:
		return fmt.Errorf("vmId %q and servers %v; Ready=%s: %s", vm.Status.VMID, f.mine(), ready, message)
	case ready != "True Running":
		return fmt.Errorf("Ready=%s: %s", ready, message)
	case server.CPU != int(*vm.Spec.CPU):
		return fmt.Errorf("%d cores, want %d", server.CPU, *vm.Spec.CPU)
	}
	return nil
}

// TestWhateverHappensThereIsOneServerOrNone lets chance strike, on each kind of
// cloud that can prove whose a server is. A failure names its seed and what was done.
func TestWhateverHappensThereIsOneServerOrNone(t *testing.T) {
	stranger := cloud.Server{ID: "x1", Name: "db", State: cloud.StateActive, CPU: 9, CreatedAt: dawn}
	namesake := cloud.Server{ID: "x2", Name: "web", State: cloud.StateActive, CPU: 9, CreatedAt: dawn}
	for name, caps := range profiles {
		if !caps.Has(cloud.Labels) && !caps.Has(cloud.UniqueNames) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(30) {
				f := &fate{world: newWorld(t, caps, vmWith()), rand: rand.New(rand.NewPCG(seed, 1)), ends: seed%2 == 0}
				f.cloud.AddServers(stranger)
				if f.rand.IntN(2) == 0 {
					f.lose(cloudfake.CreateServer)
					f.slacken()
				}
				if !caps.Has(cloud.UniqueNames) {
					f.cloud.AddServers(namesake)
				}
				err := func() error {
					for range 60 {
						f.strike()
						if err := f.always(caps.Has(cloud.Idempotency) || caps.Has(cloud.UniqueNames)); err != nil {
							return err
						}
					}
					f.heal()
					return f.atLast()
				}()
				if err != nil {
					t.Fatalf("seed %d: %v\ncalls %v\nafter %s", seed, err, f.cloud.TakeCalls(cloudfake.ListServers), strings.Join(f.trace, ", "))
				}
				equal(t, "a stranger's server", stranger, f.cloud.Server("x1"))
				if !caps.Has(cloud.UniqueNames) {
					equal(t, "a stranger's server of the same name", namesake, f.cloud.Server("x2"))
				}
			}
		})
	}
}
