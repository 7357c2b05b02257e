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

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// delayQueue records what is queued, and after which delay.
type delayQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	queued []string
}

func (l *delayQueue) Add(r reconcile.Request) { l.AddAfter(r, 0) }

func (l *delayQueue) AddAfter(r reconcile.Request, after time.Duration) {
	l.queued = append(l.queued, r.String()+" after "+after.String())
}

// vmOn returns a VM that is attached to a Network, with changes.
func vmOn(network string, change ...func(*pcapi.VM)) *pcapi.VM {
	vm := &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Finalizers: []string{pcapi.VMFinalizer}},
		Spec:       pcapi.VMSpec{NetworkRef: &pcapi.NetworkReference{Name: network}},
	}
	for _, f := range change {
		f(vm)
	}
	return vm
}

func TestAttachmentsEnqueueNetwork(t *testing.T) {
	t.Parallel()
	waiting := func(vm *pcapi.VM) { vm.Finalizers = nil }
	nowhere := func(vm *pcapi.VM) { vm.Spec.NetworkRef = nil }
	another := func(vm *pcapi.VM) { vm.Name = "other" }
	on := func(networks ...string) func(*pcapi.VM) {
		return func(vm *pcapi.VM) {
			vm.Spec.NetworkRef, vm.Spec.Network = nil, &pcapi.VMNetwork{}
			for _, name := range networks {
				vm.Spec.Network.Interfaces = append(vm.Spec.Network.Interfaces, pcapi.VMInterface{Name: name, NetworkRef: pcapi.NetworkReference{Name: name}})
			}
		}
	}
	counted := func(vms int32) func(*pcapi.Network) { return func(net *pcapi.Network) { net.Status.AttachedVMs = vms } }
	came := func(vm *pcapi.VM) event.CreateEvent { return event.CreateEvent{Object: vm} }
	for _, tc := range []struct {
		name string
		// there is what the cache holds.
		there []client.Object
		// The event: came, or was and is, or left.
		came     event.CreateEvent
		was, is  *pcapi.VM
		left     *pcapi.VM
		expected []string
	}{
		{name: "VM created: after a delay", there: []client.Object{onRecord()}, came: came(vmOn("net")), expected: []string{"ns/net after 1s"}},
		{name: "VM created without a claim: not enqueued", there: []client.Object{onRecord()}, came: came(vmOn("net", waiting))},
		{name: "VM in the initial list: not enqueued", there: []client.Object{onRecord()}, came: event.CreateEvent{Object: vmOn("net"), IsInInitialList: true}},
		{name: "VM claimed: after a delay", there: []client.Object{onRecord()}, was: vmOn("net", waiting), is: vmOn("net"), expected: []string{"ns/net after 1s"}},
		{name: "VM created in a Network with 50,000: after a longer delay", there: []client.Object{onRecord(counted(50_000))}, came: came(vmOn("net")), expected: []string{"ns/net after 5s"}},
		{name: "VM changed otherwise: not enqueued", there: []client.Object{onRecord()}, was: vmOn("net"), is: vmOn("net")},
		{name: "VM moved to another network: both after a delay", there: []client.Object{onRecord()}, was: vmOn("net"), is: vmOn("far"), expected: []string{"ns/net after 1s", "ns/far after 1s"}},
		{name: "VM with two interfaces created: both Networks after a delay", came: came(vmOn("", on("net", "far"))), expected: []string{"ns/far after 1s", "ns/net after 1s"}},
		{name: "VM with two interfaces changed otherwise: not enqueued", was: vmOn("", on("net", "far")), is: vmOn("", on("net", "far"))},
		{name: "last VM on the second of two Networks deleted, which is deleted: at once", there: []client.Object{onRecord(deleted), vmOn("", on("far"), another)}, left: vmOn("", on("far", "net")), expected: []string{"ns/far after 1s", "ns/net after 0s"}},
		{name: "VM with a second interface on a deleted Network: the Network is kept", there: []client.Object{onRecord(deleted), vmOn("", on("far", "net"), another)}, left: vmOn("net"), expected: []string{"ns/net after 1s"}},
		{name: "VM deleted: after a delay", there: []client.Object{onRecord()}, left: vmOn("net"), expected: []string{"ns/net after 1s"}},
		{name: "VM without a network deleted: not enqueued", there: []client.Object{onRecord()}, left: vmOn("net", nowhere)},
		{name: "VM of a missing Network deleted: after a delay", left: vmOn("net"), expected: []string{"ns/net after 1s"}},
		{name: "VM of a deleted Network deleted, others left: after a delay", there: []client.Object{onRecord(deleted), vmOn("net", another)}, left: vmOn("net"), expected: []string{"ns/net after 1s"}},
		{name: "last VM of a deleted Network deleted: at once", there: []client.Object{onRecord(deleted), vmOn("net", another, waiting), vmOn("far", another, func(vm *pcapi.VM) { vm.Name = "far" })}, left: vmOn("net"), expected: []string{"ns/net after 0s"}},
		{name: "last of many VMs of a deleted Network deleted: after a delay", there: []client.Object{onRecord(deleted, counted(fewVMs+1))}, left: vmOn("net"), expected: []string{"ns/net after 1s"}},
		{name: "last of a few VMs of a deleted Network deleted: at once", there: []client.Object{onRecord(deleted, counted(fewVMs))}, left: vmOn("net"), expected: []string{"ns/net after 0s"}},
		{name: "last VM of a deleted Network lost its claim: at once", there: []client.Object{onRecord(deleted), vmOn("net", waiting)}, was: vmOn("net"), is: vmOn("net", waiting), expected: []string{"ns/net after 0s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, everything, nil, tc.there...)
			handler, l := attachments(h.client), &delayQueue{}
			switch {
			case tc.left != nil:
				handler.Delete(t.Context(), event.DeleteEvent{Object: tc.left}, l)
			case tc.was != nil:
				handler.Update(t.Context(), event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}, l)
			default:
				handler.Create(t.Context(), tc.came, l)
			}
			if diff := cmp.Diff(tc.expected, l.queued); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}
