package mockcloud

import (
	"cmp"
	"iter"
	"net/http"
	"net/netip"
	"slices"
)

// Attachment is a network interface as POST /servers asks for it.
type Attachment struct {
	NetworkID string `json:"networkId"`
	// Addresses are static addresses; the cloud chooses one if there are none.
	Addresses []string `json:"addresses"`
}

// The limits of the network interfaces of a server.
const (
	maxInterfaces = 8
	maxAddresses  = 1
)

// attachments returns the network interfaces that a create asks for; none for that of the
// default.
func (b createServer) attachments() []Attachment {
	if id := deref(b.NetworkID, ""); id != "" {
		return []Attachment{{NetworkID: id}}
	}
	return b.Interfaces
}

// attachable returns an error for interfaces whose capability is off.
func (b createServer) attachable(c *core) error {
	addressed := slices.ContainsFunc(b.Interfaces, func(a Attachment) bool { return a.Addresses != nil })
	switch {
	case (b.NetworkID != nil || b.Interfaces != nil) && !c.has(Networks):
		return unsupported("networks")
	case len(b.Interfaces) > 1 && !c.has(Interfaces):
		return unsupported("several interfaces")
	case addressed && !c.has(StaticAddresses):
		return unsupported("addresses of interfaces")
	}
	return nil
}

// checkInterfaces returns an error for interfaces that no cloud could have.
func (b createServer) checkInterfaces() error {
	switch {
	case b.Interfaces == nil:
		return nil
	case b.NetworkID != nil:
		return invalid("networkId cannot be combined with interfaces")
	case len(b.Interfaces) == 0 || len(b.Interfaces) > maxInterfaces:
		return invalid("interfaces: 1-%d are allowed", maxInterfaces)
	}
	for _, a := range b.Interfaces {
		switch {
		case a.NetworkID == "":
			return invalid("interfaces: networkId is required")
		case len(a.Addresses) > maxAddresses:
			return invalid("interfaces: more than %d address of one interface", maxAddresses)
		}
		for _, text := range a.Addresses {
			if _, err := netip.ParseAddr(text); err != nil {
				return problem(http.StatusBadRequest, CodeAddressInvalid, "%q is no IP address", text)
			}
		}
	}
	return nil
}

// admitAttachments returns an error if a network does not exist, or if an address is none of
// its network or has been taken. The caller holds core.mu.
func (s *state) admitAttachments(b createServer) error {
	asked := map[lease]bool{}
	for _, a := range b.attachments() {
		n := s.networks[a.NetworkID]
		if n == nil {
			return invalid("there is no network %q", a.NetworkID)
		}
		for _, text := range a.Addresses {
			address, _ := netip.ParseAddr(text)
			if !n.offers(address) {
				return problem(http.StatusBadRequest, CodeAddressInvalid, "a server of the network %s, %s with the gateway %s, cannot have the address %s", n.Name, n.CIDR, n.Gateway, text)
			}
			taken := lease{network: n.ID, address: address}
			if _, used := s.addresses[taken]; used || asked[taken] {
				return problem(http.StatusConflict, CodeAddressInUse, "the address %s of the network %s is in use", text, n.Name)
			}
			asked[taken] = true
		}
	}
	return nil
}

// offers reports whether a server of the network may have an address: one inside the range
// that is neither the gateway nor the first or the last, which are those of the network itself.
func (n *Network) offers(address netip.Addr) bool {
	prefix, err := netip.ParsePrefix(n.CIDR)
	if err != nil { // PutNetwork checks nothing
		return true
	}
	inside := prefix.Contains(address) && address.String() != n.Gateway
	if !inside || prefix.Bits() >= address.BitLen()-1 {
		return inside
	}
	return prefix.Contains(address.Prev()) && (address.Is6() || prefix.Contains(address.Next()))
}

// lease is an address that a server of a network has. The network is empty for the default one.
type lease struct {
	network string
	address netip.Addr
}

// leases returns the addresses of a server.
func (r *record) leases() iter.Seq[lease] {
	return func(yield func(lease) bool) {
		for _, i := range r.Interfaces {
			for _, text := range i.Addresses {
				address, err := netip.ParseAddr(text)
				if err == nil && !yield(lease{network: cmp.Or(i.NetworkID, r.NetworkID), address: address}) {
					return
				}
			}
		}
	}
}

// networksOf returns the networks that a server is attached to, each once.
func (r *record) networksOf() []string {
	ids := []string{r.NetworkID}
	for _, i := range r.Interfaces {
		ids = append(ids, i.NetworkID)
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
}

// withoutNetworks returns interfaces as a cloud shows them that has no networks.
func withoutNetworks(interfaces []Interface) []Interface {
	shown := slices.Clone(interfaces)
	for i := range shown {
		shown[i].NetworkID = ""
	}
	return shown
}
