package network

import (
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

var withDualStack = cloud.NewCapabilities(append([]cloud.Capability{cloud.DualStack}, everything...)...)

const ipv6Range = "fd00:10::/64"

func withIPv6Range(net *pcapi.Network) { net.Spec.IPv6CIDR = ipv6Range }

func hasIPv6CIDR(cidr string) func(*cloud.Network) {
	return func(n *cloud.Network) { n.IPv6CIDR = cidr }
}

func TestIPv6Range(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		caps     cloud.Capabilities
		networks []cloud.Network
		net      *pcapi.Network
		want     string
		ready    string
		calls    []string
	}{
		"new: created with it":                   {withDualStack, nil, netWith(withIPv6Range), ipv6Range, "True InSync", []string{"create"}},
		"added to a network: made":               {withDualStack, []cloud.Network{networkWith()}, onRecord(withIPv6Range), ipv6Range, "True InSync", []string{"list", "update"}},
		"the same in another form: in sync":      {withDualStack, []cloud.Network{networkWith(hasIPv6CIDR("fd00:0010:0::/64"))}, onRecord(withIPv6Range), "fd00:0010:0::/64", "True InSync", []string{"list"}},
		"not in the spec: left as it is":         {withDualStack, []cloud.Network{networkWith(hasIPv6CIDR("fd00:99::/64"))}, onRecord(), "fd00:99::/64", "True InSync", []string{"list"}},
		"another one in the cloud: Drift":        {withDualStack, []cloud.Network{networkWith(hasIPv6CIDR("fd00:99::/64"))}, onRecord(withIPv6Range), "fd00:99::/64", "False Drift", []string{"list"}},
		"the cloud lacks it, new: Unsupported":   {everything, nil, netWith(withIPv6Range), "", "False Unsupported", nil},
		"the cloud lacks it, added: Unsupported": {everything, []cloud.Network{networkWith()}, onRecord(withIPv6Range), "", "False Unsupported", []string{"list"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, test.caps, test.networks, test.net)
			h.reconcile()
			h.wantCalls(test.calls...)
			h.wantCondition("Ready", test.ready)
			if got := h.status().IPv6CIDR; got != test.want {
				t.Errorf("status %q, want %q", got, test.want)
			}
		})
	}
	t.Run("not as asked after an update: Drift", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, withDualStack, []cloud.Network{networkWith()}, onRecord(withIPv6Range))
		h.cloud.Ignore(cloudfake.UpdateNetwork)
		h.reconcile()
		h.wantCondition("Stalled", "True Drift", "was asked for ipv6CIDR "+ipv6Range+" and set none")
	})
	t.Run("another one in the cloud: the condition names both", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, withDualStack, []cloud.Network{networkWith(hasIPv6CIDR("fd00:99::/64"))}, onRecord(withIPv6Range))
		h.reconcile()
		h.wantCondition("Stalled", "True Drift", "ipv6CIDR of network", "is fd00:99::/64 in the cloud, fd00:10::/64 in the spec")
	})
}
