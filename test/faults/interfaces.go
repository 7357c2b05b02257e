package faults

import (
	"context"
	"fmt"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	// secondNetwork is the name of the second Network of a run.
	secondNetwork = "second"
	// staticAddress is an address of it.
	staticAddress = "10.7.0.77"
)

// createSecondNetwork creates another Network after that of createNetwork, and expects it to run.
func createSecondNetwork(ctx context.Context, w *world) error {
	w.mu.Lock()
	w.networks.goals[secondNetwork] = runs
	w.mu.Unlock()
	return w.env.client.Create(ctx, testkit.Network(w.name, secondNetwork, func(net *pcapi.Network) {
		net.Spec.CloudRef = &pcapi.CloudReference{Name: w.name}
		net.Spec.CIDR, net.Spec.Gateway = "10.7.0.0/24", "10.7.0.1"
	}))
}

// onTwoNetworks gives a VM an interface on each Network, with a static address on the second.
func onTwoNetworks(vm *pcapi.VM) {
	vm.Spec.Network = &pcapi.VMNetwork{Interfaces: []pcapi.VMInterface{
		{Name: "eth0", NetworkRef: pcapi.NetworkReference{Name: networkName}},
		{Name: "eth1", NetworkRef: pcapi.NetworkReference{Name: secondNetwork}, Addresses: []pcapi.VMAddress{staticAddress}},
	}}
}

// interfaceViolations compares the interfaces of a server with the spec of its VM.
func interfaceViolations(vm *pcapi.VM, server mockcloud.Server) []string {
	if vm.Spec.Network == nil {
		return nil
	}
	has := server.Interfaces
	if len(has) != 2 || has[0].NetworkID == has[1].NetworkID || len(has[0].Addresses) != 1 || len(has[1].Addresses) != 1 || has[1].Addresses[0] != staticAddress {
		return []string{fmt.Sprintf("server %s has the interfaces %v, not as its spec says", server.Name, has)}
	}
	return nil
}
