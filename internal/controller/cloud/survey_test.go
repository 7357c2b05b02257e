package cloud

import (
	"fmt"
	"math/rand/v2"
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

// createdAgo makes a VM one whose server was created this long before dawn,
// however old its object is.
func createdAgo(age time.Duration) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.Status.CreatedTime = new(metav1.NewTime(dawn.Add(-age)))
	}
}

func objectAge(age time.Duration) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.CreationTimestamp = metav1.NewTime(dawn.Add(-age)) }
}

func lost(vm *pcapi.VM)         { vm.Status.State = pcapi.VMStateLost }
func observedOnly(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyObserveOnly }
func elsewhere(vm *pcapi.VM)    { vm.Status.Cloud = "other" }
func going(vm *pcapi.VM) {
	now := metav1.NewTime(dawn)
	vm.DeletionTimestamp, vm.Finalizers = &now, []string{"some/one"}
}

// publish makes what the world's cloud lists now the last listing.
func (w *world) publish() {
	w.t.Helper()
	snap, err := inventory.List(w.t.Context(), w.cloud, w.Now)
	if err != nil {
		w.t.Fatalf("List: %v", err)
	}
	w.inv.Connect(reporting{w.cloud, w}, nil)
	w.inv.Publish(snap)
}

func TestBrakeCountsExpectedServersOnly(t *testing.T) {
	listed := []cloud.Server{server("v00"), server("v01")}
	tests := []struct {
		name string
		// vm changes the VMs v00 and v01, whose servers are missing.
		vm func(*pcapi.VM)
		// before is what the listing before had, a minute earlier; nil after a start.
		before []cloud.Server
		want   bool
	}{
		{name: "after a start: old enough", vm: createdAgo(settleTime + 1), want: true},
		{name: "after a start: young, the listing may lag behind", vm: createdAgo(settleTime)},
		{name: "after a start: an old object, whose server was created just now", vm: createdAgo(time.Second)},
		{name: "after a start: created at an unknown time, and its object is old", vm: func(*pcapi.VM) {}, want: true},
		{name: "after a start: created at an unknown time, and its object is young", vm: objectAge(settleTime)},
		{name: "known to be lost", vm: lost},
		{name: "being deleted by the operator", vm: going},
		{name: "only observed", vm: observedOnly},
		{name: "on another Cloud: spec.cloudRef was edited", vm: elsewhere},
		{name: "in the listing before", vm: func(*pcapi.VM) {}, before: listed, want: true},
		{name: "in the listing before, and still young", vm: createdAgo(settleTime), before: listed},
		{name: "not in the listing before either", vm: createdAgo(settleTime + time.Minute + 1), before: []cloud.Server{server("other")}},
		{name: "not in the listing before either, but too young then", vm: createdAgo(settleTime + time.Minute), before: []cloud.Server{server("other")}, want: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, home(), newCloud(nil, tc.before...), vm("v00", tc.vm), vm("v01", tc.vm))
			if tc.before != nil {
				w.now = dawn.Add(-time.Minute)
				w.publish()
				w.now = dawn
			}
			w.cloud.Clear()
			w.reconcile()
			equal(t, "braked", tc.want, w.inv.View().Braked)
		})
	}
}

func TestBrakeIsUnaffectedByServersThatDoNotCount(t *testing.T) {
	objects := []client.Object{vm("v00"), vm("v01")}
	f := newCloud(nil)
	for i, change := range []func(*pcapi.VM){observedOnly, lost, going, createdAgo(0)} {
		for n := range 10 {
			name := fmt.Sprintf("x%d%d", i, n)
			objects, _ = append(objects, vm(name, change)), i
			f.AddServers(server(name))
		}
	}
	w := newWorld(t, home(), f, objects...)
	w.reconcile()
	equal(t, "braked: both that count vanished", true, w.inv.View().Braked)
}

// TestRestartIntoAnotherTenantsListingBrakes restarts with credentials of another
// tenant within the settle time of ten creates.
func TestRestartIntoAnotherTenantsListingBrakes(t *testing.T) {
	for _, spacing := range []time.Duration{0, time.Second, 10 * time.Second} {
		t.Run(spacing.String()+" between the creates", func(t *testing.T) {
			var vms []client.Object
			for i := range 10 {
				vms = append(vms, vm(fmt.Sprintf("v%02d", i), createdAgo(time.Duration(i+1)*spacing)))
			}
			w := newWorld(t, home(), newCloud(nil, server("of-another-tenant")), vms...)
			w.reconcile()
			equal(t, "braked while all are young", false, w.inv.View().Braked)
			for w.now.Sub(dawn) <= settleTime+pollInterval*11/10 && !w.inv.View().Braked {
				w.later()
			}
			equal(t, "braked once two of them are old enough", true, w.inv.View().Braked)
			w.wantCondition(pcapi.BrakedCondition, "True ServersVanished", "v0")
		})
	}
}

func TestBrakeFollowsWhatTheCloudSaysOfTheVanishedServers(t *testing.T) {
	unclear := &cloud.Error{Kind: cloud.Unavailable, Op: "get server", Detail: "timed out"}
	tests := []struct {
		name string
		// known servers, of which the listing lacks missing; exists reports which of them exist.
		known, missing int
		exists         func(i int) bool
		fail           error
		want           bool
		gone           int
		asked          int
	}{
		{name: "all exist: no brake", known: 8, missing: 8, exists: func(int) bool { return true }, asked: 8},
		{name: "none exists: brake", known: 8, missing: 8, exists: func(int) bool { return false }, want: true, gone: 8, asked: 8},
		{name: "half exists, and the rest satisfies the rule: brake", known: 8, missing: 8, exists: func(i int) bool { return i < 4 }, want: true, gone: 4, asked: 8},
		{name: "all but one exist: no brake", known: 8, missing: 8, exists: func(i int) bool { return i != 3 }, asked: 8},
		{name: "the rest is less than a quarter: no brake", known: 20, missing: 8, exists: func(i int) bool { return i < 4 }, asked: 8},
		{name: "not so many that the cloud is asked", known: 20, missing: 4, exists: func(int) bool { return true }},
		{name: "more than are asked for, and all of those exist: no brake", known: 200, missing: 100, exists: func(int) bool { return true }, asked: 20},
		{name: "more than are asked for, and none of those exists: brake", known: 200, missing: 100, exists: func(int) bool { return false }, want: true, gone: 100, asked: 20},
		{name: "more than are asked for, and a tenth is gone: no brake", known: 200, missing: 100, exists: func(i int) bool { return i >= 10 }, asked: 20},
		{name: "more than are asked for, and most are gone: brake", known: 200, missing: 100, exists: func(i int) bool { return i < 10 }, want: true, gone: 90, asked: 20},
		{name: "the cloud's answers are unclear: brake", known: 8, missing: 8, exists: func(int) bool { return true }, fail: unclear, want: true, gone: 8, asked: 8},
		{name: "a gateway says that they do not exist: brake", known: 8, missing: 8, exists: func(int) bool { return true }, fail: &cloud.Error{Kind: cloud.NotFoundUnproven, Op: "get server"}, want: true, gone: 8, asked: 8},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newCloud(cloud.NewCapabilities(cloud.Sizing))
			var vms []client.Object
			var gone []string
			for i := range tc.known {
				id := fmt.Sprintf("v%03d", i)
				vms = append(vms, vm(id))
				switch {
				case i >= tc.missing:
					f.AddServers(server(id))
				case tc.exists(i):
					f.AddServers(server(id))
					f.Hide(id)
				default:
					gone = append(gone, id)
				}
			}
			if tc.fail != nil {
				f.FailAlways(cloudfake.GetServer, tc.fail, false)
			}
			w := newWorld(t, home(), f, vms...)
			w.reconcile()
			equal(t, "braked", tc.want, w.inv.View().Braked)
			equal(t, "servers asked for", tc.asked, f.Sent(cloudfake.GetServer))
			if !tc.want {
				return
			}
			w.wantCondition(pcapi.BrakedCondition, "True ServersVanished", fmt.Sprintf("lacks %d servers", tc.gone))
			named := strings.Fields(strings.Split(conditionMessage(w, pcapi.BrakedCondition), "record, ")[1])[0]
			if tc.fail == nil && !slices.Contains(gone, named) {
				t.Errorf("the condition names server %s, which exists", named)
			}
		})
	}
}

func conditionMessage(w *world, kind string) string {
	w.t.Helper()
	for _, c := range w.stored().Status.Conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}

func TestCloudIsNotAskedForServersWhileTheBrakeIsOnRecord(t *testing.T) {
	w, _ := braked(t)
	asked := w.cloud.Sent(cloudfake.GetServer)
	w.start()
	w.reconcile()
	equal(t, "braked", true, w.inv.View().Braked)
	equal(t, "servers asked for after a restart", asked, w.cloud.Sent(cloudfake.GetServer))
}

// TestBrakeAtRandom makes servers vanish and come back, VMs come, restarts and
// acknowledgements at random. Whatever happens, no listing is published without a
// brake if it is the first to lack many servers that it must show, and an
// acknowledgement holds for the servers that it was about.
func TestBrakeAtRandom(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 11))
			vms, servers := fleet()
			w := newWorld(t, home(), newCloud(nil, servers...), vms...)
			w.reconcile()
			// reported are the VMs whose absence was counted by this process, since is the
			// step whose listing was the first to lack a server, and released are the VMs that
			// an acknowledgement was about.
			reported, young := map[string]bool{}, map[string]time.Time{}
			since, released := map[string]int{}, map[string]bool{}
			for step := range 20 {
				switch random.IntN(6) {
				case 0:
					w.cloud.RemoveServers(servers[random.IntN(len(servers))].ID)
				case 1:
					for _, s := range servers[:random.IntN(len(servers))] {
						w.cloud.RemoveServers(s.ID)
					}
				case 2:
					back := servers[random.IntN(len(servers))]
					w.cloud.AddServers(back)
				case 3:
					name := fmt.Sprintf("n%02d", step)
					young[name] = w.now
					one := vm(name, createdAgo(dawn.Sub(w.now)))
					if err := w.client.Create(t.Context(), one); err != nil {
						t.Fatalf("Create: %v", err)
					}
					if random.IntN(2) == 0 {
						servers = append(servers, server(name))
						w.cloud.AddServers(server(name))
					}
				case 4:
					w.start()
					clear(reported)
					clear(since)
					clear(released)
				default:
					if snapshot := w.stored().Status.BrakedSnapshot; snapshot != "" {
						w.edit(acknowledging(snapshot))
					}
				}
				before := w.stored().Status.BrakedSnapshot
				acknowledged := before != "" && w.stored().Annotations[pcapi.AcknowledgeAnnotation] == before
				w.later()

				known, gone := 0, 0
				var all pcapi.VMList
				if err := w.client.List(t.Context(), &all); err != nil {
					t.Fatalf("List: %v", err)
				}
				for name := range since {
					released[name] = released[name] || acknowledged
				}
				newly := map[int]bool{}
				for _, one := range all.Items {
					if _, missing := since[one.Name]; !missing && !w.cloud.HasServer(one.Name) {
						since[one.Name] = step
					}
					created, isYoung := young[one.Name]
					there := w.cloud.HasServer(one.Name)
					switch {
					case isYoung && w.now.Sub(created) <= settleTime:
					case there:
						known++
						delete(reported, one.Name)
					case !reported[one.Name]:
						known, gone = known+1, gone+1
						newly[since[one.Name]] = true
					}
				}
				for _, one := range all.Items {
					created, isYoung := young[one.Name]
					switch {
					case w.cloud.HasServer(one.Name):
						delete(since, one.Name)
						delete(released, one.Name)
					case isYoung && w.now.Sub(created) <= settleTime:
					case reported[one.Name] && newly[since[one.Name]] && !released[one.Name]:
						known, gone = known+1, gone+1
					default:
						reported[one.Name] = true
					}
				}
				want := inventory.Implausible(gone, known) || (before != "" && !acknowledged)
				if got := w.inv.View().Braked; got != want {
					t.Fatalf("step %d: braked %t, want %t: %d of %d vanished, brake %q before, acknowledged %t", step, got, want, gone, known, before, acknowledged)
				}
			}
		})
	}
}

// TestServerIsYoungForTheWholeSettleTime has servers that were created within the settle time,
// though the whole seconds of their status are older than that.
func TestServerIsYoungForTheWholeSettleTime(t *testing.T) {
	young := createdAgo(settleTime - 800*time.Millisecond)
	w := newWorld(t, home(), newCloud(nil), vm("v00", young), vm("v01", young))
	w.now = dawn.Add(500 * time.Millisecond)
	w.reconcile()
	equal(t, "braked while they are young", false, w.inv.View().Braked)
	w.now = w.now.Add(pollInterval * 11 / 10)
	w.reconcile()
	equal(t, "braked after that", true, w.inv.View().Braked)
}
