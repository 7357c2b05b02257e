package network

import (
	"strings"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func TestGatewayThatIsTheNetworksOwnOrItsBroadcastAddressIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ cidr, gateway, says string }{
		"the first address":                                  {"10.0.0.0/24", "10.0.0.1", ""},
		"the last address but one":                           {"10.0.0.0/24", "10.0.0.254", ""},
		"the network's":                                      {"10.0.0.0/24", "10.0.0.0", "the address of the network itself 10.0.0.0/24: set spec.gateway to another address of it, such as 10.0.0.1"},
		"the broadcast address":                              {"10.0.0.0/24", "10.0.0.255", "the broadcast address of the network 10.0.0.0/24"},
		"one that ends in 0 within a large network":          {"10.0.0.0/16", "10.0.1.0", ""},
		"one that ends in 255 within a large network":        {"10.0.0.0/16", "10.0.1.255", ""},
		"the broadcast address of a large network":           {"10.0.0.0/9", "10.127.255.255", "broadcast"},
		"the broadcast address of a small network":           {"10.0.0.4/30", "10.0.0.7", "broadcast"},
		"the network's of a small network":                   {"10.0.0.4/30", "10.0.0.4", "such as 10.0.0.5"},
		"the last address of all":                            {"0.0.0.0/0", "255.255.255.255", "broadcast"},
		"the first of two addresses":                         {"10.0.0.0/31", "10.0.0.0", ""},
		"the second of two addresses":                        {"10.0.0.0/31", "10.0.0.1", ""},
		"the only address":                                   {"10.0.0.1/32", "10.0.0.1", ""},
		"IPv6: the first address":                            {"fd00::/64", "fd00::1", ""},
		"IPv6: the network's, in another spelling":           {"fd00::/64", "fd00:0::0", "the address of the network itself fd00::/64"},
		"IPv6: the last address, since none is broadcast":    {"fd00::/64", "fd00::ffff:ffff:ffff:ffff", ""},
		"IPv6: the network's of four addresses":              {"fd00::/126", "fd00::", "itself"},
		"IPv6: the first of two addresses":                   {"fd00::/127", "fd00::", ""},
		"IPv6: the only address":                             {"fd00::1/128", "fd00::1", ""},
		"outside of the range, which the API server refuses": {"10.0.0.0/24", "10.0.1.255", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := refusedGateway(netWith(func(net *pcapi.Network) { net.Spec.CIDR, net.Spec.Gateway = tc.cidr, tc.gateway }))
			switch {
			case tc.says == "" && err != nil:
				t.Errorf("got %v, want it allowed", err)
			case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

func TestNetworkWithABroadcastAddressAsGatewayIsNotSentToTheCloud(t *testing.T) {
	t.Parallel()
	h := newHarness(t, everything, nil, netWith(func(net *pcapi.Network) { net.Spec.Gateway = "10.0.0.255" }))
	h.reconcile()
	h.wantCalls()
	h.wantCondition("Ready", "False Rejected", "broadcast address")
}

func TestEditOfAGatewayToTheNetworksOwnAddressIsNotSentToTheCloud(t *testing.T) {
	t.Parallel()
	h := newHarness(t, everything, []cloud.Network{networkWith()}, onRecord(func(net *pcapi.Network) { net.Spec.Gateway = "10.0.0.0" }))
	h.reconcile()
	h.wantCalls("list")
	h.wantCondition("Ready", "False Rejected", "10.0.0.0", "itself")
}
