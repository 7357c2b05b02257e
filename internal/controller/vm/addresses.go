package vm

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// addressIndex finds the VMs that ask for a static address by the Network and the address.
// VMs without one are not in it.
const addressIndex = "address"

// addressKey is a key of addressIndex. Names of Networks have no slash.
func addressKey(network string, address pcapi.VMAddress) string {
	return network + "/" + string(address)
}

func addressKeys(vm *pcapi.VM) []string {
	var keys []string
	for _, i := range controller.InterfacesOf(vm) {
		for _, address := range i.Addresses {
			keys = append(keys, addressKey(i.NetworkRef.Name, address))
		}
	}
	return keys
}

// observeAddresses finds out whether a new VM can have the static addresses of an interface on
// a Network.
func (o *observer) observeAddresses(ctx context.Context, vm *pcapi.VM, obs *observation, i pcapi.VMInterface, net *pcapi.Network) error {
	for _, address := range i.Addresses {
		if why := unusable(string(address), net); why != "" {
			obs.detached = badAddress(pcapi.AddressInvalidReason, controller.RecheckRefused, i, address, why)
			return nil
		}
		holder, err := o.holderOf(ctx, vm, obs, net.Name, address)
		if err != nil {
			return err
		}
		switch {
		case holder != nil && leaving(holder):
			obs.detached = awaitDeletion(fmt.Sprintf("spec.network.interfaces[%s].addresses: %s on Network %q", i.Name, address, net.Name), fmt.Sprintf("VM %q", holder.Name))
			return nil
		case holder != nil:
			obs.detached = badAddress(pcapi.AddressInUseReason, external.RecheckSoon, i, address, fmt.Sprintf(
				"is that of VM %q on Network %q: choose another address, or delete that VM", holder.Name, net.Name))
			return nil
		}
	}
	return nil
}

func badAddress(reason string, again time.Duration, i pcapi.VMInterface, address pcapi.VMAddress, why string) error {
	return reconciler.Stalled(reason, again, fmt.Errorf("spec.network.interfaces[%s].addresses: %s %s", i.Name, address, why))
}

// unusable returns why a VM on a Network cannot have an address, empty if it can or the range
// of the Network is not known: then the cloud decides.
func unusable(text string, net *pcapi.Network) string {
	within, err := netip.ParsePrefix(net.Status.CIDR)
	if err != nil {
		return ""
	}
	what := ""
	address, err := netip.ParseAddr(text)
	gateway, _ := netip.ParseAddr(net.Status.Gateway)
	switch {
	case err != nil: // a rule of the API refuses it
		return ""
	case !within.Contains(address):
		what = "is not inside the range"
	case address == gateway:
		what = "is the gateway"
	case within.Bits() >= address.BitLen()-1: // both addresses of such a range are those of VMs
		return ""
	case !within.Contains(address.Prev()):
		what = "is the network address"
	case address.Is4() && !within.Contains(address.Next()):
		what = "is the broadcast address"
	default:
		return ""
	}
	return fmt.Sprintf("%s of Network %q, %s: choose another address inside %[3]s", what, net.Name, net.Status.CIDR)
}

// holderOf returns another VM of the namespace that has a static address on a Network, or that gets
// it before this one; nil if there is none. One that is being deleted comes last.
func (o *observer) holderOf(ctx context.Context, vm *pcapi.VM, obs *observation, network string, address pcapi.VMAddress) (holder *pcapi.VM, err error) {
	var list pcapi.VMList
	err = o.Client.List(ctx, &list, client.InNamespace(vm.Namespace), client.MatchingFields{addressIndex: addressKey(network, address)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the VMs with the address %s: %w", address, err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if other.Name != vm.Name && !released(other) && precedes(other, vm, obs) && (holder == nil || leaving(holder)) {
			holder = other
		}
	}
	return holder, nil
}

// precedes reports whether another VM that asks for the same as vm, which has no server, comes
// first: one that has or may have a server, and of two alike the older one.
func precedes(other, vm *pcapi.VM, obs *observation) bool {
	switch claimed := controllerutil.ContainsFinalizer(other, pcapi.VMFinalizer); {
	case other.Status.VMID != "":
		return true
	case claimed != (obs.Claimed != ""):
		return claimed
	}
	return older(other, vm)
}
