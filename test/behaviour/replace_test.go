package behaviour_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// rarelyListed makes a Cloud report nothing by itself during a case.
func rarelyListed(c *pcapi.Cloud) { c.Spec.PollInterval.Duration = time.Hour }

// replace writes an object without finalizers and annotations, as kubectl replace, Argo CD
// with Replace=true and helm upgrade --force do.
func replace(t *T, object client.Object) {
	t.Helper()
	t.Eventually(func(ctx context.Context) error {
		fresh := object.DeepCopyObject().(client.Object)
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), fresh); err != nil {
			return err
		}
		fresh.SetFinalizers(nil)
		fresh.SetAnnotations(nil)
		return env.Client.Update(ctx, fresh)
	}).Should(Succeed())
}

// metadataOf returns a function that reads the finalizers and annotations of an object.
func metadataOf(object client.Object) func(context.Context) ([]any, error) {
	return func(ctx context.Context) ([]any, error) {
		fresh := object.DeepCopyObject().(client.Object)
		err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), fresh)
		return []any{fresh.GetFinalizers(), fresh.GetAnnotations()}, err
	}
}

// claimChangesOf returns all ways in which somebody may remove or change the claim of an object.
func claimChangesOf(object client.Object) []func(client.Object) {
	changes := []func(client.Object){func(client.Object) {}}
	product := func(more ...func(client.Object)) {
		var all []func(client.Object)
		for _, first := range changes {
			for _, then := range more {
				all = append(all, func(o client.Object) { first(o); then(o) })
			}
		}
		changes = all
	}
	product(func(client.Object) {}, func(o client.Object) { o.SetFinalizers(nil) })
	for key := range object.GetAnnotations() {
		written := func(o client.Object) {
			annotations := o.GetAnnotations()
			annotations[key] = "what-somebody-wrote"
			o.SetAnnotations(annotations)
		}
		if key == pcapi.ClaimedUIDAnnotation { // with an id on record, it does not matter who wrote the claim
			continue
		}
		product(func(client.Object) {}, written, func(o client.Object) {
			annotations := o.GetAnnotations()
			delete(annotations, key)
			o.SetAnnotations(annotations)
		})
	}
	return changes[1:]
}

// claimRestored returns a case of an object, of a Cloud that is not listed, whose claim
// somebody removes or changes in every possible way.
func claimRestored(create func(f *fixture) client.Object) func(*T) {
	return func(t *T) {
		f := newFixture(t, mockcloud.Options{}, rarelyListed)
		object := create(f)
		t.Eventually(metadataOf(object)).Should(ContainElement(HaveLen(1)), "it has its finalizer")
		object = get(t, object)
		want := []any{object.GetFinalizers(), object.GetAnnotations()}
		for _, change := range claimChangesOf(object) {
			fresh := get(t, object)
			change(fresh)
			t.Expect(env.Client.Update(t.Context(), fresh)).To(Succeed())
			t.Eventually(metadataOf(object)).Should(Equal(want), "of %v", []any{fresh.GetFinalizers(), fresh.GetAnnotations()})
		}
	}
}

// inTurn are objects of another Cloud, each of which is created when the one before it is Ready. They measure what is to happen in less than a
// second, in place of a clock: a busy machine delays both.
var inTurn = []string{"second", "third", "fourth"}

// restoredAtOnce returns a case of an object that is replaced. Nothing but the event of that write can bring its claim back: the Cloud is
// not listed. create makes an object and waits until it is Ready.
func restoredAtOnce(create func(f *fixture, name string) client.Object) func(*T) {
	return func(t *T) {
		f, beside := newFixture(t, mockcloud.Options{}, rarelyListed), newFixture(t, mockcloud.Options{}, rarelyListed)
		create(beside, "first")
		object := create(f, "replaced")
		want := []any{object.GetFinalizers(), object.GetAnnotations()}
		t.Expect(object.GetFinalizers()).To(HaveLen(1))
		listings := f.CountCalls("GET", "/servers")

		replace(t, object)
		for _, name := range inTurn {
			create(beside, name)
		}
		t.Expect(metadataOf(object)(t.Context())).To(Equal(want), "it is whole before three that were created later, one after the other, are Ready")
		t.Expect(f.CountCalls("GET", "/servers")).To(Equal(listings), "no listing brought it back")
	}
}

// replacedAndDeleted returns a case of an object that is replaced and then deleted, before the
// operator has put its finalizer back or after it.
func replacedAndDeleted(options mockcloud.Options, at bool, create func(f *fixture) client.Object, left func(f *fixture) int) func(*T) {
	return func(t *T) {
		f := newFixture(t, options, rarelyListed)
		object := create(f)
		t.Expect(left(f)).To(Equal(1), "it is in the cloud")
		replace(t, object)
		if !at {
			t.Eventually(metadataOf(object)).Should(ContainElement(HaveLen(1)), "it has its finalizer again")
		}
		deleteObject(t, object)
		t.Eventually(func() int {
			touch(t, f.object)
			return left(f)
		}).Should(BeZero(), "nothing is left in the cloud")
		t.Eventually(isGone(object)).Should(BeTrue())
	}
}

func TestReplacedObject(t *testing.T) {
	vm := func(f *fixture) client.Object { return f.readyVM("web") }
	stopped := func(f *fixture) client.Object {
		return f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
	}
	network := func(f *fixture) client.Object { return f.readyNetwork("net") }
	snapshot := func(f *fixture) client.Object {
		f.readyVM("web")
		snap := f.createSnapshot()
		f.t.Eventually(latest(snap)).Should(HaveField("Status.SnapshotID", Not(BeEmpty())))
		return get(f.t, snap)
	}
	servers := func(f *fixture) int { return len(f.Servers()) }
	networks := func(f *fixture) int { return len(f.Networks()) }
	snapshots := func(f *fixture) int {
		n := 0
		for _, s := range f.Servers() {
			n += len(f.Snapshots(s.ID))
		}
		return n
	}
	core := mockcloud.Options{Profile: mockcloud.Core}
	all := cases{
		"VM: its claim is back at once": restoredAtOnce(func(f *fixture, name string) client.Object { return f.readyVM(name) }),
		"stopped VM: its claim is back at once": restoredAtOnce(func(f *fixture, name string) client.Object {
			return f.readyVM(name, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		}),
		"Network: its claim is back at once": restoredAtOnce(func(f *fixture, name string) client.Object { return f.readyNetwork(name) }),
		"VMSnapshot: its claim is back at once": restoredAtOnce(func(f *fixture, name string) client.Object {
			if len(f.Servers()) == 0 {
				f.readyVM("web")
			}
			snap := f.createSnapshot(func(s *pcapi.VMSnapshot) { s.Name = name })
			f.t.Eventually(latest(snap)).Should(testkit.BeReady())
			return get(f.t, snap)
		}),
		"VM, stopped and never listed: its claim is whole after any change":                                     claimRestored(stopped),
		"Network: its claim is whole after any change":                                                          claimRestored(network),
		"VMSnapshot: its claim is whole after any change":                                                       claimRestored(snapshot),
		"VmGroup: its finalizer is back":                                                                        claimRestored(func(f *fixture) client.Object { g, _ := f.readyGroup("web", 1); return g }),
		"Cloud that is rarely listed: its finalizer is back":                                                    claimRestored(func(f *fixture) client.Object { return get(f.t, f.object) }),
		"VM that is deleted at once: its server is deleted":                                                     replacedAndDeleted(mockcloud.Options{}, true, vm, servers),
		"VM that is deleted at once, core cloud: its server is deleted":                                         replacedAndDeleted(core, true, vm, servers),
		"stopped VM that is deleted a moment later: its server is deleted":                                      replacedAndDeleted(mockcloud.Options{}, false, stopped, servers),
		"Network that is deleted at once: its network is deleted":                                               replacedAndDeleted(mockcloud.Options{}, true, network, networks),
		"VMSnapshot that is deleted at once: its snapshot is deleted":                                           replacedAndDeleted(mockcloud.Options{}, true, snapshot, snapshots),
		"VM with deletionPolicy Orphan, deleted at once: its server stays":                                      replacedOrphan,
		"VM, during its create: there is one create, and its claim is whole":                                    replacedDuringCreate(mockcloud.Options{}, false),
		"VM, during its create whose answer is lost, labels alone: there is one create, and its claim is whole": replacedDuringCreate(without(mockcloud.Idempotency), true),
		"VM, during its create, deleted at once: its server is deleted":                                         replacedAndDeletedDuringCreate,
	}
	all.run(t)
}

func replacedOrphan(t *T) {
	f := newFixture(t, mockcloud.Options{}, rarelyListed)
	vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan })
	replace(t, vm)
	deleteObject(t, vm)
	t.Eventually(func() map[string]string {
		server, _ := f.Server(vm.Status.VMID)
		return server.Labels
	}).Should(BeEmpty(), "the owner labels are removed")
	t.Expect(f.serversNamed("web")).To(Equal([]string{vm.Status.VMID}))
}

func replacedDuringCreate(options mockcloud.Options, lost bool) func(*T) {
	return func(t *T) {
		f := newFixture(t, options)
		held := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/servers", Nth: 1}, Hold: true, Answer: mockcloud.After})
		vm := f.createVM("web")
		t.Expect(f.WaitHeld(t.Context(), held, 1)).To(Succeed())
		claimed := get(t, vm)
		t.Expect(controllerutil.ContainsFinalizer(claimed, pcapi.VMFinalizer)).To(BeTrue())
		replace(t, vm)
		if lost {
			t.Expect(f.DropFault(held)).To(Succeed())
		} else {
			t.Expect(f.ReleaseFault(held)).To(Succeed())
		}
		vm = waitReady(t, vm)
		t.Eventually(metadataOf(vm)).Should(Equal([]any{claimed.Finalizers, claimed.Annotations}))
		t.Expect(f.createCalls()).To(Equal(1))
	}
}

func replacedAndDeletedDuringCreate(t *T) {
	f := newFixture(t, mockcloud.Options{})
	held := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Method: "POST", Path: "/servers", Nth: 1}, Hold: true, Answer: mockcloud.After})
	vm := f.createVM("web")
	t.Expect(f.WaitHeld(t.Context(), held, 1)).To(Succeed())
	replace(t, vm)
	deleteObject(t, vm)
	t.Expect(isGone(vm)(t.Context())).To(BeTrue(), "nothing delayed the deletion")
	t.Expect(f.DropFault(held)).To(Succeed())
	t.Eventually(f.effects).Should(ContainElement(mockcloud.OpDelete), "its server is deleted")
	t.Eventually(f.Servers).Should(BeEmpty())
}
