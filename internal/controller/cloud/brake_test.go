package cloud

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

// fleet returns the VMs v00 to v07 and their servers.
func fleet() (vms []client.Object, servers []cloud.Server) {
	for i := range 8 {
		name := fmt.Sprintf("v%02d", i)
		vms, servers = append(vms, vm(name)), append(servers, server(name, ownedBy(name, "here")))
	}
	return vms, servers
}

func TestBrakeHoldsUntilAcknowledged(t *testing.T) {
	vms, servers := fleet()
	f := newCloud(nil, servers...)
	w := newWorld(t, home(), f, vms...)
	w.reconcile()
	f.RemoveServers("v00")
	w.later()
	w.wantCondition(pcapi.BrakedCondition, "False Released")

	f.Clear()
	w.later()
	snapshot := w.stored().Status.BrakedSnapshot
	w.wantCondition(pcapi.BrakedCondition, "True ServersVanished", "lacks 7 servers", "v01 among them", "kubectl annotate cloud home --overwrite samplecontroller.k8s.io/acknowledge="+snapshot)
	w.wantCondition(pcapi.ReadyCondition, "False ServersVanished")
	w.wantCondition(pcapi.StalledCondition, "True ServersVanished")
	equal(t, "braked for VMs", true, w.inv.View().Braked)
	for _, s := range servers {
		f.AddServers(s)
	}
	w.later()
	equal(t, "still braked when the servers are back", true, w.inv.View().Braked)
	equal(t, "snapshot on record", snapshot, w.stored().Status.BrakedSnapshot)
	w.edit(acknowledging("another snapshot"))
	w.later()
	equal(t, "still braked when another snapshot is acknowledged", true, w.inv.View().Braked)

	w.enqueued = nil
	w.edit(acknowledging(snapshot))
	w.reconcile()
	equal(t, "braked once it is acknowledged", false, w.inv.View().Braked)
	equal(t, "enqueued", true, slices.ContainsFunc(w.enqueued, func(e inventory.Event) bool { return e.All }))
	w.wantCondition(pcapi.BrakedCondition, "False Released")
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
	equal(t, "snapshot on record", "", w.stored().Status.BrakedSnapshot)
	equal(t, "events", []string{"Normal Connected Ready", "Warning ServersVanished Braked", "Normal Released Braked"}, w.events)

	w.later()
	equal(t, "an old acknowledgement sets no brake", false, w.inv.View().Braked)
}

// braked is a world whose brake is on after all servers but one vanished.
func braked(t *testing.T) (*world, []cloud.Server) {
	t.Helper()
	vms, servers := fleet()
	w := newWorld(t, home(), newCloud(nil, servers...), vms...)
	w.reconcile()
	for _, s := range servers[1:] {
		w.cloud.RemoveServers(s.ID)
	}
	w.later()
	equal(t, "braked", true, w.inv.View().Braked)
	return w, servers
}

func TestBrakeNamesAnIDThatDiffersOnlyInForm(t *testing.T) {
	vms, servers := fleet()
	f := newCloud(nil, servers...)
	w := newWorld(t, home(), f, vms...)
	w.reconcile()
	f.Clear()
	for _, s := range servers {
		s.ID = strings.ToUpper(s.ID)
		f.AddServers(s)
	}
	w.later()
	w.wantCondition(pcapi.BrakedCondition, "True ServersVanished", `v00 among them (it lists 8 of them by other ids, "v00" by "V00" among them: they differ only in form`, "the cloud must give an id in one form. Do not acknowledge that); nothing is created")
}

func TestBrakeSurvivesARestart(t *testing.T) {
	w, servers := braked(t)
	for _, s := range servers {
		w.cloud.AddServers(s)
	}
	w.start()
	w.reconcile()
	equal(t, "braked", true, w.inv.View().Braked)
	equal(t, "away", "", w.inv.View().Unavailable)
}

func TestBrakeAcknowledgedInAnOutageIsReleasedAfterIt(t *testing.T) {
	w, _ := braked(t)
	w.cloud.FailAlways(cloudfake.ListServers, errRefused, false)
	w.edit(acknowledging(w.stored().Status.BrakedSnapshot))
	w.later()
	w.cloud.Heal(cloudfake.ListServers)
	w.later()
	equal(t, "braked", false, w.inv.View().Braked)
	w.wantCondition(pcapi.BrakedCondition, "False Released")
	w.wantCondition(pcapi.ReadyCondition, "True Connected")
}

func TestUnrecordedBrakeHolds(t *testing.T) {
	vms, servers := fleet()
	w := newWorld(t, home(), newCloud(nil, servers...), vms...)
	w.reconcile()
	w.cloud.Clear()
	w.refuse["status"] = errAPIAway
	w.later()
	equal(t, "braked", true, w.inv.View().Braked)
	equal(t, "snapshot on record", "", w.stored().Status.BrakedSnapshot)
	w.reconcile()
	equal(t, "braked before the next listing", true, w.inv.View().Braked)

	t.Run("the servers are still missing", func(t *testing.T) {
		w.later()
		w.wantCondition(pcapi.BrakedCondition, "True ServersVanished", "lacks 8 servers")
		if w.stored().Status.BrakedSnapshot == "" {
			t.Error("no snapshot can be acknowledged")
		}
	})
}

func TestUnrecordedBrakeIsReleasedWhenTheServersAreBack(t *testing.T) {
	vms, servers := fleet()
	w := newWorld(t, home(), newCloud(nil, servers...), vms...)
	w.reconcile()
	w.cloud.Clear()
	w.refuse["status"] = errAPIAway
	w.later()
	for _, s := range servers {
		w.cloud.AddServers(s)
	}
	w.later()
	equal(t, "braked", false, w.inv.View().Braked)
	w.wantCondition(pcapi.BrakedCondition, "False Released")
}

func TestBrakeIsSetAgainIfMoreServersVanish(t *testing.T) {
	vms, servers := fleet()
	w := newWorld(t, home(), newCloud(nil, servers...), vms...)
	w.reconcile()
	vanish := func(from, to int) {
		for _, s := range servers[from:to] {
			w.cloud.RemoveServers(s.ID)
		}
		w.later()
	}
	vanish(0, 4)
	w.later()
	first := w.stored().Status.BrakedSnapshot
	w.edit(acknowledging(first))
	vanish(4, 8)
	equal(t, "braked", true, w.inv.View().Braked)
	second := w.stored().Status.BrakedSnapshot
	if second == "" || second == first {
		t.Errorf("braked at %q, want another snapshot than the acknowledged %q", second, first)
	}
	w.wantCondition(pcapi.BrakedCondition, "True ServersVanished", "lacks 4 servers", second)
}

// Servers that were too young at the first listing after a start count one after the
// other. If all of them are missing, it is the listing.
func TestBrakeCountsAbsencesOfYoungServersTogether(t *testing.T) {
	for _, restarted := range []bool{true, false} {
		var vms []client.Object
		f := newCloud(nil)
		for i := range 10 {
			name := fmt.Sprintf("v%02d", i)
			vms = append(vms, vm(name, func(vm *pcapi.VM) {
				vm.Status.CreatedTime = new(metav1.NewTime(dawn.Add(time.Duration(i)*12*time.Second - 119*time.Second)))
			}))
			if !restarted {
				f.AddServers(server(name, ownedBy(name, "here")))
			}
		}
		w := newWorld(t, home(func(c *pcapi.Cloud) { c.Spec.PollInterval = metav1.Duration{Duration: 5 * time.Second} }), f, vms...)
		w.reconcile()
		f.Clear() // the listing of another tenant
		lost := 0
		for range 40 {
			w.now = w.now.Add(6 * time.Second)
			w.reconcile()
			if w.inv.View().Braked {
				break
			}
			lost = 0
			for _, o := range vms { // what the VM controller does with a listing that lacks a server
				stored := &pcapi.VM{}
				if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(o), stored); err != nil {
					t.Fatal(err)
				}
				if w.now.Sub(stored.Status.CreatedTime.Time) > settleTime+time.Second {
					stored.Status.State = pcapi.VMStateLost
					if err := w.client.Update(t.Context(), stored); err != nil {
						t.Fatal(err)
					}
					lost++
				}
			}
		}
		if lost > 2 {
			t.Errorf("restarted %t: %d of 10 VMs were lost before the brake was set", restarted, lost)
		}
	}
}
