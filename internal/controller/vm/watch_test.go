package vm

import (
	"context"
	"slices"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/tenancy"
)

// queuedRequest is a request with the priority at which it was queued.
type queuedRequest struct {
	Name     string
	Priority int
}

// priorityQueue records what is queued.
type priorityQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	queued []queuedRequest
}

func (l *priorityQueue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, r := range requests {
		l.queued = append(l.queued, queuedRequest{r.Namespace + "/" + r.Name, *o.Priority})
	}
}

// plainQueue is a queue without priorities.
type plainQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	queued []string
}

func (p *plainQueue) Add(r reconcile.Request) { p.queued = append(p.queued, r.Name) }

func TestEnqueueSetsPriority(t *testing.T) {
	vm := vmWith()
	reported := func(vm *pcapi.VM) { vm.Status.ObservedGeneration = vm.Generation }
	started := func(vm *pcapi.VM) func(q queue) {
		return func(q queue) {
			enqueue{}.Create(t.Context(), event.CreateEvent{Object: vm, IsInInitialList: true}, q)
		}
	}
	changed := vmWith(reported)
	changed.Generation = 2
	tests := []struct {
		name string
		do   func(q queue)
		want []queuedRequest
	}{
		{name: "created: priority of a request", do: func(q queue) { enqueue{}.Create(t.Context(), event.CreateEvent{Object: vm}, q) }, want: []queuedRequest{{"ns/a", priorityRequest}}},
		{name: "in the initial list: low priority", do: started(vmWith(recorded, reported)), want: []queuedRequest{{"ns/a", handler.LowPriority}}},
		{name: "in the initial list, never reconciled: priority of a request", do: started(vm), want: []queuedRequest{{"ns/a", priorityRequest}}},
		{name: "in the initial list, changed since: priority of a request", do: started(changed), want: []queuedRequest{{"ns/a", priorityRequest}}},
		{name: "in the initial list, being deleted: priority of a request", do: started(vmWith(recorded, reported, deleted)), want: []queuedRequest{{"ns/a", priorityRequest}}},
		{name: "updated: priority of a request", do: func(q queue) { enqueue{}.Update(t.Context(), event.UpdateEvent{ObjectOld: vm, ObjectNew: vm}, q) }, want: []queuedRequest{{"ns/a", priorityRequest}}},
		{name: "deleted: low priority", do: func(q queue) { enqueue{}.Delete(t.Context(), event.DeleteEvent{Object: vm}, q) }, want: []queuedRequest{{"ns/a", handler.LowPriority}}},
		{name: "generic event: not queued", do: func(q queue) { enqueue{}.Generic(t.Context(), event.GenericEvent{Object: vm}, q) }},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			l := &priorityQueue{}
			tc.do(l)
			equal(t, "queued", tc.want, l.queued)
		})
	}
	if order := []int{handler.LowPriority, priorityChange, priorityUnderWay, priorityRequest}; !slices.IsSorted(order) {
		t.Errorf("priorities %v are out of order", order)
	}
}

func TestEnqueueUsesQueueWithoutPriorities(t *testing.T) {
	p := &plainQueue{}
	enqueue{}.Create(t.Context(), event.CreateEvent{Object: vmWith()}, p)
	equal(t, "queued", []string{"a"}, p.queued)
}

func TestChangedByUser(t *testing.T) {
	annotate := func(key, value string) func(*pcapi.VM) {
		return func(vm *pcapi.VM) { vm.Annotations = map[string]string{key: value} }
	}
	finalized := func(vm *pcapi.VM) { vm.Finalizers = []string{pcapi.VMFinalizer} }
	claim := annotate(pcapi.ClaimedCloudAnnotation, "default")
	changedByUser := newHarness(t, everything).kind.ChangedByUser()
	tests := []struct {
		name    string
		was, is *pcapi.VM
		want    bool
	}{
		{name: "resync: rejected", was: vmWith(), is: vmWith()},
		{name: "spec changed: accepted", was: vmWith(), is: vmWith(func(vm *pcapi.VM) { vm.Generation = 2 }), want: true},
		{name: "deleted: accepted", was: vmWith(finalized), is: vmWith(finalized, deleted), want: true},
		{name: "paused: accepted", was: vmWith(), is: vmWith(annotate(pcapi.PausedAnnotation, "true")), want: true},
		{name: "no longer paused: accepted", was: vmWith(annotate(pcapi.PausedAnnotation, "true")), is: vmWith(), want: true},
		{name: "reconcile requested: accepted", was: vmWith(annotate(pcapi.ReconcileRequestedAtAnnotation, "1")), is: vmWith(annotate(pcapi.ReconcileRequestedAtAnnotation, "2")), want: true},
		{name: "finalizer removed by hand: accepted", was: vmWith(recorded, finalized, claim), is: vmWith(recorded, claim), want: true},
		{name: "claim removed by hand: accepted", was: vmWith(recorded, finalized, claim), is: vmWith(recorded), want: true},
		{name: "finalizer of an ObserveOnly VM removed by hand: accepted", was: vmWith(recorded, observing, finalized, claim), is: vmWith(recorded, observing), want: true},
		{name: "annotation of an ObserveOnly VM without a finalizer changed: rejected", was: vmWith(recorded, observing), is: vmWith(recorded, observing, annotate("other", "x"))},
		{name: "ObserveOnly VM released by the operator: rejected", was: vmWith(recorded, observing, finalized, deleted), is: vmWith(recorded, observing, deleted)},
		{name: "claim removed by the operator: rejected", was: vmWith(finalized, claim), is: vmWith()},
		{name: "released by the operator: rejected", was: vmWith(finalized, deleted), is: vmWith(deleted)},
		{name: "claimed by the operator: rejected", was: vmWith(), is: vmWith(finalized, annotate(pcapi.ClaimedNameAnnotation, "web"))},
		{name: "status written by the operator: rejected", was: vmWith(), is: vmWith(recorded)},
		{name: "other labels and annotations: rejected", was: vmWith(), is: vmWith(annotate("other", "x"), func(vm *pcapi.VM) { vm.Labels = map[string]string{"a": "b"} })},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			equal(t, "accepted", tc.want, changedByUser.Update(event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}))
		})
	}
	if !changedByUser.Create(event.CreateEvent{Object: vmWith()}) {
		t.Error("a new VM is not accepted")
	}
}

func TestSubscriberEnqueuesAffectedVMs(t *testing.T) {
	claimedOnFormerCloud := func(vm *pcapi.VM) {
		vm.Spec.CloudRef, vm.Status.Cloud = &pcapi.CloudReference{Name: "other"}, ""
	}
	h := newHarness(t, everything,
		other("has", recorded), other("wants", importing), other("none"),
		other("elsewhere", recorded, claimedOnFormerCloud), other("different", func(vm *pcapi.VM) { vm.Status.VMID, vm.Status.Cloud = "s2", "default" }),
		other("moving", claimedOnFormerCloud, func(vm *pcapi.VM) {
			vm.Finalizers, vm.Annotations = []string{pcapi.VMFinalizer}, map[string]string{pcapi.ClaimedCloudAnnotation: "default"}
		}))
	tests := []struct {
		name  string
		event inventory.Event
		want  []queuedRequest
	}{
		{name: "empty event: no VM", event: inventory.Event{Cloud: "default"}},
		{name: "server changed: VMs that have or import it", event: inventory.Event{Cloud: "default", Servers: []string{"s1", "sx"}}, want: []queuedRequest{{"ns/has", priorityChange}, {"ns/wants", priorityChange}}},
		{
			name:  "references and a server: references first",
			event: inventory.Event{Cloud: "default", Servers: []string{"s2"}, Refs: []inventory.Ref{{Namespace: "ns", Name: "none"}}},
			want:  []queuedRequest{{"ns/none", priorityUnderWay}, {"ns/different", priorityChange}},
		},
		{
			name:  "labels of new servers: the VM that exists",
			event: inventory.Event{Cloud: "default", Servers: []string{"s8", "s9"}, Owners: []inventory.Ref{{Namespace: "ns", Name: "made-up"}, {Namespace: "ns", Name: "none"}}},
			want:  []queuedRequest{{"ns/none", priorityUnderWay}},
		},
		{
			name: "all: every VM of the Cloud, also one whose cloudRef was edited", event: inventory.Event{Cloud: "default", All: true, Servers: []string{"s1"}},
			want: []queuedRequest{{"ns/different", priorityChange}, {"ns/has", priorityChange}, {"ns/moving", priorityChange}, {"ns/none", priorityChange}, {"ns/wants", priorityChange}},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			l := &priorityQueue{}
			subscriber{find: tenancy.NewFinder(h.client, &pcapi.VMList{}), reader: h.client, queue: l}.enqueue(tc.event)
			equal(t, "queued", tc.want, l.queued)
		})
	}
}

func TestSubscriberEnqueuesReferencesWhenListFails(t *testing.T) {
	l := &priorityQueue{}
	subscriber{find: tenancy.NewFinder(brokenReader{}, &pcapi.VMList{}), queue: l}.enqueue(inventory.Event{Cloud: "default", Servers: []string{"s1"}, Refs: []inventory.Ref{{Name: "b"}}})
	equal(t, "queued", []queuedRequest{{"/b", priorityUnderWay}}, l.queued)
}

type brokenReader struct{ client.Reader }

func (brokenReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errAPIAway
}
