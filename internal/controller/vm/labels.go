package vm

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

func (k *kind) ownerLabels(vm *pcapi.VM) map[string]string {
	return map[string]string{
		inventory.UIDLabel:       string(vm.UID),
		inventory.ClusterLabel:   k.cluster,
		inventory.NamespaceLabel: vm.Namespace,
		inventory.NameLabel:      vm.Name,
	}
}

// owned reports whether a server has the owner labels of the VM.
func (k *kind) owned(vm *pcapi.VM, s cloud.Server) bool {
	return s.Labels[inventory.UIDLabel] == string(vm.UID) && s.Labels[inventory.ClusterLabel] == k.cluster
}

// labelledFor reports whether the owner label of a server is the UID of the VM, as it is or altered by the cloud.
func labelledFor(vm *pcapi.VM, server cloud.Server) bool {
	uid := server.Labels[inventory.UIDLabel]
	return uid == string(vm.UID) || inventory.AlteredUID(uid, string(vm.UID))
}

// lookAltered searches the inventory by owner labels that the cloud has altered. The oldest server is adopted,
// so that no second create is sent. They are not enough to delete it.
func (k *kind) lookAltered(vm *pcapi.VM, obs *observation) {
	obs.Candidates = obs.Inventory.Altered(string(vm.UID), k.cluster)
	if len(obs.Candidates) > 0 && vm.DeletionTimestamp.IsZero() {
		obs.Candidates, obs.Proof = obs.Candidates[:1], external.OwnerProof
	}
}

// Kept returns an outcome if the server that the VM created lacks its owner labels: the cloud did not keep
// them, or has given the id to another server.
func (k *kind) Kept(vm *pcapi.VM, obs *observation) error {
	if vm.Spec.Import != nil || !obs.altered || !obs.Capabilities().Has(cloud.Labels) {
		return nil
	}
	if vm.Status.VMID != "" && replaced(vm, obs, *obs.Resource) {
		return foreign(*obs.Resource)
	}
	return labelsMissing(pcapi.LabelsMissingReason, vm, *obs.Resource, "changed or deleted")
}
