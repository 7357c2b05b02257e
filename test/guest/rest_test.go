package guest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/clouds/restdialer"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/internal/testkit/sshlogin"
	"github.com/privatecloud/operator/mockcloud"
)

// cloudConfig is user data with a key of its own.
const cloudConfig = `#cloud-config
ssh_authorized_keys: [%q]
runcmd:
- id -un >/run/user-data-ran
`

// restServer is what a cloud reads of a create.
type restServer struct {
	Name string `json:"name"`
	CPU  int    `json:"cpu"`
	// Memory is in GiB.
	Memory     int                    `json:"memory"`
	UserData   []byte                 `json:"userData"`
	Disks      []mockcloud.Disk       `json:"disks"`
	Interfaces []mockcloud.Attachment `json:"interfaces"`
}

// noCloud returns the disk for the data source NoCloud that a cloud makes for a server.
func (r restServer) noCloud(id string) drive {
	return drive{"cidata", map[string]string{
		"user-data": string(r.UserData),
		"meta-data": fmt.Sprintf("instance-id: %s\nlocal-hostname: %s\n", id, r.Name),
		"network-config": fmt.Sprintf(`version: 2
ethernets:
  eth0:
    match: {macaddress: "%s"}
    addresses: ["%s/%d"]
    routes: [{to: default, via: %s}]
`, mac, r.Interfaces[0].Addresses[0], lan.prefix.Bits(), lan.gateway),
	}}
}

// The user data has a key, and the VM another: both can log in.
func TestGuestOfREST(t *testing.T) {
	needGuests(t)
	t.Parallel()
	var created restServer
	mock, err := testkit.ServeCloud(mockcloud.Options{}, func(s *httptest.Server) {
		next := s.Config.Handler
		s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && r.URL.Path == "/servers" {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if err := json.Unmarshal(body, &created); err != nil {
					t.Errorf("the body of a create: %v", err)
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mock.Close() })
	network, err := mock.PutNetwork(mockcloud.Network{Name: "lan", CIDR: lan.prefix.String(), Gateway: lan.gateway})
	if err != nil {
		t.Fatal(err)
	}
	client := dial(t, restdialer.Dialer{}, testkit.Cloud("rest", mock.URL), map[string]string{"token": "t"})
	private, public := sshlogin.NewKey(t)
	another, anothers := sshlogin.NewKey(t)
	server := create(t, client, vm("app-1", public, func(vm *pcapi.VM) {
		vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "1Gi"}, {Name: "log", Size: "2Gi"}}
	}), fmt.Sprintf(cloudConfig, anothers), cloud.Attachment{NetworkID: network.ID, Addresses: []string{lan.fixed}})
	if len(created.Interfaces) != 1 || len(created.Interfaces[0].Addresses) != 1 {
		t.Fatalf("the interfaces of a create: %+v, want one with an address", created.Interfaces)
	}
	m := machine{cpu: created.CPU, memoryMiB: created.Memory << 10, address: created.Interfaces[0].Addresses[0], drives: []drive{created.noCloud(server.ID)}}
	for _, disk := range created.Disks {
		m.disksMiB = append(m.disksMiB, disk.Size<<10)
	}
	g := boot(t, m)
	g.logIn(another)
	s := g.logIn(private)
	s.check(m, expected{source: "DataSourceNoCloud ", instance: server.ID, hostname: "app-1", gateway: lan.gateway})
	s.shutDown()
}
