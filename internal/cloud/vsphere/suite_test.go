package vsphere_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/cloudtest"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

var all = cloud.NewCapabilities(
	cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.FolderNames, cloud.BulkStatus, cloud.Power, cloud.PowerAtCreate,
	cloud.Resize, cloud.Folders, cloud.Hosts, cloud.Sessions, cloud.Sizing, cloud.Operations, cloud.NetworkAttach,
	cloud.Events, cloud.WithUserData, cloud.Addresses, cloud.Snapshots, cloud.Revert, cloud.SoftPowerOff, cloud.WithDisks, cloud.GuestHeartbeat, cloud.Zones, cloud.WithAntiAffinity, cloud.Suspend, cloud.WithInterfaces,
)

func TestClientPassesTheSuite(t *testing.T) {
	cloudtest.Run(t, func(t *testing.T) cloudtest.Fixture {
		t.Helper()
		v := newZones(t)
		v.UsePlainCollectors()
		methods := map[cloudtest.Op][]string{
			cloudtest.OpCreateServer: {"CloneVM_Task"}, cloudtest.OpDeleteServer: {"Destroy_Task"},
			cloudtest.OpCreateSnapshot: {"CreateSnapshotEx_Task"},
			cloudtest.OpRevert:         {"RevertToSnapshot_Task"},
			cloudtest.OpUpdateServer:   {"ReconfigVM_Task", "PowerOffVM_Task", "PowerOnVM_Task", "SuspendVM_Task"},
		}
		return cloudtest.Fixture{
			Client: v.client(t, zoned(vsphere.Zone{Name: "a", ResourcePool: root}, vsphere.Zone{Name: "b", ResourcePool: poolB})), Zone: "b", Has: all, Prohibited: strings.Repeat("x", 81), Codes: true, Filters: true, NoRestore: true,
			Names: []string{
				"plain", "..", ".", "a?b=c", "a#b", "a b", "a+b", "a&b;c=d", "a:b@c", "сервер", "服务器", "خادم", "máquina", "🖥", `quo"te`, "{id}",
			},
			Networks: portGroups(v.Server),
			Sent:     func() int { return v.Front.Sent("") },
			Hosts:    hosts(),
			HasUserData: func(t *testing.T, id string, data cloud.UserData) bool {
				t.Helper()
				server, err := v.client(t).GetServer(t.Context(), id)
				if err != nil {
					t.Fatalf("GetServer(%s): %v", id, err)
				}
				return string(data) == guestInfo(t, v, server.Name)["guestinfo.userdata"]
			},
			BootGuest: func(t *testing.T, server cloud.Server) {
				t.Helper()
				v.setGuestAddress(t, server.Name, "10.0.0.5")
				v.setHeartbeat(t, server.Name, types.ManagedEntityStatusGreen)
			},
			Operating: func(*testing.T, bool) {}, // every change is a task
			FailOperations: func(*testing.T) func() {
				return v.Front.FailClones()
			},
			EndWatches: func(t *testing.T) {
				t.Helper()
				if err := v.EndSessions(t.Context()); err != nil {
					t.Errorf("end the sessions: %v", err)
				}
			},
			LoseAnswer: func(_ *testing.T, op cloudtest.Op) func() { return v.Front.Lose(methods[op]...) },
		}
	})
}

// portGroups are those of the simulator.
func portGroups(v *vcsim.Server) []cloud.Network {
	var all []cloud.Network
	for name, id := range v.PortGroups() {
		all = append(all, cloud.Network{ID: id, Name: name})
	}
	return all
}

// hosts are those of the simulator.
func hosts() []cloud.Host {
	var all []cloud.Host
	for _, name := range []string{"DC0_C0_H0", "DC0_C0_H1", "DC0_C0_H2"} {
		all = append(all, cloud.Host{Name: name, AvailableHours: 87600})
	}
	return all
}

func TestExampleInTheBundleHasTheCapabilities(t *testing.T) {
	example, err := os.ReadFile("../../../config/manifests/examples/cloud_vsphere.yaml")
	if err != nil {
		t.Fatal(err)
	}
	without := slices.DeleteFunc(slices.Clone(all), func(c cloud.Capability) bool { return c == cloud.Zones || c == cloud.WithAntiAffinity })
	if want := "capabilities: " + strings.ReplaceAll(fmt.Sprint(without), " ", ", "); !strings.Contains(string(example), want) {
		t.Errorf("the example lacks %q", want)
	}
}
