package network

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

var withDNS = cloud.NewCapabilities(append([]cloud.Capability{cloud.NetworkDNS}, everything...)...)

func asksFor(servers ...pcapi.NetworkAddress) func(*pcapi.Network) {
	return func(net *pcapi.Network) { net.Spec.DNSNameservers = servers }
}

func answers(servers ...string) func(*cloud.Network) {
	return func(n *cloud.Network) { n.DNSNameservers = servers }
}

func (h *harness) status() pcapi.NetworkStatus {
	h.t.Helper()
	var net pcapi.Network
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: "ns", Name: "net"}, &net); err != nil {
		h.t.Fatalf("Get: %v", err)
	}
	return net.Status
}

func TestServersForNames(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		caps     cloud.Capabilities
		networks []cloud.Network
		net      *pcapi.Network
		want     []string
		ready    string
		calls    []string
	}{
		"new: created with them":                       {withDNS, nil, netWith(asksFor("10.0.0.53", "fd00::53")), []string{"10.0.0.53", "fd00::53"}, "True InSync", []string{"create"}},
		"changed in the cloud: set back":               {withDNS, []cloud.Network{networkWith(answers("10.9.9.9"))}, onRecord(asksFor("10.0.0.53")), []string{"10.0.0.53"}, "True InSync", []string{"list", "update"}},
		"another order: set back":                      {withDNS, []cloud.Network{networkWith(answers("10.0.0.2", "10.0.0.1"))}, onRecord(asksFor("10.0.0.1", "10.0.0.2")), []string{"10.0.0.1", "10.0.0.2"}, "True InSync", []string{"list", "update"}},
		"the same in another form: in sync":            {withDNS, []cloud.Network{networkWith(answers("fd00:0::53"))}, onRecord(asksFor("fd00::53")), []string{"fd00:0::53"}, "True InSync", []string{"list"}},
		"IPv6 addresses last, one range: set back":     {withDNS, []cloud.Network{networkWith(answers("10.0.0.1", "10.0.0.2", "fd00::53"))}, onRecord(asksFor("10.0.0.1", "fd00::53", "10.0.0.2")), []string{"10.0.0.1", "fd00::53", "10.0.0.2"}, "True InSync", []string{"list", "update"}},
		"IPv6 addresses last, two ranges: in sync":     {withDNS, []cloud.Network{networkWith(answers("10.0.0.1", "10.0.0.2", "fd00::53"), hasIPv6CIDR("fd00:1::/64"))}, onRecord(asksFor("10.0.0.1", "fd00::53", "10.0.0.2")), []string{"10.0.0.1", "10.0.0.2", "fd00::53"}, "True InSync", []string{"list"}},
		"not in the spec: left as they are":            {withDNS, []cloud.Network{networkWith(answers("10.9.9.9"))}, onRecord(), []string{"10.9.9.9"}, "True InSync", []string{"list"}},
		"the cloud lacks them, new: Unsupported":       {everything, nil, netWith(asksFor("10.0.0.53")), nil, "False Unsupported", nil},
		"the cloud lacks them, on record: Unsupported": {everything, []cloud.Network{networkWith()}, onRecord(asksFor("10.0.0.53")), nil, "False Unsupported", []string{"list"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, test.caps, test.networks, test.net)
			h.reconcile()
			h.wantCalls(test.calls...)
			h.wantCondition("Ready", test.ready)
			if diff := cmp.Diff(test.want, h.status().DNSNameservers); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("not as asked after an update: Drift", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, withDNS, []cloud.Network{networkWith()}, onRecord(asksFor("10.0.0.53")))
		h.cloud.Ignore(cloudfake.UpdateNetwork)
		h.reconcile()
		h.wantCondition("Stalled", "True Drift", "was asked for dnsNameservers 10.0.0.53 and set none")
	})
	t.Run("unsupported: the condition names the field", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, everything, nil, netWith(asksFor("10.0.0.53")))
		h.reconcile()
		h.wantCondition("Stalled", "True Unsupported", `Cloud "default" cannot set dnsNameservers`)
	})
}
