package mockcloud

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"iter"
	"net"
	"net/netip"
	"slices"
)

// Interface is a network interface of a server.
type Interface struct {
	MACAddress string `json:"macAddress"`
	// NetworkID is empty for the default network.
	NetworkID string   `json:"networkId,omitempty"`
	Addresses []string `json:"addresses"`
}

// defaultRange is the range of servers without a network.
const defaultRange = "10.0.0.0/8"

// attach returns the interfaces of a new server, one if it asks for none. An address that it
// does not ask for is in the range of the network, else in defaultRange, and no other server
// of the network has it. The interface has none if there is no such address. The caller holds core.mu.
func (s *state) attach(server *Server, asked []Attachment) []Interface {
	if len(asked) == 0 {
		asked = []Attachment{{NetworkID: server.NetworkID}}
	}
	var interfaces []Interface
	own := map[netip.Addr]bool{}
	for _, a := range asked {
		for _, text := range a.Addresses {
			if address, err := netip.ParseAddr(text); err == nil {
				own[address] = true
			}
		}
	}
	for n, a := range asked {
		digest := fnv.New32a()
		_, _ = digest.Write([]byte(server.ID))
		if n > 0 {
			_, _ = fmt.Fprint(digest, n)
		}
		seed := digest.Sum32()
		one := Interface{
			MACAddress: fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", seed>>16&0xff, seed>>8&0xff, seed&0xff),
			NetworkID:  a.NetworkID, Addresses: a.Addresses,
		}
		if len(one.Addresses) == 0 {
			one.Addresses = s.choose(a.NetworkID, seed, own)
		}
		if n := s.networks[a.NetworkID]; n != nil {
			one.Addresses = append(slices.Clone(one.Addresses), addressIn(n.IPv6CIDR, one.MACAddress)...)
		}
		interfaces = append(interfaces, one)
	}
	return interfaces
}

// addressIn returns the address that a guest derives from its MAC address in an IPv6 range (RFC 4291, appendix A); none without a range.
func addressIn(cidr, mac string) []string {
	prefix, err := netip.ParsePrefix(cidr)
	hardware, failed := net.ParseMAC(mac)
	if err != nil || failed != nil || !prefix.Addr().Is6() {
		return nil
	}
	address := prefix.Addr().As16()
	copy(address[8:], []byte{hardware[0] ^ 2, hardware[1], hardware[2], 0xff, 0xfe, hardware[3], hardware[4], hardware[5]})
	return []string{netip.AddrFrom16(address).String()}
}

// choose returns a free address of a network, which it adds to own, or none. The caller holds core.mu.
func (s *state) choose(network string, seed uint32, own map[netip.Addr]bool) []string {
	in, gateway := defaultRange, ""
	if n := s.networks[network]; n != nil {
		in, gateway = n.CIDR, n.Gateway
	}
	prefix, err := netip.ParsePrefix(in)
	if err != nil { // PutNetwork checks nothing
		return []string{}
	}
	for address := range hostAddresses(prefix, seed) {
		if _, used := s.addresses[lease{network: network, address: address}]; !used && !own[address] && address.String() != gateway {
			own[address] = true
			return []string{address.String()}
		}
	}
	return []string{}
}

// hostAddresses returns each address of a range that a host may have, but not more than 2^32. The
// seed decides which is the first.
func hostAddresses(in netip.Prefix, seed uint32) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		base := in.Masked().Addr().AsSlice()
		low := base[len(base)-4:]
		network := binary.BigEndian.Uint32(low)
		last := uint32(1)<<min(32, len(base)*8-in.Bits()) - 1 // of 2^32 all bits
		for n := range uint64(last) {
			offset := uint32((uint64(seed) + n) % uint64(last)) //nolint:gosec // below 2^32
			if offset == 0 {
				continue
			}
			binary.BigEndian.PutUint32(low, network|offset)
			address, _ := netip.AddrFromSlice(base)
			if !yield(address) {
				return
			}
		}
	}
}
