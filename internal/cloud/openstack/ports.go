package openstack

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
)

// port is a network interface of a server or a router in the JSON of the network service.
type port struct {
	ID        string    `json:"id"`
	DeviceID  string    `json:"device_id"`
	Owner     string    `json:"device_owner"`
	NetworkID string    `json:"network_id"`
	Groups    []string  `json:"security_groups"`
	FixedIPs  []fixedIP `json:"fixed_ips"`
	MAC       string    `json:"mac_address"`
	// Pairs are what the port may use beside its own addresses.
	Pairs []addressPair `json:"allowed_address_pairs"`
}

type addressPair struct {
	Address string `json:"ip_address"`
	MAC     string `json:"mac_address"`
}

type fixedIP struct {
	Address  string `json:"ip_address"`
	SubnetID string `json:"subnet_id"`
}

func (p port) marker() string { return idOrNone(p.ID) }

// ipv4 returns the first IPv4 address of a port; empty if it has none.
func (p port) ipv4() string {
	for _, fixed := range p.FixedIPs {
		if address, err := netip.ParseAddr(fixed.Address); err == nil && address.Is4() {
			return fixed.Address
		}
	}
	return ""
}

// portsOf lists the ports of a server, those on the given network first. It is Rejected if there are none.
func (s *session) portsOf(ctx context.Context, op, serverID, first string) ([]port, *cloud.Error) {
	ports, err := s.listPorts(ctx, op, serverID, first)
	if err == nil && len(ports) == 0 {
		err = refuse(op, cloud.Rejected, "the server has no network interface")
	}
	return ports, err
}

// listPorts lists the ports of a server, those on the given network first.
func (s *session) listPorts(ctx context.Context, op, serverID, first string) ([]port, *cloud.Error) {
	call := &call{about: aboutCloud, service: network, method: http.MethodGet, route: "network/ports", path: "ports", op: op}
	ports, err := listPages(ctx, s, call, url.Values{"device_id": {serverID}}, "ports", port.marker)
	if err != nil {
		err.Detail = "listing the network interfaces of the server: " + err.Detail
		return nil, err
	}
	slices.SortFunc(ports, func(a, b port) int {
		switch {
		case (a.NetworkID == first) == (b.NetworkID == first):
			return strings.Compare(a.ID, b.ID)
		case a.NetworkID == first:
			return -1
		}
		return 1
	})
	return ports, nil
}

// setPort changes a port of a server. It is Busy if the port is gone: the server may have others meanwhile.
func (s *session) setPort(ctx context.Context, op, id string, fields map[string]any) *cloud.Error {
	err := s.do(ctx, &call{
		about: aboutReach, service: network, method: http.MethodPut, route: "network/ports/{id}", path: "ports/" + id, op: op,
		body: map[string]any{"port": fields},
	})
	if err != nil && err.Code == "PortNotFound" {
		err.Kind = cloud.Busy
	}
	return err
}
