package vm

import (
	"cmp"
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

func ambiguous(cause error) error {
	return reconciler.Stalled(pcapi.AmbiguousReason, external.RecheckSoon, cause)
}

// taken is the outcome for a name that something else has.
func taken(obs *observation, cause error) error {
	return cmp.Or(obs.freeSoon, reconciler.Stalled(pcapi.TakenReason, external.RecheckSoon, cause))
}

// refusedName is the outcome for a name that the cloud does not allow.
func refusedName(obs *observation, cause error) error {
	if cloud.Is(cause, cloud.Taken) {
		return taken(obs, cause)
	}
	return reconciler.Stalled(pcapi.ProhibitedReason, recheckName(cause), cause)
}

func foreign(server cloud.Server) error {
	return reconciler.Stalled(pcapi.BlockedReason, external.RecheckSoon, fmt.Errorf(
		"VM %s does not carry this object's owner labels, so it is not changed: set spec.deletionPolicy to Orphan to release this object, or find out who created it", server.ID))
}

// labelsMissing is the outcome for a server whose owner labels the cloud did not keep.
func labelsMissing(reason string, vm *pcapi.VM, server cloud.Server, effect string) error {
	has := "is missing"
	if uid, ok := server.Labels[inventory.UIDLabel]; ok {
		has = fmt.Sprintf("is %q", uid)
	}
	if server.Labels[inventory.UIDLabel] == string(vm.UID) {
		has = "is right, and " + inventory.ClusterLabel + " is not"
	}
	return reconciler.Stalled(reason, external.RecheckSoon, fmt.Errorf(
		"the cloud did not keep the owner labels of VM %s: %s %s. Without them nothing proves that it is this object's, so it is not %s: if it is, set %[2]s to %[5]s in the cloud, and %[6]s to the UID of the namespace kube-system; "+
			"if the cloud cannot keep them, have the capability labels removed from the Cloud; or set spec.deletionPolicy to Orphan to release this object",
		server.ID, inventory.UIDLabel, has, effect, vm.UID, inventory.ClusterLabel))
}

// awaitDeletion is the outcome for a VM that wants what another VM has, which is being deleted.
func awaitDeletion(what, who string) error {
	return reconciler.Wait(external.Safety, pcapi.ProgressingReason, "%s is still that of %s, which is being deleted: waiting until that is gone", what, who)
}
