package openstack_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/openstack"
)

// networkOf gives a project a network with these properties and a subnet, and returns its id.
func networkOf(projectID, cidr string, properties map[string]any) string {
	a := admin()
	body := map[string]any{"name": "pairs", "project_id": projectID}
	maps.Copy(body, properties)
	id := a.create("network", "networks", "network", body)
	a.create("network", "subnets", "subnet", map[string]any{"name": "pairs", "network_id": id, "project_id": projectID, "cidr": cidr, "ip_version": 4})
	return id
}

// pairsOf returns what the ports of a server allow beside their own addresses, each with whether it is for the MAC address of its port.
func pairsOf(serverID string) (pairs []string) {
	for _, port := range admin().list("network", "ports", "device_id="+serverID) {
		all, _ := port["allowed_address_pairs"].([]any)
		for _, one := range all {
			pair, _ := one.(map[string]any)
			pairs = append(pairs, fmt.Sprint(pair["ip_address"], " ", pair["mac_address"] == port["mac_address"]))
		}
	}
	slices.Sort(pairs)
	return pairs
}

// All ports of a server allow the addresses, in the forms that neutron stores.
func TestAllowedAddressPairs(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	c := newClient(t, p, &wire{}, func(config *openstack.Config) { config.AllowedAddresses = []string{"0.0.0.0/0", "::/0"} })
	first, second := networkOf(p.id, "10.7.0.0/24", nil), networkOf(p.id, "10.8.0.0/24", nil)
	created, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "router", Interfaces: []cloud.Attachment{{NetworkID: first}, {NetworkID: second}}})
	if err != nil {
		t.Fatal(err)
	}
	if end := finish(t, c, created); end.Err != nil {
		t.Fatal(end.Err)
	}
	id := created.Server.ID
	for _, tc := range []struct {
		addresses cloud.SetAllowedAddresses
		want      []string
	}{
		{"10.7.0.200", []string{"10.7.0.200 true", "10.7.0.200 true"}},
		{"0.0.0.0/0\n::/0\nfd00:7::9", []string{"0.0.0.0/0 true", "0.0.0.0/0 true", "::/0 true", "::/0 true", "fd00:7::9 true", "fd00:7::9 true"}},
		{"", nil},
	} {
		if _, err := c.UpdateServer(t.Context(), id, cloud.Update{tc.addresses}); err != nil {
			t.Errorf("%s: %v", tc.addresses, err)
		}
		if got := pairsOf(id); !slices.Equal(got, tc.want) {
			t.Errorf("%s: the ports allow %q, want %q", tc.addresses, got, tc.want)
		}
	}
	var own []string
	for _, port := range admin().list("network", "ports", "device_id="+id) {
		fixed, _ := port["fixed_ips"].([]any)
		address, _ := fixed[0].(map[string]any)
		own = append(own, fmt.Sprint(address["ip_address"]))
	}
	addresses, _ := cloud.NewAllowedAddresses(own)
	if _, err := c.UpdateServer(t.Context(), id, cloud.Update{cloud.SetAllowedAddresses(addresses)}); err != nil {
		t.Errorf("the own addresses of the server: %v", err)
	}
	if got := pairsOf(id); len(got) != 4 {
		t.Errorf("the own addresses of the server: the ports allow %q, want both on each", got)
	}
}

// What cannot be allowed is refused with one line, and a change that asks for none succeeds.
func TestBadAllowedAddresses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		network func(p project) string
		kind    cloud.Kind
		want    string
	}{
		"a network without port security": {
			func(p project) string {
				return networkOf(p.id, "10.7.0.0/24", map[string]any{"port_security_enabled": false})
			}, cloud.Rejected, "Port Security must be enabled in order to have allowed address pairs on a port",
		},
		"a network of another project": {
			func(project) string {
				return networkOf(newProject(t).id, "10.7.0.0/24", map[string]any{"shared": true})
			}, cloud.Forbidden, "update_port:allowed_address_pairs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			c := newClient(t, p, &wire{})
			id := mustCreate(t, c, tc.network(p))
			_, err := c.UpdateServer(t.Context(), id, cloud.Update{cloud.SetAllowedAddresses("10.7.0.200")})
			if !cloud.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("UpdateServer: %v, want one line of the kind %s: %s", err, tc.kind, tc.want)
			}
			t.Log(err)
			if pairs := pairsOf(id); pairs != nil {
				t.Errorf("the port allows %q", pairs)
			}
			if _, err := c.UpdateServer(t.Context(), id, cloud.Update{cloud.SetAllowedAddresses("")}); err != nil {
				t.Errorf("UpdateServer without addresses: %v", err)
			}
		})
	}
}
