package mockcloud

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"iter"
	"net/netip"
)

// Interface is a network interface of a server.
type Interface struct {
	MACAddress string   `json:"macAddress"`
	Addresses  []string `json:"addresses"`
}

// defaultRange is the range of servers without a network.
const defaultRange = "10.0.0.0/8"

// attach returns the interface of a new server. Its address is in the range of its network,
// else in defaultRange, and no other server has it. It returns none if there is no such
// address. The caller holds mu.
func (c *Cloud) attach(s *Server) []Interface {
	in, gateway := defaultRange, ""
	if n := c.st.networks[s.NetworkID]; n != nil {
		in, gateway = n.CIDR, n.Gateway
	}
	prefix, err := netip.ParsePrefix(in)
	if err != nil { // PutNetwork checks nothing
		return nil
	}
	digest := fnv.New32a()
	_, _ = digest.Write([]byte(s.ID))
	seed := digest.Sum32()
	mac := fmt.Sprintf("fa:16:3e:%02x:%02x:%02x", seed>>16&0xff, seed>>8&0xff, seed&0xff)
	for address := range hosts(prefix, seed) {
		if _, used := c.st.addresses[address]; !used && address.String() != gateway {
			return []Interface{{MACAddress: mac, Addresses: []string{address.String()}}}
		}
	}
	return nil
}

// hosts returns each address of a range that a host may have, but not more than 2^32. The
// seed decides which is the first.
func hosts(in netip.Prefix, seed uint32) iter.Seq[netip.Addr] {
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

// addresses returns the addresses of a server.
func (r *record) addresses() iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, i := range r.Interfaces {
			for _, text := range i.Addresses {
				if address, err := netip.ParseAddr(text); err == nil && !yield(address) {
					return
				}
			}
		}
	}
}
