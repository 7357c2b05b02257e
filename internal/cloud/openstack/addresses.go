package openstack

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// addresses are those of a server by the name of their network.
type addresses map[string][]address

type address struct {
	Address string `json:"addr"`
	MAC     string `json:"OS-EXT-IPS-MAC:mac_addr"`
	// Type is fixed or floating.
	Type string `json:"OS-EXT-IPS:type"`
}

// ip returns the zero Addr if the address is none.
func (a address) ip() netip.Addr {
	ip, _ := netip.ParseAddr(a.Address)
	return ip
}

// UnmarshalJSON reads addresses. They must not make a page unreadable.
func (a *addresses) UnmarshalJSON(data []byte) error {
	var networks map[string][]address
	if json.Unmarshal(data, &networks) != nil {
		networks = nil
	}
	*a = networks
	return nil
}

// floating returns the recorded address if it is one of the floating ones, else cloud.AddressPending, and an empty text
// if none is recorded.
func (a addresses) floating(text string) string {
	if text == "" {
		return ""
	}
	for _, network := range a {
		if slices.ContainsFunc(network, func(one address) bool { return one.Address == text && one.Type == "floating" }) {
			return text
		}
	}
	return cloud.AddressPending
}

// interfaces returns the network interfaces, sorted by network and MAC address: the service
// has no order. IPv4 addresses are before those of IPv6. A floating address is preferred to the fixed one that it leads to, because
// somebody assigned it to make the server reachable from elsewhere.
func (a addresses) interfaces() cloud.Interfaces {
	var list []cloud.Interface
	for _, network := range slices.Sorted(maps.Keys(a)) {
		sorted := slices.SortedFunc(slices.Values(a[network]), func(a, b address) int {
			return cmp.Or(cmp.Compare(a.MAC, b.MAC), -cmp.Compare(a.Type, b.Type), a.ip().Compare(b.ip()), cmp.Compare(a.Address, b.Address))
		})
		for n, one := range sorted {
			if n == 0 || one.MAC != sorted[n-1].MAC {
				list = append(list, cloud.Interface{MAC: one.MAC})
			}
			last := &list[len(list)-1]
			last.Addresses = append(last.Addresses, one.Address)
		}
	}
	interfaces, _ := cloud.NewInterfaces(list)
	return interfaces
}
