package cloud

import (
	"net"
	"net/netip"
	"slices"
	"strings"
)

// The most interfaces of a server and addresses of an interface that are kept. A guest
// may report any number.
const (
	MaxInterfaces = 16
	MaxAddresses  = 16
)

// Interface is a network interface of a server.
type Interface struct {
	// MAC is the MAC address in the form of IEEE 802, with colons; empty if it is not known.
	MAC string
	// Addresses are IPv4 and IPv6 addresses, without prefix lengths, the preferred ones first.
	Addresses []string
}

// Attachment is a network interface of a new server.
type Attachment struct {
	NetworkID string
	// Addresses are static addresses in the canonical form, at most one; none leaves the
	// address to the cloud.
	Addresses []string `json:",omitempty"`
}

// Attachments returns the network interfaces that a create asks for, none to leave them to the
// cloud.
func (r CreateServer) Attachments() []Attachment {
	if r.NetworkID != "" {
		return []Attachment{{NetworkID: r.NetworkID}}
	}
	return r.Interfaces
}

// FirstNetwork returns the network of the first interface that a create asks for, empty for
// none.
func (r CreateServer) FirstNetwork() string {
	if len(r.Interfaces) > 0 {
		return r.Interfaces[0].NetworkID
	}
	return r.NetworkID
}

// Interfaced reports whether a create asks for several network interfaces.
func (r CreateServer) Interfaced() bool { return len(r.Interfaces) > 1 }

// Addressed reports whether a create asks for static addresses.
func (r CreateServer) Addressed() bool {
	return slices.ContainsFunc(r.Interfaces, func(a Attachment) bool { return len(a.Addresses) > 0 })
}

// Interfaces are the network interfaces of a server in the order of the cloud, which does
// not change from one answer to the next. They are one text, which can be compared and takes
// little memory: of each interface the MAC address and then the IP addresses, separated by
// commas. Interfaces are separated by spaces.
type Interfaces string

// NewInterfaces returns the interfaces in the canonical form of their addresses, and whether
// all that was read are addresses: what is none is left out. What is beyond the limits is left
// out, too, and so are addresses that are valid on one link or host only, because nobody else
// can use them, and interfaces with neither a MAC nor an IP address.
func NewInterfaces(list []Interface) (interfaces Interfaces, valid bool) {
	var text strings.Builder
	valid = true
	kept := 0
	for _, i := range list {
		mac, known := canonicalMAC(i.MAC)
		addresses, all := canonicalAddresses(i.Addresses)
		valid = valid && known && all
		switch {
		case mac == "" && len(addresses) == 0:
			continue
		case kept == MaxInterfaces:
			return Interfaces(text.String()), valid
		case kept > 0:
			text.WriteByte(' ')
		}
		kept++
		text.WriteString(mac)
		for _, address := range addresses {
			text.WriteByte(',')
			text.WriteString(address.String())
		}
	}
	return Interfaces(text.String()), valid
}

// canonicalMAC returns a MAC address with colons and lower-case digits, empty if it is none,
// and whether it is one or missing.
func canonicalMAC(text string) (string, bool) {
	if text == "" {
		return "", true
	}
	mac, err := net.ParseMAC(text)
	if err != nil {
		return "", false
	}
	return mac.String(), true
}

func canonicalAddresses(texts []string) (addresses []netip.Addr, valid bool) {
	valid = true
	for _, text := range texts {
		address, err := netip.ParseAddr(text)
		address = address.Unmap().WithZone("")
		switch {
		case err != nil:
			valid = false
		case !address.IsGlobalUnicast(), slices.Contains(addresses, address):
		case len(addresses) == MaxAddresses:
			return addresses, valid
		default:
			addresses = append(addresses, address)
		}
	}
	return addresses, valid
}

// List returns each interface.
func (i Interfaces) List() []Interface {
	if i == "" {
		return nil
	}
	var list []Interface
	for text := range strings.SplitSeq(string(i), " ") {
		mac, rest, some := strings.Cut(text, ",")
		one := Interface{MAC: mac}
		if some {
			one.Addresses = strings.Split(rest, ",")
		}
		list = append(list, one)
	}
	return list
}
