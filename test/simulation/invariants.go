package simulation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// The invariants, as sentences that a user understands.
const (
	oneServer     = "a VM never has two servers"
	sameID        = "status.vmId never changes"
	goneLast      = "an object is removed only after its server"
	noLeak        = "no server is left without a VM"
	converged     = "every VM is Ready, with one server that is as specified"
	lostStays     = "a VM whose server somebody deleted is Lost, and gets no other"
	lostIsGone    = "a VM is Lost only once its server is gone"
	groupComplete = "every group has its size"
	deletedGone   = "a deleted object goes"
	unasked       = "a VM waits for a person only if an answer to its create is lost"
	atRest        = "at rest nothing is changed"
)

var invariants = []string{
	oneServer, sameID, goneLast, noLeak, converged, lostStays, lostIsGone, unasked, groupComplete, deletedGone, atRest, approvedFirst, recorded, keptServer, foreignStays, notTaken, oneOwner,
	oneNetwork, sameNetworkID, networkGoneLast, noNetworkLeak, networkConverged, waitsForNetwork,
	oneSnapshot, sameSnapshotID, snapshotGoneLast, noSnapshotLeak, snapshotConverged, revertedOnce,
}

// checkChange checks a change of an object.
func (w *world) checkChange(gvk schema.GroupVersionKind, before, after client.Object) {
	w.checkBare(before, after)
	if was, ok := before.(*pcapi.Network); ok {
		is, _ := after.(*pcapi.Network)
		w.checkNetworkChange(was, is)
	}
	if was, ok := before.(*pcapi.VMSnapshot); ok {
		is, _ := after.(*pcapi.VMSnapshot)
		w.checkSnapshotChange(was, is)
	}
	if gvk != vmKind || before == nil {
		return
	}
	was := before.(*pcapi.VM)
	if after == nil && !w.wasBare(was) && (w.profile.capabilities.Has(cloud.Labels) || len(was.Finalizers) > 0) {
		w.checked[goneLast]++
		for _, s := range slices.DeleteFunc(w.serversOf(was), func(s cloud.Server) bool { return w.tardy[s.ID] }) {
			w.violate(goneLast, "VM %s is removed, and server %s exists", was.Name, s.ID)
		}
	}
	if after == nil {
		return
	}
	is := after.(*pcapi.VM)
	if is.Status.State == pcapi.VMStateLost && was.Status.State != pcapi.VMStateLost {
		w.checked[lostIsGone]++
		if w.serverExists(is) {
			w.violate(lostIsGone, "VM %s is Lost, and server %s exists", is.Name, is.Status.VMID)
		}
	}
	w.checked[sameID]++
	if was.Status.VMID != "" && was.Status.VMID != is.Status.VMID {
		w.violate(sameID, "VM %s had %s and has %q", was.Name, was.Status.VMID, is.Status.VMID)
	}
	if was.Status.VMID == "" && is.Status.VMID != "" {
		w.checkOwner(is)
	}
}

// serversOf returns the servers of a VM: by the owner label, or where there are no labels by its
// recorded id, else by its name.
func (w *world) serversOf(vm *pcapi.VM) []cloud.Server {
	return slices.DeleteFunc(w.servers(), func(s cloud.Server) bool {
		if w.profile.capabilities.Has(cloud.Labels) {
			return s.Labels[inventory.UIDLabel] != string(vm.UID)
		}
		if vm.Status.VMID != "" {
			return !w.ownedBy(s.ID, vm)
		}
		another := w.ownerOf(s) != vm.UID && w.forgotten(w.ownerOf(s)) // nobody remembers whose it is
		return w.imported[s.ID] || another || w.takenOver(s.ID, vm) || !cloud.AlikeNames(s.Name, vm.Spec.VMName)
	})
}

// checkCloud checks the cloud after each step.
func (w *world) checkCloud() {
	w.checkNetworks()
	w.checkSnapshots()
	w.checkForeign()
	if !w.profile.oneServer() {
		return
	}
	w.checked[oneServer]++
	owners := map[string]string{}
	for _, s := range w.servers() {
		owner := s.Labels[inventory.UIDLabel]
		if !w.profile.capabilities.Has(cloud.Labels) {
			owner = s.Name
		}
		if first := owners[owner]; first != "" {
			w.violate(oneServer, "servers %s and %s are of the VM %s", first, s.ID, owner)
		}
		owners[owner] = s.ID
	}
}

// checkConverged checks that all is as specified once nothing fails any more.
func (w *world) checkConverged() {
	w.checkNetworksConverged()
	w.checkSnapshotsConverged()
	w.checked[noLeak]++
	w.checked[deletedGone]++
	uids, known := map[types.UID]bool{}, map[string]bool{}
	for _, o := range w.api.all(vmKind) {
		vm := o.(*pcapi.VM)
		uids[vm.UID], known[vm.Status.VMID] = true, true
		if w.ambiguous(vm) {
			known[vm.Spec.VMName] = true
			w.checked[unasked]++
			if !w.doubtful[vm.Spec.VMName] && !w.hindered(vm) {
				w.violate(unasked, "VM %s: %s", vm.Name, readyOf(vm))
			}
		}
		if vm.DeletionTimestamp != nil {
			if !w.ambiguous(vm) && !w.hindered(vm) {
				w.violate(deletedGone, "VM %s is being deleted: %s", vm.Name, readyOf(vm))
			}
			continue
		}
		w.checkVM(vm)
	}
	for _, s := range w.servers() {
		owner := s.Labels[inventory.UIDLabel]
		switch {
		case w.imported[s.ID]: // a VM that imports it may be deleted before it does
		case w.tardy[s.ID] && !uids[types.UID(owner)], w.forgotten(w.ownerOf(s)):
		case owner != "" && !uids[types.UID(owner)]:
			w.violate(noLeak, "server %s (%s) of VM %s", s.ID, s.Name, owner)
		case owner == "" && !known[s.ID] && !known[s.Name]:
			w.violate(noLeak, "server %s (%s)", s.ID, s.Name)
		}
	}
	for _, o := range w.api.all(groupKind) {
		g := o.(*pcapi.VmGroup)
		w.checked[groupComplete]++
		switch {
		case slices.ContainsFunc(w.api.all(vmKind), func(o client.Object) bool { return w.ambiguous(o.(*pcapi.VM)) || w.reusedEarly(o.(*pcapi.VM)) }):
		case g.DeletionTimestamp != nil:
			w.violate(deletedGone, "VmGroup %s is being deleted", g.Name)
		case g.Status.ReadyReplicas != *g.Spec.Replicas || !meta.IsStatusConditionTrue(g.Status.Conditions, pcapi.ReadyCondition):
			w.violate(groupComplete, "VmGroup %s has %d of %d ready members: %s", g.Name, g.Status.ReadyReplicas, *g.Spec.Replicas, readyOf(g))
		}
	}
}

// ambiguous reports whether a VM waits for a person to say whose server it is that has its name,
// as it may on a cloud where nothing proves that.
func (w *world) ambiguous(vm *pcapi.VM) bool {
	if w.profile.exactlyOnce() || w.profile.capabilities.Has(cloud.Labels) {
		return false
	}
	reason := readyReason(vm)
	return reason == pcapi.AmbiguousReason || reason == pcapi.BlockedReason
}

func (w *world) checkVM(vm *pcapi.VM) {
	w.checked[converged]++
	servers := w.serversOf(vm)
	if w.hindered(vm) && (len(servers) == 0 || !w.profile.capabilities.Has(cloud.Labels)) {
		return
	}
	if w.deletedByHand[vm.Status.VMID] {
		w.checked[lostStays]++
		servers = slices.DeleteFunc(servers, func(s cloud.Server) bool { return w.tardy[s.ID] })
		if len(servers) > 0 || vm.Status.State != pcapi.VMStateLost || readyReason(vm) != pcapi.LostReason {
			w.violate(lostStays, "VM %s is %s, with %d servers: %s", vm.Name, vm.Status.State, len(servers), readyOf(vm))
		}
		return
	}
	if w.detached(vm) {
		w.checked[waitsForNetwork]++
		if len(servers) > 0 || readyReason(vm) != pcapi.NetworkNotReadyReason {
			w.violate(waitsForNetwork, "VM %s has %d servers: %s", vm.Name, len(servers), readyOf(vm))
		}
		return
	}
	state := cloud.StateActive
	if vm.Spec.PowerState == pcapi.PowerOff {
		state = cloud.StateStopped
	}
	switch {
	case w.ambiguous(vm) && len(servers) > 0:
	case w.unreverted(vm) && len(servers) == 1:
	case len(servers) == 1 && servers[0].Name != vm.Spec.VMName && servers[0].ID == vm.Status.VMID && readyReason(vm) == pcapi.DriftReason:
	case len(servers) != 1:
		w.violate(converged, "VM %s has %d servers: %s", vm.Name, len(servers), readyOf(vm))
	case servers[0].ID != vm.Status.VMID:
		w.violate(converged, "VM %s has %s on record and %s in the cloud", vm.Name, vm.Status.VMID, servers[0].ID)
	case servers[0].State != state || servers[0].CPU != vm.Spec.CPU.Count():
		w.violate(converged, "server %s of VM %s is %s with %d cores: %s", servers[0].ID, vm.Name, servers[0].State, servers[0].CPU, readyOf(vm))
	case !meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.ReadyCondition):
		w.violate(converged, "VM %s is not Ready: %s", vm.Name, readyOf(vm))
	}
}

// readyReason returns the reason of the condition Ready, empty if there is none.
func readyReason(o interface{ GetConditions() []metav1.Condition }) string {
	if c := meta.FindStatusCondition(o.GetConditions(), pcapi.ReadyCondition); c != nil {
		return c.Reason
	}
	return ""
}

// readyOf returns the condition Ready of an object, for people.
func readyOf(o interface{ GetConditions() []metav1.Condition }) string {
	c := meta.FindStatusCondition(o.GetConditions(), pcapi.ReadyCondition)
	if c == nil {
		return "no condition Ready"
	}
	return fmt.Sprintf("Ready is %s, %s: %s", c.Status, c.Reason, c.Message)
}
