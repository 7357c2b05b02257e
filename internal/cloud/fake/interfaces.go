package fake

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// checkAttachments refuses networks that do not exist, and addresses that are outside their
// network or that another server has. The caller holds mu.
func (c *serverClient) checkAttachments(op string, req cloud.CreateServer) error {
	for _, a := range req.Attachments() {
		network, ok := c.networks.get(a.NetworkID)
		if !ok {
			return failure(op, cloud.Rejected, "there is no network %s", a.NetworkID)
		}
		for _, text := range a.Addresses {
			if err := c.checkAddress(op, network, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *serverClient) checkAddress(op string, network cloud.Network, text string) error {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return failure(op, cloud.Rejected, "%s is no address", quote(text))
	}
	if within, err := netip.ParsePrefix(network.CIDR); err == nil && !within.Contains(address) {
		return failure(op, cloud.Rejected, "the address %s is not inside %s", text, network.CIDR)
	}
	for id, interfaces := range c.interfaces {
		if c.store.has(id) && slices.ContainsFunc(interfaces, func(other cloud.Attachment) bool {
			return other.NetworkID == network.ID && slices.Contains(other.Addresses, text)
		}) {
			return failure(op, cloud.Rejected, "the address %s is in use", text)
		}
	}
	return nil
}

// attach gives a new server its interfaces: those without a static address have none. The
// caller holds mu.
func (c *serverClient) attach(s *cloud.Server, interfaces []cloud.Attachment) {
	c.interfaces[s.ID] = interfaces
	list := make([]cloud.Interface, 0, len(interfaces))
	for n, a := range interfaces {
		list = append(list, cloud.Interface{MAC: fmt.Sprintf("02:00:00:00:%02x:%02x", c.store.added&0xff, n), Addresses: a.Addresses})
	}
	s.Interfaces, _ = cloud.NewInterfaces(list)
}

// joined reports whether a server was created with an interface on a network. The caller
// holds mu.
func (c *serverClient) joined(server, network string) bool {
	return slices.ContainsFunc(c.interfaces[server], func(a cloud.Attachment) bool { return a.NetworkID == network })
}

// attachedTo returns how many servers are attached to a network. The caller holds mu.
func (c *serverClient) attachedTo(id string) int {
	n := 0
	for _, s := range c.store.items {
		if s.item.NetworkID == id || c.joined(s.item.ID, id) {
			n++
		}
	}
	return n
}
