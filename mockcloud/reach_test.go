package mockcloud

import (
	"fmt"
	"strings"
	"testing"
)

func TestReachOfAServer(t *testing.T) {
	h := start(t, Options{Behaviour: Behaviour{SecurityGroups: []string{"ssh", "web"}}})
	created := h.create("a")
	patch := func(body string) string { return codeIn(t, h.send("PATCH", "/servers/"+created.ID, body)) }
	patch(`{"allowedAddresses":["10.0.0.250","10.0.0.192/28"]}`)
	for body, code := range map[string]string{
		`{"allowedAddresses":["10.0.0.1/28"]}`: CodeInvalid, `{"allowedAddresses":["vip"]}`: CodeInvalid, `{"allowedAddresses":["fe80::1%eth0"]}`: CodeInvalid, `{"allowedAddresses":["::ffff:10.0.0.9"]}`: CodeInvalid, `{"allowedAddresses":["10.0.0.9","127.0.0.0/8"]}`: CodeAddressInvalid,
		`{"allowedAddresses":[` + strings.Repeat(`"10.0.0.9",`, maxAllowedAddresses) + `"10.0.0.9"]}`: CodeInvalid,
	} {
		if got := patch(body); got != code {
			t.Errorf("%s: got the code %q, want %q", body, got, code)
		}
	}
	if s, _ := h.cloud.Server(created.ID); fmt.Sprint(s.AllowedAddresses) != "[10.0.0.192/28 10.0.0.250]" {
		t.Errorf("the server may use %s", s.AllowedAddresses)
	}
	for _, tc := range []struct{ body, code, groups, address string }{
		{`{}`, "", "[default]", ""},
		{`{"securityGroups":["web","ssh","web"]}`, "", "[ssh web]", ""},
		{`{"securityGroups":["web","nowhere"]}`, CodeSecurityGroupUnknown, "[ssh web]", ""},
		{`{"securityGroups":[]}`, CodeInvalid, "[ssh web]", ""},
		{`{"publicAddress":{"network":"nowhere"}}`, CodeExternalNetworkUnknown, "[ssh web]", ""},
		{`{"publicAddress":{}}`, CodeInvalid, "[ssh web]", ""},
		{`{"publicAddress":{"network":"ext-net","address":"203.0.113.9"}}`, CodeInvalid, "[ssh web]", ""},
		{`{"publicAddress":{"network":"ext-net"}}`, "", "[ssh web]", "203.0.113.1"},
		{`{"publicAddress":{"network":"ext-net"}}`, "", "[ssh web]", "203.0.113.1"},
		{`{"publicAddress":null,"securityGroups":["ssh"]}`, "", "[ssh]", ""},
	} {
		t.Run(tc.body, func(t *testing.T) {
			if got := patch(tc.body); got != tc.code {
				t.Errorf("got the code %q, want %q", got, tc.code)
			}
			s, _ := h.cloud.Server(created.ID)
			address := ""
			if s.PublicAddress != nil {
				address = s.PublicAddress.Address
			}
			if got := fmt.Sprint(s.SecurityGroups); got != tc.groups || address != tc.address {
				t.Errorf("the server has the groups %s and the address %q, want %s and %q", got, address, tc.groups, tc.address)
			}
		})
	}
	if got := codeIn(t, h.send("POST", "/servers", `{"name":"b","securityGroups":["nowhere"]}`)); got != CodeSecurityGroupUnknown {
		t.Errorf("a create with a group that does not exist: got the code %q", got)
	}
}

// Each address is that of one server, and is free again once that is deleted.
func TestPublicAddressesAreUsedOnce(t *testing.T) {
	h := start(t, Options{})
	var first string
	for n := range publicAddresses {
		created := h.create(fmt.Sprint("s", n))
		if n == 0 {
			first = created.ID
		}
		h.call(200, "PATCH", "/servers/"+created.ID, `{"publicAddress":{"network":"ext-net"}}`)
	}
	last := h.create("last")
	h.call(403, "PATCH", "/servers/"+last.ID, `{"publicAddress":{"network":"ext-net"}}`)
	h.call(204, "DELETE", "/servers/"+first, "")
	h.call(200, "PATCH", "/servers/"+last.ID, `{"publicAddress":{"network":"ext-net"}}`)
	if s, _ := h.cloud.Server(last.ID); s.PublicAddress == nil || s.PublicAddress.Address != "203.0.113.1" {
		t.Errorf("the last server has the address %+v, want the one that is free again", s.PublicAddress)
	}
}
