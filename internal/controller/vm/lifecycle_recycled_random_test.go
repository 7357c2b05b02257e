package vm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// traffic creates and deletes VMs on a cloud that gives each id again at once, the lowest first.
type traffic struct {
	*harness
	rand *rand.Rand
	// made counts the objects and the servers of strangers, for unique names and UIDs.
	made      int
	strangers []string
	// answering: a deletion is being answered. given counts the ids that a VM got meanwhile.
	answering bool
	given     int
	trace     []string
}

func (f *traffic) note(format string, args ...any) {
	f.trace = append(f.trace, fmt.Sprintf(format, args...))
}

// all returns the VMs, in the order of their names.
func (f *traffic) all() []pcapi.VM {
	f.t.Helper()
	var list pcapi.VMList
	if err := f.client.List(f.t.Context(), &list, client.InNamespace("ns")); err != nil {
		f.t.Fatal(err)
	}
	return list.Items
}

// create creates a VM. Another one had its name before, perhaps.
func (f *traffic) create() {
	name := fmt.Sprintf("vm%d", f.rand.IntN(12))
	if slices.ContainsFunc(f.all(), func(vm pcapi.VM) bool { return vm.Name == name }) {
		return
	}
	f.made++
	vm := other(name, func(vm *pcapi.VM) { vm.Spec.VMName, vm.CreationTimestamp = name, metav1.NewTime(f.now) })
	vm.UID = types.UID(fmt.Sprintf("uid-%d", f.made))
	if err := f.client.Create(f.t.Context(), vm); err != nil {
		f.t.Fatal(err)
	}
	f.note("create %s", name)
}

func (f *traffic) delete(vm *pcapi.VM) {
	if !vm.DeletionTimestamp.IsZero() {
		return
	}
	if err := client.IgnoreNotFound(f.client.Delete(f.t.Context(), vm)); err != nil {
		f.t.Fatal(err)
	}
	f.note("delete %s", vm.Name)
}

// intrude creates a server of somebody else, with the lowest id that is free.
func (f *traffic) intrude() {
	if len(f.strangers) == 4 {
		return
	}
	n := 1
	for f.cloud.HasServer(fmt.Sprintf("s%d", n)) {
		n++
	}
	f.made++
	id := fmt.Sprintf("s%d", n)
	f.cloud.AddServers(cloud.Server{ID: id, Name: fmt.Sprintf("of-others-%d", f.made), State: cloud.StateActive, CreatedAt: f.now})
	f.strangers = append(f.strangers, id)
	f.note("a stranger gets %s", id)
}

// answer has what waits get the id of a server before its deletion is answered.
func (f *traffic) answer(_ context.Context, verb cloudfake.Verb, id string) {
	if verb != cloudfake.DeleteServer || f.answering || f.cloud.HasServer(id) {
		return
	}
	f.answering = true
	defer func() { f.answering = false }()
	f.advance(time.Second)
	if f.rand.IntN(5) == 0 {
		f.intrude()
	}
	for _, vm := range f.all() {
		if vm.Status.VMID == "" && f.rand.IntN(2) == 0 {
			f.note("before the deletion of %s is answered, reconcile %s", id, vm.Name)
			f.reconcileVM(vm.Name)
		}
	}
	if f.cloud.HasServer(id) && !slices.Contains(f.strangers, id) {
		f.given++
	}
}

func (f *traffic) step() {
	vms := f.all()
	switch at := f.rand.IntN(20); {
	case at < 4:
		f.create()
	case at < 6 && len(vms) > 0:
		f.delete(&vms[f.rand.IntN(len(vms))])
	case at < 15 && len(vms) > 0:
		vm := vms[f.rand.IntN(len(vms))]
		f.note("reconcile %s", vm.Name)
		f.reconcileVM(vm.Name)
	case at < 18:
		f.note("list")
		f.later(time.Second)
	default:
		f.advance(time.Duration(f.rand.IntN(20)) * time.Second)
	}
}

// rest reconciles all VMs until nothing is left to do.
func (f *traffic) rest() {
	for range 8 {
		f.later(time.Minute)
		for _, vm := range f.all() {
			f.reconcileVM(vm.Name)
		}
	}
}

func (f *traffic) check() error {
	servers := map[string]string{}
	for _, vm := range f.all() {
		if ready := readyOf(&vm); ready != "True Running" {
			return fmt.Errorf("%s is %s", vm.Name, ready)
		}
		if last := servers[vm.Status.VMID]; last != "" || !f.cloud.HasServer(vm.Status.VMID) {
			return fmt.Errorf("%s has server %s, which %q has, too, or which does not exist", vm.Name, vm.Status.VMID, last)
		}
		servers[vm.Status.VMID] = vm.Name
	}
	for _, id := range f.cloud.ServerIDs() {
		if servers[id] == "" && !slices.Contains(f.strangers, id) {
			return fmt.Errorf("server %s is left", id)
		}
	}
	for _, id := range f.strangers {
		if !strings.HasPrefix(f.cloud.Server(id).Name, "of-others") {
			return fmt.Errorf("the server %s of a stranger is gone", id)
		}
	}
	return nil
}

// Twelve names are created and deleted at random, and the cloud frees the id of a server before it answers the deletion.
func TestRandomTrafficOnACloudThatGivesIDsAgainLeavesNoServer(t *testing.T) {
	for name, caps := range reusing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := 0
			for seed := range uint64(6) {
				f := &traffic{harness: newHarness(t, caps), rand: rand.New(rand.NewPCG(seed, 12))}
				f.cloud.SetReusesIDs(true)
				f.cloud.OnAnswer(f.answer)
				for range 12 {
					f.create()
				}
				err := func() error {
					for range 200 {
						f.step()
					}
					f.rest()
					if err := f.check(); err != nil {
						return err
					}
					for _, vm := range f.all() {
						f.delete(&vm)
					}
					f.rest()
					if left := f.all(); len(left) > 0 {
						return fmt.Errorf("%s is not released: %v", left[0].Name, left[0].Status.Conditions)
					}
					return f.check()
				}()
				if err != nil {
					t.Fatalf("seed %d: %v\nservers %v of strangers %v\nafter %s", seed, err, f.cloud.ServerIDs(), f.strangers, strings.Join(f.trace, "\n"))
				}
				given += f.given
			}
			if given < 10 {
				t.Errorf("%d ids were given to another VM before a deletion was answered, want 10 or more", given)
			}
		})
	}
}
