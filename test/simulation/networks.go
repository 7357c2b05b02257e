package simulation

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// The invariants of Networks.
const (
	oneNetwork       = "a Network never has two networks"
	sameNetworkID    = "status.networkId never changes"
	networkGoneLast  = "a Network is removed only after its network"
	noNetworkLeak    = "no network is left without a Network"
	networkConverged = "every Network is Ready, with one network that is as specified"
	waitsForNetwork  = "a VM whose Network cannot take it waits, without a server"
)

// networkKey is the Network that users create.
var networkKey = client.ObjectKey{Namespace: "default", Name: "n"}

// gateways are those between which users change.
var gateways = []string{"10.0.0.1", "10.0.0.2"}

// network returns the Network, nil if there is none.
func (w *world) network() *pcapi.Network {
	n, _ := w.api.find(networkKind, networkKey).(*pcapi.Network)
	return n
}

// networkChoices returns what users may do with the Network, on a cloud with networks.
func (w *world) networkChoices() []choice {
	if !w.profile.capabilities.Has(cloud.Networks) {
		return nil
	}
	n := w.network()
	switch {
	case n == nil:
		return []choice{{class: act, name: "user: create Network n", do: func() {
			_ = w.api.create(&pcapi.Network{ObjectMeta: metav1.ObjectMeta{Namespace: networkKey.Namespace, Name: networkKey.Name},
				Spec: pcapi.NetworkSpec{CIDR: "10.0.0.0/24", Gateway: gateways[0]}})
		}}}
	case n.DeletionTimestamp != nil:
		return nil
	}
	return []choice{
		{class: act, name: "user: delete Network n", do: func() { _ = w.api.remove(networkKind, networkKey, nil) }},
		{class: act, name: "user: change the gateway of Network n", do: func() {
			next := n.DeepCopy()
			next.Spec.Gateway = gateways[(slices.Index(gateways, n.Spec.Gateway)+1)%len(gateways)]
			_ = w.api.update(next)
		}},
	}
}

// checkNetworkChange checks a change of a Network. After is nil if it was removed.
func (w *world) checkNetworkChange(was, is *pcapi.Network) {
	if is != nil {
		w.checked[sameNetworkID]++
		if was.Status.NetworkID != "" && was.Status.NetworkID != is.Status.NetworkID {
			w.violate(sameNetworkID, "Network %s had %s and has %q", was.Name, was.Status.NetworkID, is.Status.NetworkID)
		}
		return
	}
	if w.wasBare(was) {
		return
	}
	w.checked[networkGoneLast]++
	for _, made := range w.networksOf(was) {
		w.violate(networkGoneLast, "Network %s is removed, and network %s exists", was.Name, made.ID)
	}
}

// networksOf returns the networks of a Network: their name proves that.
func (w *world) networksOf(n *pcapi.Network) []cloud.Network {
	name := n.Annotations[pcapi.ClaimedNameAnnotation]
	return slices.DeleteFunc(w.cloud.Networks(), func(made cloud.Network) bool { return made.ID != n.Status.NetworkID && made.Name != name })
}

// checkNetworks checks the networks of the cloud after each step.
func (w *world) checkNetworks() {
	if !w.profile.networksOnce() {
		return
	}
	w.checked[oneNetwork]++
	ids := map[string]string{}
	for _, made := range w.cloud.Networks() {
		if first := ids[made.Name]; first != "" {
			w.violate(oneNetwork, "networks %s and %s are of the Network with the name %s", first, made.ID, made.Name)
		}
		ids[made.Name] = made.ID
	}
}

// checkNetworksConverged checks that the Network is as specified once nothing fails any more.
func (w *world) checkNetworksConverged() {
	n := w.network()
	w.checked[noNetworkLeak]++
	for _, made := range w.cloud.Networks() {
		if (n == nil || made.ID != n.Status.NetworkID) && !w.keptByServers(made) && !w.forgotten(w.claimed[made.Name]) {
			w.violate(noNetworkLeak, "network %s (%s)", made.ID, made.Name)
		}
	}
	switch {
	case n == nil:
	case n.DeletionTimestamp != nil:
		left := func(s cloud.Server) bool { return s.NetworkID == n.Status.NetworkID && w.forgotten(w.ownerOf(s)) }
		if !slices.ContainsFunc(w.api.all(vmKind), attachedTo(n)) && !slices.ContainsFunc(w.servers(), left) {
			w.violate(deletedGone, "Network %s is being deleted: %s", n.Name, readyOf(n))
		}
	case strings.Contains(readyOf(n), "VMs on this network"): // of an earlier Network, which was removed without its finalizer
		if !slices.ContainsFunc(w.cloud.Networks(), w.keptByServers) {
			w.violate(networkConverged, "Network %s waits for an earlier one, which has no VMs: %s", n.Name, readyOf(n))
		}
	default:
		w.checked[networkConverged]++
		made := w.networksOf(n)
		if len(made) != 1 || made[0].Gateway != n.Spec.Gateway || !meta.IsStatusConditionTrue(n.Status.Conditions, pcapi.ReadyCondition) {
			w.violate(networkConverged, "Network %s has %d networks: %s", n.Name, len(made), readyOf(n))
		}
	}
}

// keptByServers reports whether a network is that of a Network that was removed without its finalizer, and has servers,
// or had some whose VMs are Lost: those keep it until somebody deletes them.
func (w *world) keptByServers(made cloud.Network) bool {
	_, bare := w.removedBare[w.claimed[made.Name]]
	lost := func(o client.Object) bool {
		vm := o.(*pcapi.VM)
		return vm.Spec.NetworkRef != nil && vm.Status.State == pcapi.VMStateLost
	}
	return bare && (slices.ContainsFunc(w.servers(), func(s cloud.Server) bool { return s.NetworkID == made.ID }) || slices.ContainsFunc(w.api.all(vmKind), lost))
}

// attachedTo returns whether VMs have, or may have, a server on a Network.
func attachedTo(n *pcapi.Network) func(client.Object) bool {
	return func(o client.Object) bool {
		vm := o.(*pcapi.VM)
		return vm.Spec.NetworkRef != nil && vm.Spec.NetworkRef.Name == n.Name && (vm.Status.VMID != "" || len(vm.Finalizers) > 0)
	}
}

// detached reports whether a VM without a server waits for its Network.
func (w *world) detached(vm *pcapi.VM) bool {
	n := w.network()
	return vm.Spec.NetworkRef != nil && vm.Status.VMID == "" && (n == nil || n.DeletionTimestamp != nil)
}
