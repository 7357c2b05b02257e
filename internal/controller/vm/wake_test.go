package vm

import (
	"context"
	"slices"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
)

// asked is a request with the priority that it was queued at.
type asked struct {
	Name     string
	Priority int
}

// line records what is queued.
type line struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	queued []asked
}

func (l *line) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, r := range requests {
		l.queued = append(l.queued, asked{r.Namespace + "/" + r.Name, *o.Priority})
	}
}

// plain is a queue without priorities.
type plain struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	queued []string
}

func (p *plain) Add(r reconcile.Request) { p.queued = append(p.queued, r.Name) }

func TestWhatIsWrittenIsQueuedByItsUrgency(t *testing.T) {
	vm := vmWith()
	tests := []struct {
		name string
		do   func(q queue)
		want []asked
	}{
		{name: "what a person makes comes first", do: func(q queue) { enqueue{}.Create(t.Context(), event.CreateEvent{Object: vm}, q) }, want: []asked{{"ns/a", priorityRequest}}},
		{name: "what was there at the start comes last", do: func(q queue) { enqueue{}.Create(t.Context(), event.CreateEvent{Object: vm, IsInInitialList: true}, q) }, want: []asked{{"ns/a", priorityStart}}},
		{name: "what a person edits comes first", do: func(q queue) { enqueue{}.Update(t.Context(), event.UpdateEvent{ObjectOld: vm, ObjectNew: vm}, q) }, want: []asked{{"ns/a", priorityRequest}}},
		{name: "of an object that is gone, nothing is left to do", do: func(q queue) { enqueue{}.Delete(t.Context(), event.DeleteEvent{Object: vm}, q) }},
		{name: "nothing else is expected", do: func(q queue) { enqueue{}.Generic(t.Context(), event.GenericEvent{Object: vm}, q) }},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			l := &line{}
			tc.do(l)
			equal(t, "queued", tc.want, l.queued)
		})
	}
	if order := []int{priorityStart, priorityNews, priorityUnderWay, priorityRequest}; !slices.IsSorted(order) {
		t.Errorf("priorities %v are out of order", order)
	}
}

func TestAQueueWithoutPrioritiesWillDo(t *testing.T) {
	p := &plain{}
	enqueue{}.Create(t.Context(), event.CreateEvent{Object: vmWith()}, p)
	equal(t, "queued", []string{"a"}, p.queued)
}

func TestOnlyWhatPeopleWriteIsWorthAPass(t *testing.T) {
	annotate := func(key, value string) func(*v1alpha1.VM) {
		return func(vm *v1alpha1.VM) { vm.Annotations = map[string]string{key: value} }
	}
	finalized := func(vm *v1alpha1.VM) { vm.Finalizers = []string{Finalizer} }
	claim := annotate(ClaimedCloudAnnotation, "default")
	tests := []struct {
		name    string
		was, is *v1alpha1.VM
		want    bool
	}{
		{name: "nothing changed: a resync", was: vmWith(), is: vmWith()},
		{name: "the spec", was: vmWith(), is: vmWith(func(vm *v1alpha1.VM) { vm.Generation = 2 }), want: true},
		{name: "the deletion", was: vmWith(finalized), is: vmWith(finalized, deleted), want: true},
		{name: "a pause", was: vmWith(), is: vmWith(annotate(v1alpha1.PausedAnnotation, "true")), want: true},
		{name: "the end of a pause", was: vmWith(annotate(v1alpha1.PausedAnnotation, "true")), is: vmWith(), want: true},
		{name: "a request", was: vmWith(annotate(v1alpha1.ReconcileRequestedAtAnnotation, "1")), is: vmWith(annotate(v1alpha1.ReconcileRequestedAtAnnotation, "2")), want: true},
		{name: "a finalizer taken off by hand", was: vmWith(finalized, claim), is: vmWith(claim), want: true},
		{name: "a claim that we took back: the pass that did it has said why", was: vmWith(finalized, claim), is: vmWith()},
		{name: "a finalizer that we took off to let it go", was: vmWith(finalized, deleted), is: vmWith(deleted)},
		{name: "our claim", was: vmWith(), is: vmWith(finalized, annotate(ClaimedNameAnnotation, "web"))},
		{name: "our status", was: vmWith(), is: vmWith(recorded)},
		{name: "somebody's labels and annotations", was: vmWith(), is: vmWith(annotate("other", "x"), func(vm *v1alpha1.VM) { vm.Labels = map[string]string{"a": "b"} })},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			equal(t, "worth a pass", tc.want, worthAPass.Update(event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}))
		})
	}
	if !worthAPass.Create(event.CreateEvent{Object: vmWith()}) {
		t.Error("a new VM is not worth a pass")
	}
}

func TestNewsOfACloudWakeWhomTheyConcern(t *testing.T) {
	elsewhere := func(vm *v1alpha1.VM) {
		vm.Spec.CloudRef, vm.Status.Cloud = &v1alpha1.CloudReference{Name: "other"}, ""
	}
	w := newWorld(t, everything,
		other("has", recorded), other("wants", importing), other("none"),
		other("elsewhere", recorded, elsewhere), other("different", func(vm *v1alpha1.VM) { vm.Status.VMID, vm.Status.Cloud = "s2", "default" }),
		other("moving", elsewhere, func(vm *v1alpha1.VM) {
			vm.Finalizers, vm.Annotations = []string{Finalizer}, map[string]string{ClaimedCloudAnnotation: "default"}
		}))
	tests := []struct {
		name string
		news inventory.Event
		want []asked
	}{
		{name: "nobody", news: inventory.Event{Cloud: "default"}},
		{name: "those that have or want a server that changed", news: inventory.Event{Cloud: "default", Servers: []string{"s1", "sx"}}, want: []asked{{"ns/has", priorityNews}, {"ns/wants", priorityNews}}},
		{
			name: "those that waited go before those",
			news: inventory.Event{Cloud: "default", Servers: []string{"s2"}, Refs: []inventory.Ref{{Namespace: "ns", Name: "none"}}},
			want: []asked{{"ns/none", priorityUnderWay}, {"ns/different", priorityNews}},
		},
		{
			name: "everybody of that cloud, also who was told to leave it", news: inventory.Event{Cloud: "default", All: true, Servers: []string{"s1"}},
			want: []asked{{"ns/different", priorityNews}, {"ns/has", priorityNews}, {"ns/moving", priorityNews}, {"ns/none", priorityNews}, {"ns/wants", priorityNews}},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			l := &line{}
			waker{finder: finder{reader: w.client}, queue: l}.wake(tc.news)
			equal(t, "queued", tc.want, l.queued)
		})
	}
}

func TestABrokenReadCostsNobodyElseTheNews(t *testing.T) {
	l := &line{}
	waker{finder: finder{reader: brokenReader{}}, queue: l}.wake(inventory.Event{Cloud: "default", Servers: []string{"s1"}, Refs: []inventory.Ref{{Name: "b"}}})
	equal(t, "queued", []asked{{"/b", priorityUnderWay}}, l.queued)
}

type brokenReader struct{ client.Reader }

func (brokenReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errAPIAway
}
