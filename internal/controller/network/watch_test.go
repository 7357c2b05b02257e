package network

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/privatecloud/operator/api/v1alpha1"
)

// line records what is queued, and after what time.
type line struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	queued []string
}

func (l *line) Add(r reconcile.Request) { l.AddAfter(r, 0) }

func (l *line) AddAfter(r reconcile.Request, after time.Duration) {
	l.queued = append(l.queued, r.String()+" after "+after.String())
}

// vmOn returns a VM that refers to a Network and is attached to it, changed.
func vmOn(network string, change ...func(*v1alpha1.VM)) *v1alpha1.VM {
	vm := &v1alpha1.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Finalizers: []string{v1alpha1.VMFinalizer}},
		Spec:       v1alpha1.VMSpec{NetworkRef: &v1alpha1.NetworkReference{Name: network}},
	}
	for _, f := range change {
		f(vm)
	}
	return vm
}

func TestVMsWakeTheirNetworkTogetherAndTheLastOneAtOnce(t *testing.T) {
	t.Parallel()
	waiting := func(vm *v1alpha1.VM) { vm.Finalizers = nil }
	nowhere := func(vm *v1alpha1.VM) { vm.Spec.NetworkRef = nil }
	another := func(vm *v1alpha1.VM) { vm.Name = "other" }
	came := func(vm *v1alpha1.VM) event.CreateEvent { return event.CreateEvent{Object: vm} }
	for _, tc := range []struct {
		name string
		// there is what the cache holds.
		there []client.Object
		// came, was and is, or left tell what happens.
		came     event.CreateEvent
		was, is  *v1alpha1.VM
		left     *v1alpha1.VM
		expected []string
	}{
		{name: "one comes", there: []client.Object{onRecord()}, came: came(vmOn("net")), expected: []string{"ns/net after 1s"}},
		{name: "one comes that waits for its create", there: []client.Object{onRecord()}, came: came(vmOn("net", waiting))},
		{name: "one was there at the start", there: []client.Object{onRecord()}, came: event.CreateEvent{Object: vmOn("net"), IsInInitialList: true}},
		{name: "one is claimed", there: []client.Object{onRecord()}, was: vmOn("net", waiting), is: vmOn("net"), expected: []string{"ns/net after 1s"}},
		{name: "one changes in another way", there: []client.Object{onRecord()}, was: vmOn("net"), is: vmOn("net")},
		{name: "one goes to another network", there: []client.Object{onRecord()}, was: vmOn("net"), is: vmOn("far"), expected: []string{"ns/net after 1s", "ns/far after 1s"}},
		{name: "one goes", there: []client.Object{onRecord()}, left: vmOn("net"), expected: []string{"ns/net after 1s"}},
		{name: "one goes that was on none", there: []client.Object{onRecord()}, left: vmOn("net", nowhere)},
		{name: "one goes whose Network does not exist", left: vmOn("net"), expected: []string{"ns/net after 1s"}},
		{name: "one goes from a Network that is being deleted, and others are left", there: []client.Object{onRecord(deleted), vmOn("net", another)}, left: vmOn("net"), expected: []string{"ns/net after 1s"}},
		{name: "the last one goes from a Network that is being deleted", there: []client.Object{onRecord(deleted), vmOn("net", another, waiting), vmOn("far", another, func(vm *v1alpha1.VM) { vm.Name = "far" })}, left: vmOn("net"), expected: []string{"ns/net after 0s"}},
		{name: "the last one gives up its claim on a Network that is being deleted", there: []client.Object{onRecord(deleted), vmOn("net", waiting)}, was: vmOn("net"), is: vmOn("net", waiting), expected: []string{"ns/net after 0s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, everything, nil, tc.there...)
			on, l := attachments(w.client), &line{}
			switch {
			case tc.left != nil:
				on.Delete(t.Context(), event.DeleteEvent{Object: tc.left}, l)
			case tc.was != nil:
				on.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}, l)
			default:
				on.Create(t.Context(), tc.came, l)
			}
			if diff := cmp.Diff(tc.expected, l.queued); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}
