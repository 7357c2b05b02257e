package openstack

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// allowedAddressClient lets the ports of servers use addresses beside their own: the network service drops packets of a port
// that come from others. It changes the ports that a server has. Compute deletes those that it has made with the server.
type allowedAddressClient struct {
	session *session
	// ranges are those of which servers may be given addresses.
	ranges []netip.Prefix
}

func newAllowedAddressClient(s *session, ranges []string) *allowedAddressClient {
	c := &allowedAddressClient{session: s}
	for _, text := range ranges {
		if prefix, ok := cloud.ParseAllowedAddress(text); ok {
			c.ranges = append(c.ranges, prefix)
		}
	}
	return c
}

// check refuses addresses that the Cloud does not allow, and those whose record is too long for the metadata of a server.
func (c *allowedAddressClient) check(op string, addresses cloud.AllowedAddresses) *cloud.Error {
	for _, text := range addresses.List() {
		asked, _ := cloud.ParseAllowedAddress(text)
		if !c.allows(asked) {
			return refuse(op, cloud.Rejected,
				"%s is in no range that the Cloud allows: ask an administrator to add it to openstack.network.allowedAddresses of the Cloud", text)
		}
	}
	if record := recordOf(addresses); len(record) > maxMetadata {
		return refuse(op, cloud.Rejected, "the allowed addresses have %d characters together, and this cloud takes %d: name a range in place of several addresses",
			len(record), maxMetadata)
	}
	return nil
}

func (c *allowedAddressClient) allows(asked netip.Prefix) bool {
	for _, r := range c.ranges {
		if r.Bits() <= asked.Bits() && r.Contains(asked.Addr()) {
			return true
		}
	}
	return false
}

// set lets all ports of a server use these addresses and no others. Annotate sets metadata of the server, which has what the
// ports allow, since compute does not show it.
func (c *allowedAddressClient) set(ctx context.Context, op string, s *server, addresses cloud.AllowedAddresses, annotate func(map[string]string) *cloud.Error) *cloud.Error {
	if err := c.check(op, addresses); err != nil {
		return err
	}
	list := c.session.portsOf
	if addresses == "" { // a server without ports has nothing to remove
		list = c.session.listPorts
	}
	ports, err := list(ctx, op, s.ID, s.Metadata[networkKey])
	if err != nil {
		return err
	}
	ports = slices.DeleteFunc(ports, func(p port) bool { return p.allowed() == addresses })
	if len(ports) > 0 && s.Metadata[allowedKey] != cloud.AddressPending { // a change that ends between two requests is made again
		if err := annotate(map[string]string{allowedKey: cloud.AddressPending}); err != nil {
			return err
		}
	}
	pairs := make([]map[string]string, 0, len(addresses.List()))
	for _, text := range addresses.List() {
		pairs = append(pairs, map[string]string{"ip_address": text})
	}
	for _, p := range ports {
		if err := c.session.setPort(ctx, op, p.ID, map[string]any{"allowed_address_pairs": pairs}); err != nil {
			return err
		}
	}
	return annotate(map[string]string{allowedKey: recordOf(addresses)})
}

// allowed returns what a port may use beside its own addresses. It is no text of SetAllowedAddresses if the port may use another
// MAC address than its own, or what cannot be read.
func (p port) allowed() cloud.AllowedAddresses {
	texts := make([]string, 0, len(p.Pairs))
	for _, pair := range p.Pairs {
		if pair.MAC != "" && pair.MAC != p.MAC {
			return cloud.AddressPending
		}
		texts = append(texts, pair.Address)
	}
	addresses, valid := cloud.NewAllowedAddresses(texts)
	if !valid {
		return cloud.AddressPending
	}
	return addresses
}

// recordOf returns what the metadata of a server has of addresses.
func recordOf(addresses cloud.AllowedAddresses) string { return strings.Join(addresses.List(), ",") }
