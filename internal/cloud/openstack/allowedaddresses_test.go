package openstack

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// recording returns the request that records allowed addresses.
func recording(text string) string {
	return "POST" + aboutSome + `/metadata {"metadata":{"privatecloud:allowed-addresses":"` + text + `"}}`
}

func TestAllowedAddresses(t *testing.T) {
	ranges := func(c *Config) { c.AllowedAddresses = []string{"10.0.0.192/28", "10.0.0.250", "fd00::/64"} }
	pairs := func(addresses ...string) string {
		var all []string
		for _, address := range addresses {
			all = append(all, fmt.Sprintf(`{"ip_address":%q}`, address))
		}
		return "PUT" + aboutPort + ` {"port":{"allowed_address_pairs":[` + strings.Join(all, ",") + `]}}`
	}
	allowing := func(pair string) func(*stub) {
		return func(s *stub) {
			s.on("GET network/ports", `{"ports": [{"id": "`+portID+`", "mac_address": "fa:16:3e:00:00:01", "allowed_address_pairs": [`+pair+`]}]}`)
		}
	}
	changing := recording(cloud.AddressPending)
	var many []string
	for i := range 10 {
		many = append(many, fmt.Sprintf("fd00::1111:2222:3333:%x", 0x1000+i))
	}
	tests := map[string]struct {
		change  cloud.SetAllowedAddresses
		config  func(*Config)
		prepare func(*stub)
		sent    []string
		want    string
	}{
		"an address and a range of the Cloud": {
			change: "10.0.0.192/29\n10.0.0.250", sent: []string{changing, pairs("10.0.0.192/29", "10.0.0.250"), recording("10.0.0.192/29,10.0.0.250")},
		},
		"none: removed, also without ranges of the Cloud": {
			change: "", config: func(*Config) {}, prepare: allowing(`{"ip_address": "10.0.0.250", "mac_address": "fa:16:3e:00:00:01"}`), sent: []string{changing, pairs(), recording("")},
		},
		"none, and the port allows none: recorded": {change: "", sent: []string{recording("")}},
		"the port allows them: recorded": {
			change: "10.0.0.250", prepare: allowing(`{"ip_address": "10.0.0.250/32", "mac_address": "fa:16:3e:00:00:01"}`), sent: []string{recording("10.0.0.250")},
		},
		"the port allows them with another MAC address": {
			change: "10.0.0.250", prepare: allowing(`{"ip_address": "10.0.0.250", "mac_address": "00:00:5e:00:01:01"}`),
			sent: []string{changing, pairs("10.0.0.250"), recording("10.0.0.250")},
		},
		"the port allows what cannot be read": {
			change: "", prepare: allowing(`{"ip_address": "vip", "mac_address": "fa:16:3e:00:00:01"}`), sent: []string{changing, pairs(), recording("")},
		},
		"a change that ended halfway is made again": {
			change: "fd00::9", prepare: func(s *stub) {
				s.on("GET"+aboutSome, oneServer(`"metadata": {"privatecloud:allowed-addresses": "pending"}`))
			},
			sent: []string{pairs("fd00::9"), recording("fd00::9")},
		},
		"a larger range than that of the Cloud": {change: "10.0.0.0/24", want: "Rejected: 10.0.0.0/24 is in no range that the Cloud allows: ask an administrator to add it to openstack.network.allowedAddresses of the Cloud"},
		"one of two in no range":                {change: "10.0.0.250\n10.0.0.251", want: "Rejected: 10.0.0.251 is in no range that"},
		"all addresses, by the other family":    {change: "::/0", want: "Rejected: ::/0 is in no range that"},
		"an IPv4 address that is mapped":        {change: "::ffff:10.0.0.250", want: "Rejected: ::ffff:10.0.0.250 is in no range that"},
		"no ranges of the Cloud":                {change: "10.0.0.250", config: func(*Config) {}, want: "Rejected: 10.0.0.250 is in no range that"},
		"more than metadata holds":              {change: cloud.SetAllowedAddresses(strings.Join(many, "\n")), want: "Rejected: the allowed addresses have 259 characters together, and this cloud takes 255"},
		"the server has no port": {
			change: "10.0.0.250", prepare: func(s *stub) { s.on("GET network/ports", `{"ports": []}`) }, want: "Rejected: the server has no network interface",
		},
		"none, and the server has no port: recorded": {
			change: "", prepare: func(s *stub) { s.on("GET network/ports", `{"ports": []}`) }, sent: []string{recording("")},
		},
		"the port is gone: busy": {
			change: "10.0.0.250", prepare: func(s *stub) {
				s.on("PUT"+aboutPort, neutronError("PortNotFound", "Port x could not be found."), 404)
			},
			sent: []string{changing, pairs("10.0.0.250")}, want: "Busy: Port x could not be found.",
		},
		"a network without port security": {
			change: "10.0.0.250", prepare: func(s *stub) {
				s.on("PUT"+aboutPort, neutronError("AddressPairAndPortSecurityRequired", "Port Security must be enabled in order to have allowed address pairs on a port."), 409)
			},
			sent: []string{changing, pairs("10.0.0.250")}, want: "Rejected: Port Security must be enabled",
		},
		"a network of another project": {
			change: "10.0.0.250", prepare: func(s *stub) {
				s.on("PUT"+aboutPort, neutronError("PolicyNotAuthorized", "rule:update_port:allowed_address_pairs is disallowed by policy"), 403)
			},
			sent: []string{changing, pairs("10.0.0.250")}, want: "Forbidden: ",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			onReach(s)
			if tc.prepare != nil {
				tc.prepare(s)
			}
			if tc.config == nil {
				tc.config = ranges
			}
			_, err := s.client(tc.config).UpdateServer(t.Context(), someID, cloud.Update{tc.change})
			got := ""
			if failed, ok := errors.AsType[*cloud.Error](err); ok {
				got = string(failed.Kind) + ": " + failed.Detail
			}
			if !strings.HasPrefix(got, tc.want) || (err == nil) != (tc.want == "") {
				t.Errorf("UpdateServer: %v, want %q", err, tc.want)
			}
			if diff := cmp.Diff(tc.sent, changesOf(s.taken())); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

// All ports of a server get the addresses, and the server shows them once all have them. A change that ended between two ports goes on
// with those that are left.
func TestAllowedAddressesOfSeveralPorts(t *testing.T) {
	const second = "PUT network/ports/" + sshID
	pairs := ` {"port":{"allowed_address_pairs":[{"ip_address":"10.0.0.9"}]}}`
	s := newStub(t)
	onReach(s)
	s.on("GET network/ports", `{"ports": [{"id": "`+portID+`"}, {"id": "`+sshID+`"}]}`)
	s.on(second, neutronError("PolicyNotAuthorized", "rule:update_port:allowed_address_pairs is disallowed by policy"), 403)
	client := s.client(func(c *Config) { c.AllowedAddresses = []string{"0.0.0.0/0"} })
	update := func() error {
		_, err := client.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetAllowedAddresses("10.0.0.9")})
		return err
	}
	if err := update(); cloud.KindOf(err) != cloud.Forbidden {
		t.Errorf("UpdateServer: %v, want it to fail with the second port", err)
	}
	if diff := cmp.Diff([]string{recording(cloud.AddressPending), "PUT" + aboutPort + pairs, second + pairs}, changesOf(s.taken())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}

	s.on("GET"+aboutSome, oneServer(`"metadata": {"privatecloud:allowed-addresses": "pending"}`))
	s.on("GET network/ports", `{"ports": [{"id": "`+portID+`", "allowed_address_pairs": [{"ip_address": "10.0.0.9"}]}, {"id": "`+sshID+`"}]}`)
	s.on(second, `{"port": {}}`)
	if err := update(); err != nil {
		t.Errorf("UpdateServer: %v", err)
	}
	if diff := cmp.Diff([]string{second + pairs, recording("10.0.0.9")}, changesOf(s.taken())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestAllowedAddressesOfAServer(t *testing.T) {
	for recorded, want := range map[string]cloud.AllowedAddresses{
		"":                      "",
		cloud.AddressPending:    cloud.AddressPending,
		"10.0.0.9":              "10.0.0.9",
		"10.0.0.9,10.0.0.0/28":  "10.0.0.0/28\n10.0.0.9",
		"10.0.0.9,by hand":      "10.0.0.9",
		"10.0.0.9, 10.0.0.0/28": "10.0.0.9",
	} {
		s := newStub(t)
		s.on("GET"+aboutSome, oneServer(fmt.Sprintf(`"metadata": {"privatecloud:allowed-addresses": %q}`, recorded)), http.StatusOK)
		got, err := s.client().GetServer(t.Context(), someID)
		if err != nil || got.AllowedAddresses != want || len(got.Labels) > 0 {
			t.Errorf("%q: addresses %q, labels %v, %v, want %q", recorded, got.AllowedAddresses, got.Labels, err, want)
		}
	}
}
