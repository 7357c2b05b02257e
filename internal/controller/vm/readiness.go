package vm

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// reportGuest sets the GuestReady condition from the rest of the status, or removes it if the
// spec has no probe. While the cloud is not available, a condition that is there stays as it is.
func reportGuest(vm *pcapi.VM, obs *observation) {
	was := meta.FindStatusCondition(vm.Status.Conditions, pcapi.GuestReadyCondition)
	switch {
	case vm.Spec.ReadinessProbe == nil && was != nil:
		meta.RemoveStatusCondition(&vm.Status.Conditions, pcapi.GuestReadyCondition)
	case vm.Spec.ReadinessProbe != nil && (was == nil || obs.Available()):
		meta.SetStatusCondition(&vm.Status.Conditions, guestReady(vm, obs))
	}
}

func guestReady(vm *pcapi.VM, obs *observation) metav1.Condition {
	c := metav1.Condition{Type: pcapi.GuestReadyCondition, Status: metav1.ConditionFalse}
	switch network := vm.Status.Network; {
	case !obs.Available():
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, pcapi.CloudUnavailableReason, "the cloud cannot be asked at the moment"
	case !obs.Capabilities().Has(cloud.Addresses):
		c.Status, c.Reason = metav1.ConditionUnknown, pcapi.UnsupportedReason
		c.Message = "this cloud does not show addresses: remove spec.readinessProbe"
	case vm.Status.State != pcapi.VMStateRunning:
		c.Reason, c.Message = pcapi.NotRunningReason, fmt.Sprintf("the VM does not run: its state is %s", vm.Status.State)
	case network == nil || network.PrimaryIP4 == "" && network.PrimaryIP6 == "":
		c.Reason, c.Message = pcapi.NoAddressReason, "the cloud shows no address of the VM"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, pcapi.AddressKnownReason, "the cloud shows an address of the VM"
	}
	return c
}
