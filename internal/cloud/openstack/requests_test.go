package openstack

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/cloudtest"
	"github.com/privatecloud/operator/internal/testkit/golden"
)

// goldenID is the id of an image that is not the default.
const goldenID = "0c6a4a1e-3a53-4c3a-9f0b-6d2f0a1b7e55"

// TestRequestsAreAsRecorded compares the requests of creates and changes with those that are recorded.
func TestRequestsAreAsRecorded(t *testing.T) {
	var text strings.Builder
	note := func(s *stub, result cloud.Result, err error) {
		for _, request := range s.taken() {
			fmt.Fprintln(&text, request)
		}
		if result.Operation != "" {
			fmt.Fprintf(&text, "operation %s\n", result.Operation)
		}
		if err != nil {
			fmt.Fprintf(&text, "error: %s: %v\n", cloud.KindOf(err), err)
		}
	}
	creates := cloudtest.Creates([]string{someID, otherID}, "z1", "golden")
	sent := map[string]string{}
	for _, name := range cloudtest.Sorted(creates) {
		fmt.Fprintf(&text, "\n=== create: %s\n", name)
		begin := text.Len()
		s := recorded(t)
		groupsAre(s)
		s.on("GET image/images", `{"images": [{"id": "`+otherID+`", "name": "debian", "visibility": "public"}, {"id": "`+goldenID+`", "name": "golden", "visibility": "public"}]}`)
		s.on("POST compute/os-server-groups", `{"server_group": `+group(otherID, "c/ns/web", "anti-affinity")+`}`)
		s.on("GET network/subnets", `{"subnets": [`+itsSubnet+`]}`)
		s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, http.StatusAccepted)
		result, err := s.client().CreateServer(t.Context(), creates[name])
		note(s, result, err)
		sent[name] = text.String()[begin:]
	}
	for name := range creates {
		// A server is created running.
		if !slices.Contains([]string{"minimal", "on"}, name) && sent[name] == sent["minimal"] {
			t.Errorf("a create with %s is sent as one without: send the field, or refuse it", name)
		}
	}
	changes := cloudtest.Changes()
	for _, state := range []string{"ACTIVE", "SHUTOFF", "SUSPENDED"} {
		for _, name := range cloudtest.Sorted(changes) {
			fmt.Fprintf(&text, "\n=== change while %s: %s\n", state, name)
			s := recorded(t)
			s.on("GET"+aboutSome, oneServer(`"status": "`+state+`"`, `"metadata": {"env": "dev", "team": "a", "owner:2fuid": "u1"}`, `"tags": []`))
			s.on("POST"+aboutSome+"/metadata", `{"metadata": {}}`)
			s.on("DELETE"+aboutSome+"/metadata/team", "", http.StatusNoContent)
			s.on("POST"+aboutSome+"/action", "", http.StatusAccepted)
			result, err := s.client(func(c *Config) { c.AllowedAddresses = []string{"10.0.0.0/24"} }).UpdateServer(t.Context(), someID, changes[name])
			note(s, result, err)
		}
	}
	golden.Compare(t, "requests", text.String())
}

// recorded returns a stub with a flavor for each size that is asked for.
func recorded(t *testing.T) *stub {
	t.Helper()
	s := newCinder(t).stub
	onReach(s)
	s.on("GET compute/flavors/detail", `{"flavors": [
		{"id": "f1", "name": "small", "vcpus": 1, "ram": 1024}, {"id": "f2", "name": "large", "vcpus": 4, "ram": 8192},
		{"id": "f3", "name": "wide", "vcpus": 4, "ram": 1024}, {"id": "f4", "name": "deep", "vcpus": 1, "ram": 8192},
		{"id": "f5", "name": "two", "vcpus": 2, "ram": 4096}]}`)
	return s
}
