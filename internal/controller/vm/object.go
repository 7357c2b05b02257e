package vm

import (
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// observeOnly reports whether the server of a VM is only observed.
func observeOnly(vm *pcapi.VM) bool {
	return vm.Spec.ManagementPolicy == pcapi.ManagementPolicyObserveOnly
}

// keeps reports whether the server stays when the VM is deleted.
func keeps(vm *pcapi.VM) bool {
	return vm.Spec.DeletionPolicy == pcapi.DeletionPolicyOrphan || observeOnly(vm)
}

// leaving reports whether a VM is being deleted and may have a server until that is done.
func leaving(vm *pcapi.VM) bool {
	return !vm.DeletionTimestamp.IsZero() && controllerutil.ContainsFinalizer(vm, pcapi.VMFinalizer)
}

// released reports whether this operator has done with a deleted VM, which another finalizer keeps.
func released(vm *pcapi.VM) bool {
	return !vm.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(vm, pcapi.VMFinalizer)
}

// older orders VMs by age, then by UID.
func older(a, b *pcapi.VM) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
