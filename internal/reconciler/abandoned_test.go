package reconciler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// abandonedWorld is a kind whose create makes a server in memory, and that
// deletes it before it releases an object.
type abandonedWorld struct {
	*harness

	servers map[types.UID]string
	// created is called between the create and the status write.
	created func(ctx context.Context, vm *pcapi.VM) error
	// deleting, if set, is the outcome of a delete.
	deleting error
	deletes  []string
}

func newAbandonedWorld(t *testing.T, vm *pcapi.VM) *abandonedWorld {
	t.Helper()
	w := &abandonedWorld{harness: newHarness(t, vm), servers: map[types.UID]string{}}
	w.reconciler.External = true
	w.kind.needs = reconciler.Mutates | reconciler.NeedsCloud
	var observed *pcapi.VM
	w.kind.observe = func(_ context.Context, vm *pcapi.VM) error {
		observed = vm
		return nil
	}
	w.kind.plan = func() ([]string, error) {
		switch {
		case !observed.DeletionTimestamp.IsZero():
			return []string{"delete", "release"}, nil
		case observed.Status.VMID == "":
			return []string{"claim", "create"}, reconciler.Wait(time.Minute, "Creating", "building")
		}
		return nil, nil
	}
	w.kind.act = w.act
	return w
}

func (w *abandonedWorld) act(ctx context.Context, vm *pcapi.VM, step string) error {
	switch step {
	case "claim":
		return reconciler.Claim(ctx, w.client, vm, finalizer, map[string]string{note: "web"})
	case "create":
		w.servers[vm.UID] = "server-of-" + string(vm.UID)
		vm.Status.VMID = w.servers[vm.UID]
		if w.created != nil {
			return w.created(ctx, vm)
		}
	case "delete":
		if w.deleting != nil {
			return w.deleting
		}
		w.deletes = append(w.deletes, vm.Status.VMID)
		delete(w.servers, vm.UID)
	case "release":
		return reconciler.Release(ctx, w.client, vm, finalizer, note)
	}
	return nil
}

// TestAbandonedObjectIsDeletedAtOnce removes the object after its claim was
// stored, as kube-apiserver does when a DELETE was under way.
func TestAbandonedObjectIsDeletedAtOnce(t *testing.T) {
	for name, vanish := range map[string]func(*abandonedWorld) func(context.Context, *pcapi.VM) error{
		"the object is gone":              func(w *abandonedWorld) func(context.Context, *pcapi.VM) error { return w.forget },
		"another object has the name":     func(w *abandonedWorld) func(context.Context, *pcapi.VM) error { return w.replace },
		"gone, and the manager stops now": func(w *abandonedWorld) func(context.Context, *pcapi.VM) error { return w.forget },
		"gone when metadata is written": func(w *abandonedWorld) func(context.Context, *pcapi.VM) error {
			return func(ctx context.Context, vm *pcapi.VM) error {
				if err := w.forget(ctx, vm); err != nil {
					return err
				}
				return reconciler.Claim(ctx, w.client, vm, finalizer, map[string]string{note: "renamed"})
			}
		},
		"another object has the name when metadata is written": func(w *abandonedWorld) func(context.Context, *pcapi.VM) error {
			return func(ctx context.Context, vm *pcapi.VM) error {
				if err := w.replace(ctx, vm); err != nil {
					return err
				}
				return reconciler.Claim(ctx, w.client, vm, finalizer, map[string]string{note: "renamed"})
			}
		},
	} {
		t.Run(name+": what was created is deleted", func(t *testing.T) {
			w := newAbandonedWorld(t, example(unclaimed))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			w.created = func(ctx context.Context, vm *pcapi.VM) error {
				if name == "gone, and the manager stops now" {
					stop()
				}
				return vanish(w)(ctx, vm)
			}
			result, err := w.reconciler.Reconcile(ctx, request)
			if err != nil {
				t.Fatalf("Reconcile: %v", err)
			}
			equal(t, "result", ctrl.Result{}, result)
			equal(t, "deleted", []string{"server-of-uid-a"}, w.deletes)
			equal(t, "servers left", map[types.UID]string{}, w.servers)
			w.wantEvents("Normal Running Delete: all is well")
		})
	}
}

func TestObjectIsNotAbandoned(t *testing.T) {
	vanishLater := func(w *abandonedWorld) {
		w.mustReconcile()
		w.created = nil
		w.kind.report = func(vm *pcapi.VM, _ error) { vm.Status.Host = time.Now().String() }
		w.kind.observe = func(ctx context.Context, vm *pcapi.VM) error { return w.forget(ctx, vm) }
		w.kind.plan = nil
	}
	tests := map[string]struct {
		vm      *pcapi.VM
		arrange func(*abandonedWorld)
	}{
		"claimed by an earlier process": {vm: example(annotated("web")), arrange: func(w *abandonedWorld) {
			w.created = w.forget
		}},
		"its claim is older than any request of Kubernetes": {vm: example(unclaimed), arrange: func(w *abandonedWorld) {
			vanishLater(w)
			sleep(3 * time.Minute)
		}},
		"a kind without external resources": {vm: example(unclaimed), arrange: func(w *abandonedWorld) {
			w.reconciler.External, w.created = false, w.forget
		}},
		"paused": {vm: example(unclaimed), arrange: func(w *abandonedWorld) {
			w.created = func(ctx context.Context, vm *pcapi.VM) error {
				vm.Annotations[pcapi.PausedAnnotation] = "true"
				return w.forget(ctx, vm)
			}
		}},
		"deleted by a user": {vm: example(unclaimed), arrange: func(w *abandonedWorld) {
			w.created = func(ctx context.Context, vm *pcapi.VM) error {
				now := metav1.Now()
				vm.DeletionTimestamp = &now
				return w.forget(ctx, vm)
			}
		}},
	}
	for name, tc := range tests {
		t.Run(name+": nothing is deleted", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newAbandonedWorld(t, tc.vm)
				tc.arrange(w)
				w.mustReconcile()
				w.mustReconcile()
				equal(t, "deleted", []string(nil), w.deletes)
				equal(t, "servers", map[types.UID]string{"uid-a": "server-of-uid-a"}, w.servers)
			})
		})
	}
}

// TestAbandonedObjectIsReconciledUntilReleased: the deletion takes time, and
// another object of the name waits for it.
func TestAbandonedObjectIsReconciledUntilReleased(t *testing.T) {
	w := newAbandonedWorld(t, example(unclaimed))
	w.created = w.replace
	w.deleting = reconciler.Wait(7*time.Second, "Requested", "the cloud is deleting it")
	wantRequeue(t, 7*time.Second, w.mustReconcile())
	w.created = nil
	for range 2 {
		wantRequeue(t, 7*time.Second, w.mustReconcile())
		equal(t, "reason of the other object", pcapi.ProgressingReason, reasonOf(w.stored()))
		equal(t, "servers", map[types.UID]string{"uid-a": "server-of-uid-a"}, w.servers)
	}
	w.deleting = reconciler.Stalled("Blocked", 0, errBroken)
	equal(t, "result of a stalled deletion: tried again", ctrl.Result{RequeueAfter: 30 * time.Second}, w.mustReconcile())

	w.deleting = nil
	w.mustReconcile()
	equal(t, "deleted, by the id that only memory has", []string{"server-of-uid-a"}, w.deletes)
	equal(t, "servers: the other object has its own", map[types.UID]string{"uid-b": "server-of-uid-b"}, w.servers)
	equal(t, "stored id of the other object", "server-of-uid-b", w.stored().Status.VMID)
}

// TestAbandonedObjectThatIsBlockedIsGivenUp: nobody can edit an object that is gone. The other object of the name
// says what is wrong, and until when it waits. An outage of the cloud, or a brake, may take longer than a decision.
func TestAbandonedObjectThatIsBlockedIsGivenUp(t *testing.T) {
	for name, tc := range map[string]struct {
		deleting error
		after    time.Duration
	}{
		"it needs a user":             {reconciler.Stalled("Blocked", 0, errBroken), 15 * time.Minute},
		"it waits for another object": {reconciler.Blocked("Cloud/default", "CloudUnavailable", "%v", errBroken), 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newAbandonedWorld(t, example(unclaimed))
				w.created, w.deleting = w.replace, tc.deleting
				until := time.Now().Add(tc.after).UTC().Format(time.RFC3339)
				w.mustReconcile()
				w.created = nil
				for range 3 {
					w.mustReconcile()
					message := meta.FindStatusCondition(w.stored().Status.Conditions, pcapi.ReadyCondition).Message
					for _, part := range []string{"an earlier object of this name", errBroken.Error(), until} {
						if !strings.Contains(message, part) {
							t.Errorf("message %q, want %q in it", message, part)
						}
					}
					<-time.After(tc.after/3 - time.Second)
				}
				equal(t, "servers before", map[types.UID]string{"uid-a": "server-of-uid-a"}, w.servers)
				<-time.After(4 * time.Second)
				w.mustReconcile()
				equal(t, "servers", map[types.UID]string{"uid-a": "server-of-uid-a", "uid-b": "server-of-uid-b"}, w.servers)
			})
		})
	}
}

// TestAbandonedObjectIsNotGivenUpAtItsFirstRefusal: after an outage, the cloud may refuse one request.
func TestAbandonedObjectIsNotGivenUpAtItsFirstRefusal(t *testing.T) {
	for name, first := range map[string]error{
		"after it was blocked": reconciler.Blocked("Cloud/default", "CloudUnavailable", "%v", errBroken),
		"after it waited":      reconciler.Wait(time.Minute, "Deleting", "the cloud is deleting it"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newAbandonedWorld(t, example(unclaimed))
				w.created, w.deleting = w.replace, first
				w.mustReconcile()
				w.created = nil
				<-time.After(time.Hour)
				for range 2 {
					w.deleting = reconciler.Stalled("Blocked", 0, errBroken)
					w.mustReconcile()
					equal(t, "kept", 1, len(w.reconciler.Abandoned()))
					<-time.After(10 * time.Minute)
					w.deleting = first
					w.mustReconcile()
				}
				w.deleting = nil
				w.mustReconcile()
				equal(t, "deleted", []string{"server-of-uid-a"}, w.deletes)
			})
		})
	}
}

func TestDeletionDoesNotWaitForAnEarlierObjectOfTheName(t *testing.T) {
	w := newAbandonedWorld(t, example(unclaimed))
	w.created = w.replace
	w.deleting = reconciler.Stalled("Blocked", 0, errBroken)
	w.mustReconcile()
	next := w.stored()
	next.Finalizers = []string{finalizer}
	if err := w.client.Update(t.Context(), next); err != nil {
		t.Fatalf("Update: %v", err)
	}
	if err := w.client.Delete(t.Context(), next); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	result := w.mustReconcile()
	equal(t, "error of the deletion: tried", "Blocked", reasonOf(w.stored()))
	if result.RequeueAfter == 0 || result.RequeueAfter > 30*time.Second {
		t.Errorf("again after %v, want at most 30s: the earlier object waits", result.RequeueAfter)
	}
}

// TestEarlierObjectIsEnqueuedOnceALaterOneIsGone: its own retry may have been that of the later one.
func TestEarlierObjectIsEnqueuedOnceALaterOneIsGone(t *testing.T) {
	w := newAbandonedWorld(t, example(unclaimed))
	w.created = w.replace
	w.deleting = reconciler.Blocked("Cloud/default", "CloudUnavailable", "%v", errBroken)
	w.mustReconcile()
	later := w.stored()
	later.DeletionTimestamp = new(metav1.Now())
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	w.reconciler.Forget(func(client.Object) {}).Delete(t.Context(), event.DeleteEvent{Object: later}, queue)
	equal(t, "enqueued", 1, queue.Len())
}

// TestAbandonedObjectKeepsNoMetadataOfUsers: it may be long, and the deletion does not need it.
func TestAbandonedObjectKeepsNoMetadataOfUsers(t *testing.T) {
	controls := true
	group := metav1.OwnerReference{Kind: "VmGroup", Name: "web", UID: "uid-web", Controller: &controls}
	w := newAbandonedWorld(t, example(unclaimed, func(vm *pcapi.VM) {
		vm.Annotations = map[string]string{
			"example.com/long": "x", "samplecontroller.k8s.io/other": "x", pcapi.ReconcileRequestedAtAnnotation: "x", pcapi.DeletionProtectionAnnotation: "true",
		}
		vm.Labels = map[string]string{"app": "web"}
		vm.Finalizers = append(vm.Finalizers, "example.com/other")
		vm.OwnerReferences = []metav1.OwnerReference{{Kind: "App", Name: "web", UID: "uid-app"}, group}
	}))
	w.created = w.replace
	w.deleting = reconciler.Blocked("Cloud/default", "CloudUnavailable", "%v", errBroken)
	w.mustReconcile()
	for _, vm := range w.reconciler.Abandoned() {
		equal(t, "deletion-protection", "true", vm.Annotations[pcapi.DeletionProtectionAnnotation])
		for _, key := range []string{"example.com/long", pcapi.ReconcileRequestedAtAnnotation} {
			equal(t, "value of "+key, "", vm.Annotations[key])
		}
		equal(t, "unknown annotation of the operator's group", "", vm.Annotations["samplecontroller.k8s.io/other"])
		equal(t, "labels", 0, len(vm.Labels))
		equal(t, "finalizers", []string{finalizer}, vm.Finalizers)
		equal(t, "owners", []metav1.OwnerReference{group}, vm.OwnerReferences)
	}
	equal(t, "abandoned", 1, len(w.reconciler.Abandoned()))
}

func TestAbandonedObjectsOfOneNamespaceAreBounded(t *testing.T) {
	w := newAbandonedWorld(t, example(unclaimed))
	w.deleting = reconciler.Stalled("Blocked", 0, errBroken)
	w.reconciler.ClaimOf = claimOfToy
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	forget := w.reconciler.Forget(func(client.Object) {})
	remove := func(namespace string, n int) {
		for i := range n {
			vm := example()
			vm.Namespace, vm.Name, vm.UID = namespace, fmt.Sprint("vm-", i), types.UID(fmt.Sprint(namespace, i))
			vm.Finalizers, vm.Annotations = nil, nil
			forget.Delete(t.Context(), event.DeleteEvent{Object: vm}, queue)
		}
	}
	remove("hostile", 1500)
	remove("others", 10)
	equal(t, "kept", 1010, len(w.reconciler.Abandoned()))
}

func TestAbandonedObjectIsNotReconciledFromAStaleCache(t *testing.T) {
	w := newAbandonedWorld(t, example(unclaimed))
	w.reconciler.Client = &cached{Client: w.client, vm: w.stored()}
	w.created = w.forget
	for range 3 {
		w.mustReconcile()
	}
	equal(t, "deleted", []string{"server-of-uid-a"}, w.deletes)
	equal(t, "servers left", map[types.UID]string{}, w.servers)
}

func TestAbandonedObjectWaitsForTheLease(t *testing.T) {
	w := newAbandonedWorld(t, example(unclaimed))
	leading := true
	w.reconciler.Leading = func() bool { return leading }
	w.created = func(ctx context.Context, vm *pcapi.VM) error {
		leading = false
		return w.forget(ctx, vm)
	}
	w.mustReconcile()
	equal(t, "deleted while another manager may act", []string(nil), w.deletes)
	leading = true
	w.mustReconcile()
	equal(t, "deleted", []string{"server-of-uid-a"}, w.deletes)
}
