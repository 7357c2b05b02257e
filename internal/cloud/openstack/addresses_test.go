package openstack

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestServerShowsItsAddresses(t *testing.T) {
	for name, test := range map[string]struct {
		json string
		want cloud.Interfaces
	}{
		"missing":        {`"x": 1`, ""},
		"null":           {`"addresses": null`, ""},
		"another type":   {`"addresses": ["10.0.0.5"]`, ""},
		"another type 2": {`"addresses": {"net": "10.0.0.5"}`, ""},
		"networks in the order of their names, floating addresses first": {
			`"addresses": {
				"storage": [{"addr": "10.1.0.5", "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:02", "OS-EXT-IPS:type": "fixed", "version": 4}],
				"internal": [
					{"addr": "fd00::5", "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:03", "OS-EXT-IPS:type": "fixed", "version": 6},
					{"addr": "10.0.0.5", "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01", "OS-EXT-IPS:type": "fixed", "version": 4},
					{"addr": "203.0.113.9", "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01", "OS-EXT-IPS:type": "floating", "version": 4}]}`,
			"fa:16:3e:00:00:01,203.0.113.9,10.0.0.5 fa:16:3e:00:00:03,fd00::5 fa:16:3e:00:00:02,10.1.0.5",
		},
		"IPv4 addresses before those of IPv6": {
			`"addresses": {"net": [
					{"addr": "2001:db8::5", "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01", "OS-EXT-IPS:type": "fixed", "version": 6},
					{"addr": "203.0.113.20", "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01", "OS-EXT-IPS:type": "fixed", "version": 4}]}`,
			"fa:16:3e:00:00:01,203.0.113.20,2001:db8::5",
		},
	} {
		s := newStub(t)
		s.on("GET compute/servers/"+someID, oneServer(test.json))
		got, err := s.client().GetServer(t.Context(), someID)
		if diff := cmp.Diff(test.want, got.Interfaces); diff != "" || err != nil {
			t.Errorf("%s: %v, interfaces (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestServerIsFoundByAUUIDInAnotherSpelling(t *testing.T) {
	s := newStub(t)
	s.on("GET compute/servers/"+someID, oneServer(`"addresses": {}`))
	for _, id := range []string{strings.ToUpper(someID), "{" + someID + "}", strings.ReplaceAll(someID, "-", "")} {
		if got, err := s.client().GetServer(t.Context(), id); err != nil || got.ID != someID {
			t.Errorf("GetServer(%s): %q, %v, want %s", id, got.ID, err, someID)
		}
	}
}
