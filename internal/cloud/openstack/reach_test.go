package openstack

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	portID     = "3f0c1f0e-56b6-4d3c-8a5e-5b0a8e1c7d11"
	addressID  = "77aa9b6e-1d3f-4c68-9a4c-2f8b0f6a9c21"
	sshID      = "a1000000-0000-4000-8000-000000000001"
	webID      = "b2000000-0000-4000-8000-000000000002"
	aboutPort  = " network/ports/" + portID
	itsAddress = `{"id": "` + addressID + `", "floating_ip_address": "203.0.113.7", "floating_network_id": "` + externalID + `", "port_id": "` + portID + `",
		"description": "private-cloud-operator server ` + someID + `", "project_id": "` + projectID + `"}`
)

// neutronError is a refusal of the network service.
func neutronError(code, message string) string {
	return fmt.Sprintf(`{"NeutronError": {"type": %q, "message": %q, "detail": ""}}`, code, message)
}

// onReach lets the stub have two groups, an external network, and a port of the server without a floating address.
func onReach(s *stub) {
	s.handle("GET network/security-groups", func(w http.ResponseWriter, r *http.Request) {
		var found []string
		for _, group := range []struct{ name, id string }{{"ssh", sshID}, {"web", webID}, {"twice", sshID}, {"twice", webID}} {
			if name := r.URL.Query().Get("name"); name == group.name || name == "" {
				found = append(found, fmt.Sprintf(`{"id": %q, "name": %q}`, group.id, group.name))
			}
		}
		_, _ = fmt.Fprintf(w, `{"security_groups": [%s]}`, strings.Join(found, ","))
	})
	s.handle("GET network/networks", func(w http.ResponseWriter, r *http.Request) {
		network := `{"id": "` + externalID + `", "name": "ext-net"}`
		if name := r.URL.Query().Get("name"); name != "ext-net" && name != "" {
			network = ""
		}
		_, _ = fmt.Fprintf(w, `{"networks": [%s]}`, network)
	})
	s.on("GET network/ports", `{"ports": [{"id": "`+portID+`", "network_id": "`+otherID+`", "security_groups": ["`+sshID+`"],
		"fixed_ips": [{"ip_address": "fd00::5"}, {"ip_address": "10.0.0.5"}]}]}`)
	s.on("PUT"+aboutPort, `{"port": {}}`)
	s.on("GET"+aboutPort, `{"port": {"id": "`+portID+`", "device_id": "`+someID+`"}}`)
	s.on("GET network/ports/"+sshID, `{"port": {"id": "`+sshID+`", "device_id": "`+otherID+`"}}`)
	s.on("GET network/ports/"+webID, neutronError("PortNotFound", "Port x could not be found."), 404)
	s.on("GET network/floatingips", `{"floatingips": []}`)
	s.on("POST network/floatingips", `{"floatingip": `+itsAddress+`}`, 201)
	s.on("GET network/floatingips/"+addressID, `{"floatingip": `+itsAddress+`}`)
	s.on("DELETE network/floatingips/"+addressID, "", http.StatusNoContent)
	s.on("GET"+aboutSome, oneServer())
	s.on("POST"+aboutSome+"/metadata", `{"metadata": {}}`)
}

const (
	pending       = "POST" + aboutSome + `/metadata {"metadata":{"privatecloud:public-address":"pending"}}`
	annotation    = "POST" + aboutSome + `/metadata {"metadata":{"privatecloud:public-address":"203.0.113.7"}}`
	createAddress = `POST network/floatingips {"floatingip":{"description":"private-cloud-operator server ` + someID + `","fixed_ip_address":"10.0.0.5","floating_network_id":"` + externalID + `","port_id":"` + portID + `"}}`
)

func TestChangesOfReach(t *testing.T) {
	assign := cloud.SetPublicAddress("ext-net")
	refused := func(kind cloud.Kind, text string) string { return string(kind) + ": " + text }
	tests := map[string]struct {
		change  cloud.ServerChange
		prepare func(*stub)
		sent    []string
		want    string
	}{
		"the groups differ: they are set on the port": {
			change: cloud.SetSecurityGroups("ssh\nweb"), sent: []string{`PUT` + aboutPort + ` {"port":{"security_groups":["` + sshID + `","` + webID + `"]}}`},
		},
		"the groups are the same: nothing is sent": {change: cloud.SetSecurityGroups("ssh")},
		"a group does not exist: refused, and nothing is sent": {
			change: cloud.SetSecurityGroups("nowhere\nssh"), want: refused(cloud.Rejected, `no security group that can be used is named "nowhere"; there are: ssh, twice, web`),
		},
		"two groups have the name: refused": {
			change: cloud.SetSecurityGroups("twice"), want: refused(cloud.Rejected, `2 security groups are named "twice": rename all but one`),
		},
		"the id of a group, which no listing shows: refused": {
			change: cloud.SetSecurityGroups(sshID), want: refused(cloud.Rejected, `"`+sshID+`" is the id of a security group: give its name`),
		},
		"the port is gone: busy": {
			change: cloud.SetSecurityGroups("web"), prepare: func(s *stub) {
				s.on("PUT"+aboutPort, neutronError("PortNotFound", "Port x could not be found."), 404)
			},
			sent: []string{`PUT` + aboutPort + ` {"port":{"security_groups":["` + webID + `"]}}`}, want: refused(cloud.Busy, "Port x could not be found."),
		},
		"the server has no port: refused": {
			change: cloud.SetSecurityGroups("web"), prepare: func(s *stub) { s.on("GET network/ports", `{"ports": []}`) },
			want: refused(cloud.Rejected, "the server has no network interface"),
		},
		"no address: one is made for the IPv4 address of the port": {change: assign, sent: []string{pending, createAddress, annotation}},
		"no right to see addresses: the one that was made is deleted": {
			change: assign, prepare: func(s *stub) {
				s.on("GET network/floatingips/"+addressID, neutronError("FloatingIPNotFound", "Floating IP x could not be found"), 404)
			},
			sent: []string{pending, createAddress, "DELETE network/floatingips/" + addressID},
			want: refused(cloud.Forbidden, `the address 203.0.113.7 was created, but the service does not show it to this account, or not yet: grant it the right get_floatingip`),
		},
		"an address that was made: it is recorded": {
			change: assign, prepare: func(s *stub) { s.on("GET network/floatingips", `{"floatingips": [`+itsAddress+`]}`) }, sent: []string{annotation},
		},
		"an address that was recorded: nothing is sent": {
			change: assign, prepare: func(s *stub) {
				s.on("GET network/floatingips", `{"floatingips": [`+itsAddress+`]}`)
				s.on("GET"+aboutSome, oneServer(`"metadata": {"privatecloud:public-address": "203.0.113.7"}`))
			},
		},
		"an address that leads nowhere any more: it is used again": {
			change: assign, prepare: func(s *stub) {
				s.on("GET network/floatingips", `{"floatingips": [`+strings.ReplaceAll(itsAddress, `"`+portID+`"`, "null")+`]}`)
				s.on("PUT network/floatingips/"+addressID, `{"floatingip": `+itsAddress+`}`)
			},
			sent: []string{pending, `PUT network/floatingips/` + addressID + ` {"floatingip":{"fixed_ip_address":"10.0.0.5","port_id":"` + portID + `"}}`, annotation},
		},
		"an address that somebody gave to another server: another one is made": {
			change: assign, prepare: func(s *stub) {
				s.on("GET network/floatingips", `{"floatingips": [`+strings.ReplaceAll(itsAddress, portID, sshID)+`]}`)
			},
			sent: []string{pending, createAddress, annotation},
		},
		"somebody else gave the port an address: refused": {
			change: assign, prepare: func(s *stub) {
				s.on("POST network/floatingips", neutronError(alreadyAssociated, "Cannot associate floating IP"), 409)
			},
			sent: []string{pending, createAddress}, want: refused(cloud.Rejected, `the server has an address of "ext-net" that somebody else gave it: remove that one in the cloud, or, if the operator created it, grant the account the right get_floatingip`),
		},
		"no address is free: the quota is used up": {
			change: assign, prepare: func(s *stub) {
				s.on("POST network/floatingips", neutronError("IpAddressGenerationFailure", "No more IP addresses available on network x."), 409)
			},
			sent: []string{pending, createAddress}, want: refused(cloud.Quota, `an address of "ext-net": none is free`),
		},
		"no router: refused": {
			change: assign, prepare: func(s *stub) {
				s.on("POST network/floatingips", neutronError("ExternalGatewayForFloatingIPNotFound", "External network x is not reachable"), 404)
			},
			sent: []string{pending, createAddress}, want: refused(cloud.Rejected, `no router connects the network of the server with "ext-net"`),
		},
		"no such external network: refused": {
			change: cloud.SetPublicAddress("nowhere"), want: refused(cloud.Rejected, `no external network that can be used is named "nowhere"; there are: ext-net`),
		},
		"only IPv6: refused": {
			change: assign, prepare: func(s *stub) {
				s.on("GET network/ports", `{"ports": [{"id": "`+portID+`", "fixed_ips": [{"ip_address": "fd00::5"}]}]}`)
			},
			want: refused(cloud.Rejected, "no network interface of the server has an IPv4 address"),
		},
		"the answer to the create is lost: uncertain": {
			change: assign, prepare: func(s *stub) { s.handle("POST network/floatingips", cut) }, sent: []string{pending, createAddress}, want: "Unavailable",
		},
		"no address is to be left: it is deleted": {
			change: cloud.RemovePublicAddress{}, prepare: func(s *stub) {
				s.on("GET network/floatingips", `{"floatingips": [`+itsAddress+`]}`)
				s.on("GET"+aboutSome, oneServer(`"metadata": {"privatecloud:public-address": "203.0.113.7"}`))
			},
			sent: []string{"DELETE network/floatingips/" + addressID, "POST" + aboutSome + `/metadata {"metadata":{"privatecloud:public-address":""}}`},
		},
		"no address is to be left, and there is none: nothing is sent": {change: cloud.RemovePublicAddress{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			onReach(s)
			if tc.prepare != nil {
				tc.prepare(s)
			}
			got, err := s.client().UpdateServer(t.Context(), someID, cloud.Update{tc.change})
			text := ""
			if err != nil {
				text = string(cloud.KindOf(err)) + strings.TrimPrefix(err.Error(), `update server "`+someID+`"`)
			}
			if !strings.HasPrefix(text, tc.want) || tc.want == "" && err != nil {
				t.Errorf("%s, want %q", text, tc.want)
			}
			if _, gives := tc.change.(cloud.SetPublicAddress); gives && err == nil && got.Server.PublicAddress != "203.0.113.7" {
				t.Errorf("the server has the public address %q", got.Server.PublicAddress)
			}
			if diff := cmp.Diff(tc.sent, changesOf(s.taken())); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPublicAddressesAreDeleted(t *testing.T) {
	deletion := []string{"DELETE network/floatingips/" + addressID}
	tests := map[string]struct {
		listed, removed string
		status          int
		sent            []string
		want            cloud.Kind
	}{
		"of a server that is gone":          {listed: strings.ReplaceAll(itsAddress, `"`+portID+`"`, "null"), sent: deletion},
		"of a server that is going":         {listed: itsAddress, sent: deletion},
		"of a port that is gone":            {listed: strings.ReplaceAll(itsAddress, portID, webID), sent: deletion},
		"given to another server: it stays": {listed: strings.ReplaceAll(itsAddress, portID, sshID)},
		"the filter is ignored: it stays":   {listed: strings.ReplaceAll(itsAddress, "operator server", "operator")},
		"of another project: it stays":      {listed: strings.ReplaceAll(itsAddress, projectID, "other")},
		"none":                              {},
		"somebody else was faster":          {listed: itsAddress, removed: neutronError("FloatingIPNotFound", "Floating IP x could not be found"), status: 404, sent: deletion},
		"the right is missing":              {listed: itsAddress, removed: neutronError("PolicyNotAuthorized", "disallowed by policy"), status: 403, sent: deletion, want: cloud.Forbidden},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			onReach(s)
			s.on("GET network/floatingips", `{"floatingips": [`+tc.listed+`]}`)
			if tc.status != 0 {
				s.on("DELETE network/floatingips/"+addressID, tc.removed, tc.status)
			}
			if err := s.client().DeletePublicAddresses(t.Context(), someID); cloud.KindOf(err) != tc.want {
				t.Errorf("DeletePublicAddresses: %v, want %q", err, tc.want)
			}
			if diff := cmp.Diff(tc.sent, changesOf(s.taken())); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

// A network service without routers has no floating addresses, and an account that may not list them has made none: neither
// keeps a server from being deleted. A public address that is to be removed from a server that stays is not taken for removed.
func TestPublicAddressesThatCannotBeListed(t *testing.T) {
	for name, tc := range map[string]struct {
		body             string
		status           int
		deletion, change cloud.Kind
	}{
		"no such path":   {neutronError("HTTPNotFound", "The resource could not be found."), 404, "", ""},
		"404 of a proxy": {"<html>", 404, cloud.NotFoundUnproven, cloud.Busy},
		"no right":       {neutronError("PolicyNotAuthorized", "disallowed by policy"), 403, "", cloud.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			onReach(s)
			s.on("GET"+aboutSome, oneServer(`"metadata": {"privatecloud:public-address": "203.0.113.7"}`))
			s.on("GET network/floatingips", tc.body, tc.status)
			if err := s.client().DeletePublicAddresses(t.Context(), someID); cloud.KindOf(err) != tc.deletion {
				t.Errorf("DeletePublicAddresses: %v, want the kind %q", err, tc.deletion)
			}
			_, err := s.client().UpdateServer(t.Context(), someID, cloud.Update{cloud.RemovePublicAddress{}})
			if cloud.KindOf(err) != tc.change {
				t.Errorf("a change without the address: %v, want the kind %q", err, tc.change)
			}
			if _, err := s.client().UpdateServer(t.Context(), someID, cloud.Update{cloud.SetPublicAddress("ext-net")}); err == nil {
				t.Error("an address was given, want it refused")
			}
		})
	}
}

// Compute shows the groups of all ports together: a change of several ports that ends between two of them is made again.
func TestGroupsOfSeveralPorts(t *testing.T) {
	s := newStub(t)
	onReach(s)
	s.on("GET network/ports", `{"ports": [{"id": "`+portID+`", "security_groups": []}, {"id": "`+sshID+`", "security_groups": []}]}`)
	s.on("PUT network/ports/"+sshID, "", 503)
	_, err := s.client().UpdateServer(t.Context(), someID, cloud.Update{cloud.SetSecurityGroups("ssh")})
	if err == nil {
		t.Error("UpdateServer succeeded, want it to fail with the second port")
	}
	s.on("GET"+aboutSome, oneServer(`"metadata": {"privatecloud:security-groups": "changing"}`, `"security_groups": [{"name": "ssh"}]`))
	if got, err := s.client().GetServer(t.Context(), someID); err != nil || got.SecurityGroups != "" {
		t.Errorf("GetServer: groups %q, %v, want none", got.SecurityGroups, err)
	}
	s.on("PUT network/ports/"+sshID, `{"port": {}}`)
	s.taken()
	if _, err = s.client().UpdateServer(t.Context(), someID, cloud.Update{cloud.SetSecurityGroups("ssh")}); err != nil {
		t.Errorf("UpdateServer: %v", err)
	}
	sent := changesOf(s.taken())
	if want := "POST" + aboutSome + `/metadata {"metadata":{"privatecloud:security-groups":""}}`; len(sent) == 0 || sent[len(sent)-1] != want {
		t.Errorf("sent %q, want %s at the end", sent, want)
	}
}

// The address counts as that of the operator only if compute shows it as a floating one.
func TestPublicAddressOfAServer(t *testing.T) {
	const recorded = `"metadata": {"privatecloud:public-address": "203.0.113.7"}`
	addresses := func(kind string) string {
		return `"addresses": {"n": [{"addr": "10.0.0.5", "OS-EXT-IPS:type": "fixed"}, {"addr": "203.0.113.7", "OS-EXT-IPS:type": "` + kind + `"}]}`
	}
	for name, tc := range map[string]struct {
		fields []string
		want   string
	}{
		"recorded and shown":      {[]string{recorded, addresses("floating")}, "203.0.113.7"},
		"recorded, and not shown": {[]string{recorded}, cloud.AddressPending},
		"of a port":               {[]string{recorded, addresses("fixed")}, cloud.AddressPending},
		"removed":                 {[]string{`"metadata": {"privatecloud:public-address": ""}`, addresses("floating")}, ""},
		"somebody else's":         {[]string{addresses("floating")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.on("GET"+aboutSome, oneServer(append(tc.fields, `"security_groups": [{"name": "web"}, {"name": "default"}, {"name": "web"}]`)...))
			got, err := s.client().GetServer(t.Context(), someID)
			if err != nil || got.PublicAddress != tc.want || got.SecurityGroups != "default\nweb" || len(got.Labels) > 0 {
				t.Errorf("%v: address %q, groups %q, labels %v", err, got.PublicAddress, got.SecurityGroups, got.Labels)
			}
		})
	}
}
