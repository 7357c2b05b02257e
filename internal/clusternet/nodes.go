package clusternet

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/privatecloud/operator/internal/probe"
)

// Kinds of owners of addresses.
const (
	kindNode      = "Node"
	kindPods      = "Pods of a Node"
	kindAPIServer = "API server"
	kindServices  = "Services"
	kindOperator  = "operator"
)

// nodeHandler excludes the addresses of Nodes, and the networks of their Pods.
type nodeHandler struct{ to *probe.Exclusion }

var _ toolscache.ResourceEventHandler = nodeHandler{}

// OnAdd implements cache.ResourceEventHandler.
func (h nodeHandler) OnAdd(obj any, _ bool) { h.set(obj) }

// OnUpdate implements cache.ResourceEventHandler.
func (h nodeHandler) OnUpdate(_, obj any) { h.set(obj) }

// OnDelete implements cache.ResourceEventHandler.
func (h nodeHandler) OnDelete(obj any) {
	if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	if node, ok := obj.(*corev1.Node); ok {
		h.to.Set(probe.Owner{Kind: kindNode, Name: node.Name})
		h.to.Set(probe.Owner{Kind: kindPods, Name: node.Name})
	}
}

func (h nodeHandler) set(obj any) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return
	}
	var addresses, networks []netip.Prefix
	for _, a := range node.Status.Addresses {
		addresses = append(addresses, parsed(a.Address)...) // names are no addresses
	}
	for _, text := range node.Spec.PodCIDRs {
		if network, err := netip.ParsePrefix(text); err == nil {
			networks = append(networks, network)
		}
	}
	h.to.Set(probe.Owner{Kind: kindNode, Name: node.Name}, addresses...)
	h.to.Set(probe.Owner{Kind: kindPods, Name: node.Name}, networks...)
}

// parsed returns the address of a text, or nothing if it is none.
func parsed(text string) []netip.Prefix {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return nil
	}
	return []netip.Prefix{probe.Single(address.WithZone(""))}
}
