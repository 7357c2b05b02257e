package vm

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

func (s *servers) ownerLabels(vm *pcapi.VM) map[string]string {
	return map[string]string{
		inventory.UIDLabel:       string(vm.UID),
		inventory.ClusterLabel:   s.cluster,
		inventory.NamespaceLabel: vm.Namespace,
		inventory.NameLabel:      vm.Name,
	}
}

// owned reports whether a server has the owner labels of the VM.
func (s *servers) owned(vm *pcapi.VM, server cloud.Server) bool {
	return server.Labels[inventory.UIDLabel] == string(vm.UID) && server.Labels[inventory.ClusterLabel] == s.cluster
}

// labelledFor reports whether the owner label of a server is the UID of the VM, as it is or altered by the cloud.
func labelledFor(vm *pcapi.VM, server cloud.Server) bool {
	uid := server.Labels[inventory.UIDLabel]
	return uid == string(vm.UID) || inventory.AlteredUID(uid, string(vm.UID))
}

// lookAltered searches the inventory by owner labels that the cloud has altered. The oldest server is adopted,
// so that no second create is sent. They are not enough to delete it.
func (s *servers) lookAltered(vm *pcapi.VM, obs *observation) {
	obs.Candidates = obs.Inventory.Altered(string(vm.UID), s.cluster)
	if len(obs.Candidates) > 0 && vm.DeletionTimestamp.IsZero() {
		obs.Candidates, obs.Proof = obs.Candidates[:1], external.OwnerProof
	}
}
