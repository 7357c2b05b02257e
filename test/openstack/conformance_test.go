package openstack_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/cloudtest"
	"github.com/privatecloud/operator/internal/cloud/openstack"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// callTime only ends what hangs: a case makes several servers, each of which takes many seconds on a busy machine.
	callTime = 10 * time.Minute
	// pollTime is the time between two looks at a server. Each look takes the processor from what it waits for: nova asks
	// neutron for the ports and security groups of the server, which takes neutron about 0.2 s.
	pollTime = 2 * time.Second
)

const tagLabel = "samplecontroller.k8s.io/uid"

var capabilities = cloud.NewCapabilities(
	cloud.Async, cloud.Events, cloud.Labels, cloud.Networks, cloud.NoStatus, cloud.Operations, cloud.Power, cloud.Resize, cloud.Sessions, cloud.Sizing,
	cloud.WithUserData, cloud.Addresses, cloud.Zones, cloud.WithAntiAffinity, cloud.Snapshots, cloud.Revert, cloud.Suspend, cloud.WithInterfaces, cloud.StaticAddresses,
	cloud.Flavors, cloud.WithSecurityGroups, cloud.PublicAddresses, cloud.WithAllowedAddresses, cloud.NetworkDNS, cloud.Routers, cloud.DualStack, cloud.Console,
	cloud.WithDisks, cloud.WithRootDisk, cloud.DiskTypes, cloud.KeepDisks,
)

func TestConformance(t *testing.T) {
	t.Parallel()
	cloudtest.Run(t, newFixture)
}

// newFixture returns a client of a project of its own.
func newFixture(t *testing.T) cloudtest.Fixture {
	t.Helper()
	p, w := newProject(t), &wire{}
	return cloudtest.Fixture{
		Client: newClient(t, p, w), Has: capabilities, Prohibited: strings.Repeat("x", 256), Codes: true, Filters: true,
		PlainNames: true, // emoji are refused: TestNamesInAnyScriptAreKept has the others
		Sent:       w.count, LoseAnswer: w.loseOf, HalfMake: func(t *testing.T, name string) { halfMake(t, p, name) },
		Operating:       func(*testing.T, bool) {}, // always
		EndWatches:      func(*testing.T) { w.endWatches() },
		HasUserData:     hasUserData,
		NoRestore:       true, // a server keeps its flavor
		Zone:            "nova",
		External:        externalNetwork,
		Flavors:         [2]string{"t-1-2", "t-2-2"},
		RootDisk:        2 << 10,
		DiskTypes:       [2]string{"__DEFAULT__", otherType},
		KeptDisks:       func(t *testing.T, id string) []string { return keptDisksOf(t, p, id) },
		Reach:           func(t *testing.T) cloudtest.Reach { return reachOf(t, p) },
		PublicAddresses: func(t *testing.T) []string { return floatingOf(t, p) },
		CallTime:        callTime,
		PollTime:        pollTime,
	}
}

// keptDisksOf returns the names of the disks whose volumes are left of a server that is gone, in their order.
func keptDisksOf(t *testing.T, p project, serverID string) (names []string) {
	t.Helper()
	var got struct {
		Volumes []struct {
			Status   string
			Metadata map[string]string
		}
	}
	admin().as(tokenOf(t, p, person)).must(http.MethodGet, volumesOf(p)+"/detail", nil, &got)
	for _, v := range got.Volumes {
		if v.Status != "available" || v.Metadata["privatecloud:server"] != serverID {
			t.Errorf("a volume that is left: %+v", v)
		}
		names = append(names, v.Metadata["privatecloud:disk"])
	}
	slices.Sort(names)
	return names
}

// hasUserData reports whether a server got this user data, which nova shows to administrators.
func hasUserData(_ *testing.T, id string, data cloud.UserData) bool {
	var got struct {
		Server struct {
			UserData []byte `json:"OS-EXT-SRV-ATTR:user_data"`
		}
	}
	a := admin()
	a.must(http.MethodGet, a.services["compute"]+"/servers/"+id, nil, &got)
	return bytes.Equal(got.Server.UserData, data)
}

// newClient returns a client of a project, whose spec may be changed.
func newClient(t testing.TB, p project, w *wire, change ...func(*openstack.Config)) *openstack.Client {
	t.Helper()
	config := openstack.Config{
		Name: "openstack", Endpoint: os.Getenv("OPENSTACK_AUTH_URL"), Region: region, Project: p.name, Domain: domain,
		Credentials: openstack.Credentials{Username: user, Password: password}, Image: "small", Flavor: "t1", TagLabel: tagLabel,
		AllowedAddresses: []string{"10.7.0.192/26", "10.8.0.192/26", "fd00:7::/64"},
		Timeout:          callTime, // beside other tests, a change of a router or a floating address takes 15 s
		Limits:           transport.Limits{RequestsPerSecond: 1000, Burst: 1000, MaxInFlight: 16}, Base: w,
	}
	for _, apply := range change {
		apply(&config)
	}
	client, err := openstack.New(config)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { client.Close(ctx) })
	return client
}

// halfMake makes a network without a subnet.
func halfMake(t *testing.T, p project, name string) {
	t.Helper()
	a := admin()
	body := fmt.Sprintf(`{"network": {"name": %q, "project_id": %q}}`, name, p.id)
	status, _, text, err := a.request(http.MethodPost, a.services["network"]+"/networks", bytes.NewReader([]byte(body)), "application/json")
	if err != nil || status != http.StatusCreated {
		t.Fatalf("POST networks: %d, %v: %s", status, err, text)
	}
}
