package openstack

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPoolsOfASubnetLeaveOutTheGateway(t *testing.T) {
	tests := map[string]struct {
		subnet  subnet
		gateway string
		want    []pool
	}{
		"all addresses: all but the new gateway": {
			subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", Pools: []pool{{"10.0.0.2", "10.0.0.254"}}}, "10.0.0.9",
			[]pool{{"10.0.0.1", "10.0.0.8"}, {"10.0.0.10", "10.0.0.254"}},
		},
		"all addresses in two parts: all but the new gateway": {
			subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.9", Pools: []pool{{"10.0.0.10", "10.0.0.254"}, {"10.0.0.1", "10.0.0.8"}}}, "10.0.0.254",
			[]pool{{"10.0.0.1", "10.0.0.253"}},
		},
		"pools of a person: kept": {
			subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", Pools: []pool{{"10.0.0.100", "10.0.0.120"}}}, "10.0.0.2",
			[]pool{{"10.0.0.100", "10.0.0.120"}},
		},
		"pools of a person with the new gateway: kept but for it": {
			subnet{CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", Pools: []pool{{"10.0.0.100", "10.0.0.120"}, {"10.0.0.2", "10.0.0.2"}}}, "10.0.0.2",
			[]pool{{"10.0.0.100", "10.0.0.120"}},
		},
		"IPv6 has no address for broadcasts": {
			subnet{CIDR: "fd00::/120", Gateway: "fd00::1", Pools: []pool{{"fd00::2", "fd00::ff"}}}, "fd00::ff",
			[]pool{{"fd00::1", "fd00::fe"}},
		},
		"two addresses: the other one": {
			subnet{CIDR: "10.0.0.0/31", Gateway: "10.0.0.0", Pools: []pool{{"10.0.0.1", "10.0.0.1"}}}, "10.0.0.1",
			[]pool{{"10.0.0.0", "10.0.0.0"}},
		},
		"a gateway at the edge of the range: all addresses": {
			subnet{CIDR: "10.0.0.0/30", Gateway: "10.0.0.1", Pools: []pool{{"10.0.0.2", "10.0.0.2"}}}, "10.0.0.2",
			[]pool{{"10.0.0.1", "10.0.0.1"}},
		},
		"a range that cannot be read: as they are": {
			subnet{CIDR: "?", Pools: []pool{{"a", "b"}}}, "10.0.0.2", []pool{{"a", "b"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, poolsFor(tc.subnet, netip.MustParseAddr(tc.gateway))); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
		})
	}
}
