package vm

import (
	"cmp"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/probe"
)

// Defaults of the spec.
const (
	defaultProbePeriod      = 10 // seconds
	defaultProbeTimeout     = 3  // seconds
	defaultFailureThreshold = 3
)

// socket is what is known of the port that the readiness probe of the spec names.
type socket struct {
	networks probe.Networks
	state    probe.State
}

// refuses reports whether the operator may not connect to an address. Until it knows all addresses
// of its cluster, what the condition says for this spec holds.
func (s socket) refuses(vm *pcapi.VM, address netip.Addr) bool {
	return !s.networks.Allows(address) || !s.networks.Complete() && vm.Status.ObservedGeneration == vm.Generation && recordedRefusal(vm)
}

// observeSocket reads the last result of the connections to the guest. One that differs from the
// status while the cloud is not available is reported once it is, and so is a change of
// whether the operator may connect to the address.
func observeSocket(probes *probe.Prober, vm *pcapi.VM, obs *observation) {
	if wanted := vm.Spec.ReadinessProbe; wanted == nil || wanted.TCPSocket == nil {
		return
	}
	obs.socket = socket{probes.Networks(), probes.State(string(vm.UID))}
	if obs.Available() {
		return
	}
	address, known := socketAddress(vm)
	if result := obs.socket.state.Result; result != probe.Unknown && result != recordedResult(vm) || known && obs.socket.refuses(vm, address.Addr()) != recordedRefusal(vm) {
		obs.Inventory.EnqueueWhenAvailable(inventory.Ref{Namespace: vm.Namespace, Name: vm.Name}, obs.View)
	}
}

// Reported has the guest dialled as the stored status says: while the VM runs, has an address,
// and its spec asks for it. While the cloud does not show the server, what was asked for before
// stays.
func (k *kind) Reported(vm *pcapi.VM, obs *observation) {
	wanted := vm.Spec.ReadinessProbe
	switch {
	case wanted == nil || wanted.TCPSocket == nil || vm.Status.State != pcapi.VMStateRunning || obs.Denied != nil,
		obs.Available() && len(field.Probe.Lacking(vm, obs.Capabilities())) > 0:
		k.probes.Forget(string(vm.UID))
		return
	case !obs.Available() || obs.Resource == nil:
		return
	}
	address, known := socketAddress(vm)
	if !known {
		k.probes.Forget(string(vm.UID))
		return
	}
	k.probes.Watch(probe.Key{UID: string(vm.UID), Namespace: vm.Namespace, Name: vm.Name}, probe.Target{
		Address:          address,
		Period:           time.Duration(cmp.Or(wanted.PeriodSeconds, defaultProbePeriod)) * time.Second,
		Timeout:          time.Duration(cmp.Or(wanted.TimeoutSeconds, defaultProbeTimeout)) * time.Second,
		FailureThreshold: int(cmp.Or(wanted.FailureThreshold, defaultFailureThreshold)),
	}, recordedResult(vm))
}

// ForgetReported ends the connections to the guest.
func (k *kind) ForgetReported(uid types.UID) { k.probes.Forget(string(uid)) }

// socketAddress returns what a VM with a probe of a port is dialled at, and whether there is one.
func socketAddress(vm *pcapi.VM) (netip.AddrPort, bool) {
	network := vm.Status.Network
	if network == nil {
		return netip.AddrPort{}, false
	}
	address, err := netip.ParseAddr(cmp.Or(network.PrimaryIP4, network.PrimaryIP6))
	return netip.AddrPortFrom(address, uint16(vm.Spec.ReadinessProbe.TCPSocket.Port)), err == nil //nolint:gosec // 1-65535
}

// results are the conditions of a VM by the result of its probe.
var results = map[probe.Result]metav1.Condition{
	probe.Open:     {Status: metav1.ConditionTrue, Reason: pcapi.PortOpenReason, Message: "the guest accepts connections at the port of the probe"},
	probe.Refused:  {Status: metav1.ConditionFalse, Reason: pcapi.ConnectionRefusedReason, Message: "the guest refuses connections at the port of the probe"},
	probe.NoAnswer: {Status: metav1.ConditionFalse, Reason: pcapi.ConnectionTimeoutReason, Message: "the guest does not answer at the port of the probe"},
	probe.Unsteady: {Status: metav1.ConditionFalse, Reason: pcapi.PortUnsteadyReason, Message: "the guest opened and closed the port of the probe too often: it is ready again some minutes after the port stays open"},
	probe.Unknown:  {Status: metav1.ConditionFalse, Reason: pcapi.ProbePendingReason, Message: "the operator has not connected to the port of the probe yet"},
}

// socketOf judges a VM that has an address. Before the first result of the address, a condition
// that holds for this spec stays: it is that of the process before, or of another address.
func socketOf(vm *pcapi.VM, obs *observation) (status metav1.ConditionStatus, reason, message string) {
	address, _ := socketAddress(vm)
	if obs.socket.refuses(vm, address.Addr()) {
		return metav1.ConditionUnknown, pcapi.ProbeNotAllowedReason,
			"the operator may not connect to the address of the VM: ask its administrator to allow that, or remove spec.readinessProbe.tcpSocket"
	}
	result := probe.Unknown
	switch {
	case obs.socket.state.Address == address:
		result = obs.socket.state.Result
	case vm.Status.ObservedGeneration == vm.Generation:
		result = recordedResult(vm)
	}
	c := results[result]
	return c.Status, c.Reason, c.Message
}

// recordedRefusal reports whether the status says that the operator may not connect to the VM.
func recordedRefusal(vm *pcapi.VM) bool {
	c := meta.FindStatusCondition(vm.Status.Conditions, pcapi.GuestReadyCondition)
	return c != nil && c.Reason == pcapi.ProbeNotAllowedReason
}

// recordedResult returns the result that the status has, probe.Unknown for none.
func recordedResult(vm *pcapi.VM) probe.Result {
	if c := meta.FindStatusCondition(vm.Status.Conditions, pcapi.GuestReadyCondition); c != nil {
		for result, its := range results {
			if c.Reason == its.Reason {
				return result
			}
		}
	}
	return probe.Unknown
}
