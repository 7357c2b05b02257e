package vm

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
)

// reportGuest sets the GuestReady condition from what was observed, or removes it if the
// spec has no probe. While the cloud is not available, or does not show a server that runs, a
// condition that is there stays as it is, unless the VM may not use its Cloud any more.
func reportGuest(vm *pcapi.VM, obs *observation) {
	unseen := obs.Resource == nil && vm.Status.State == pcapi.VMStateRunning
	was := meta.FindStatusCondition(vm.Status.Conditions, pcapi.GuestReadyCondition)
	switch {
	case vm.Spec.ReadinessProbe == nil && was != nil:
		meta.RemoveStatusCondition(&vm.Status.Conditions, pcapi.GuestReadyCondition)
	case vm.Spec.ReadinessProbe != nil && (was == nil || obs.Denied != nil || obs.Available() && !unseen):
		meta.SetStatusCondition(&vm.Status.Conditions, guestReady(vm, obs))
	}
}

func guestReady(vm *pcapi.VM, obs *observation) metav1.Condition {
	c := metav1.Condition{Type: pcapi.GuestReadyCondition, Status: metav1.ConditionFalse}
	lacking := field.Probe.Lacking(vm, obs.Capabilities())
	switch {
	case obs.Denied != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, pcapi.CloudUnavailableReason, "the VM cannot use its Cloud: the condition Ready says why"
	case !obs.Available():
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, pcapi.CloudUnavailableReason, "the cloud cannot be asked at the moment"
	case len(lacking) > 0:
		c.Status, c.Reason = metav1.ConditionUnknown, pcapi.UnsupportedReason
		c.Message = fmt.Sprintf("this cloud does not show what spec.%s needs: remove it", lacking[0])
	case vm.Status.State != pcapi.VMStateRunning:
		c.Reason, c.Message = pcapi.NotRunningReason, fmt.Sprintf("the VM does not run: its state is %s", vm.Status.State)
	default:
		c.Status, c.Reason, c.Message = probesOf(vm, obs)
	}
	return c
}

// probesOf returns what the first of the probes says that does not hold, or the last one.
func probesOf(vm *pcapi.VM, obs *observation) (status metav1.ConditionStatus, reason, message string) {
	wanted := vm.Spec.ReadinessProbe
	if wanted.Address != nil || wanted.TCPSocket != nil {
		status, reason, message = addressOf(vm)
	}
	if wanted.GuestHeartbeat != nil && (status == "" || status == metav1.ConditionTrue) {
		status, reason, message = heartbeatOf(vm, obs)
	}
	if wanted.TCPSocket != nil && status == metav1.ConditionTrue {
		status, reason, message = socketOf(vm, obs)
	}
	return status, reason, message
}

func addressOf(vm *pcapi.VM) (status metav1.ConditionStatus, reason, message string) {
	if network := vm.Status.Network; network == nil || network.PrimaryIP4 == "" && network.PrimaryIP6 == "" {
		return metav1.ConditionFalse, pcapi.NoAddressReason, "the cloud shows no address of the VM"
	}
	return metav1.ConditionTrue, pcapi.AddressKnownReason, "the cloud shows an address of the VM"
}

func heartbeatOf(vm *pcapi.VM, obs *observation) (status metav1.ConditionStatus, reason, message string) {
	switch server := obs.Resource; {
	case server == nil || ofAnother(vm, obs, *server) || server.Heartbeat < cloud.HeartbeatLost:
		return metav1.ConditionFalse, pcapi.NoHeartbeatReason, "the cloud has received no heartbeat of the guest: it is booting, or no agent runs in it"
	case server.Heartbeat == cloud.HeartbeatLost:
		return metav1.ConditionFalse, pcapi.HeartbeatLostReason, "the cloud receives no heartbeats of the guest any more"
	}
	return metav1.ConditionTrue, pcapi.HeartbeatReason, "the cloud receives heartbeats of the guest"
}
