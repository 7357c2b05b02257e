package openstack

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestFaultsAsUsersReadThem(t *testing.T) {
	for message, want := range map[string]string{
		"": "",
		"No valid host was found. There are not enough hosts available.":                                                             "No valid host was found. There are not enough hosts available.",
		"Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance " + someID + ".": "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance ….",
		"Build of instance " + someID + " aborted: Failed to allocate the network(s), not rescheduling.":                             "Build of instance … aborted: Failed to allocate the network(s), not rescheduling.",
		"Compute host compute-17 could not be found.":                                                                                "Compute host … could not be found.",
		"Host 'atlas' is not mapped to any cell":                                                                                     "Host '…' is not mapped to any cell",
		"No compute node for host atlas, in cell two.":                                                                               "No compute node for host …, in cell ….",
		"Unable to establish connection to http://10.0.0.5:9696/v2.0/ports: refused":                                                 "Unable to establish connection to … refused",
		"Timed out waiting for a reply from 10.20.30.40:5672 and [fd00::1:2:3] to message " + projectID:                              "Timed out waiting for a reply from … and … to message …",
		"qemu-img: /var/lib/nova/instances/" + someID + "/disk: No space left on device":                                             "qemu-img: …: No space left on device",
		"monitor: 2026-11-25T01:02:03.123456Z instance-0000001a on node3.rack.example failed (req-" + someID + ")":                   "monitor: … … on … failed",
		"Flavor's disk is too small for requested image. Flavor disk is 1073741824 bytes, image is 2147483648 bytes.":                "Flavor's disk is too small for requested image. Flavor disk is 1073741824 bytes, image is 2147483648 bytes.",
		"the password is " + passphrase:                                                                                              "the password is REDACTED",
	} {
		text, _ := json.Marshal(message)
		s := newStub(t)
		s.on("GET"+aboutSome, oneServer(`"status": "ERROR"`, `"fault": {"code": 500, "message": `+string(text)+`, "details": "Traceback"}`))
		got, err := s.client().GetServer(t.Context(), someID)
		if err != nil || got.State != cloud.StateError || got.Fault != want {
			t.Errorf("%q, %v, want %q", got.Fault, err, want)
		}
	}
}

func TestFaultsAreBoundedAndOfServersInErrorAlone(t *testing.T) {
	s := newStub(t)
	fault := `"fault": {"message": "` + strings.Repeat("long ", 1000) + `"}`
	s.on("GET compute/servers/detail", `{"servers": [`+serverJSON(`"status": "ERROR"`, fault)+`, `+serverJSON(fault)+`]}`)
	page, err := s.client().ListServers(t.Context(), cloud.ListServers{})
	if err != nil || len(page.Servers) != 2 {
		t.Fatalf("ListServers: %+v, %v, want two servers", page, err)
	}
	if got := utf8.RuneCountInString(page.Servers[0].Fault); got != maxFault {
		t.Errorf("a fault of %d characters, want %d", got, maxFault)
	}
	if got := page.Servers[1].Fault; got != "" {
		t.Errorf("fault %q of a server that is not in error, want none", got)
	}
}
