package vm

import (
	"fmt"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

var (
	errNotFound = &cloud.Error{Kind: cloud.NotFound, Op: `get server "s1"`, Code: "notFound"}
	errUnproven = &cloud.Error{Kind: cloud.NotFoundUnproven, Op: `get server "s1"`}
)

// namesNotExclusive are the capabilities of a cloud where a name proves nothing.
var namesNotExclusive = without(cloud.Idempotency, cloud.Labels, cloud.ExclusiveNames)

// hideReads makes GET and LIST answer as if the server did not exist.
func (h *harness) hideReads(answer *cloud.Error) {
	h.cloud.Hide("s1")
	h.cloud.FailAlways(cloudfake.GetServer, answer, false)
}

func (h *harness) showReads() {
	h.cloud.Show()
	h.cloud.Heal(cloudfake.GetServer)
}

func TestServerIsNotLostBeforeSettleTime(t *testing.T) {
	for _, caps := range []cloud.Capabilities{everything, uniqueNamesOnly, withoutProofs} {
		for _, answer := range []*cloud.Error{errNotFound, errUnproven} {
			for _, listedBefore := range []bool{false, true} {
				for _, restarted := range []bool{false, true} {
					h := newHarness(t, caps, vmWith())
					h.mustReconcile()
					created := h.now
					if listedBefore {
						h.later(time.Second)
						h.mustReconcile()
					}
					h.hideReads(answer)
					if restarted {
						h.start()
						h.connect()
					}
					for h.now.Before(created.Add(settleTime - 10*time.Second)) {
						h.later(10 * time.Second)
						h.mustReconcile()
						if reason, _ := h.condition(pcapi.CreatedCondition); reason != "True Created" || h.vm().Status.State != pcapi.VMStateRunning {
							t.Fatalf("%s, listed before %t, restarted %t: Created=%s, state %s %v after the create", answer.Kind, listedBefore, restarted,
								reason, h.vm().Status.State, h.now.Sub(created))
						}
					}
					h.showReads()
					h.later(time.Second)
					h.mustReconcile()
					h.wantCondition(pcapi.ReadyCondition, "True Running")
					h.wantServers("s1")
				}
			}
		}
	}
}

func TestServerIsLostOnlyIfGetAndNewListingLackIt(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(), serverWith())
	h.mustReconcile()
	h.cloud.Hide("s1")
	h.later(settleTime)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")

	h.cloud.FailAlways(cloudfake.GetServer, errUnproven, false)
	h.later(time.Second)
	h.mustReconcile()
	h.wantCondition(pcapi.CreatedCondition, "False Lost")

	h.showReads()
	h.later(time.Second)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

// A cloud may report the end of a deletion, which it does once, before its reads show it.
func TestEndOfADeletionThatWasReportedTooEarlyIsFound(t *testing.T) {
	for name, listed := range map[string]bool{"a read shows the server after the report": false, "a listing shows it after the report": true} {
		for _, removed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the VM is deleted: %t", name, removed), func(t *testing.T) {
				h := harnessWithServer(t, everything, onRecord(), serverWith())
				h.mustReconcile()
				h.later(settleTime + time.Minute)
				h.inv.Configure(inventory.Settings{PollInterval: 10 * time.Minute, SettleTime: settleTime, UtilizationStep: 1})
				report := func(change cloud.Change) {
					t.Helper()
					if err := h.inv.Apply(h.cloud, change); err != nil {
						t.Fatalf("Apply: %v", err)
					}
					h.advance(time.Second)
					if snap := h.inv.Reported(); snap != nil {
						h.inv.Publish(snap)
					}
				}
				report(cloud.Change{AsOf: h.now, Complete: true, Servers: h.cloud.Servers()})
				h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.State = cloud.StateDeleting })
				report(cloud.Change{AsOf: h.now, Servers: h.cloud.Servers()})
				h.mustReconcile()
				report(cloud.Change{AsOf: h.now, Gone: []string{"s1"}})
				if listed {
					h.later(time.Second)
				}
				if removed {
					h.remove()
				}
				h.mustReconcile()
				equal(t, "state", pcapi.VMStateDeleting, h.vm().Status.State)
				h.cloud.RemoveServers("s1")

				h.advance(external.Safety)
				h.mustReconcile()
				h.advance(time.Second)
				equal(t, "time until the next listing", time.Duration(0), h.inv.NextPoll())
				h.poll()
				h.mustReconcile()
				if removed {
					h.wantGone()
				} else {
					equal(t, "state", pcapi.VMStateLost, h.vm().Status.State)
				}
			})
		}
	}
}

func TestUnprovenNotFoundNeedsListingBegunAfterDelete(t *testing.T) {
	for _, verb := range []cloudfake.Verb{cloudfake.DeleteServer, cloudfake.GetServer} {
		t.Run(string(verb), func(t *testing.T) {
			h := harnessWithServer(t, everything, onRecord(), serverWith())
			h.mustReconcile()
			h.later(settleTime + time.Minute)
			h.remove()
			h.cloud.FailAlways(verb, errUnproven, false)
			if verb == cloudfake.DeleteServer {
				h.cloud.FailAlways(cloudfake.GetServer, errUnproven, false)
			}
			h.mustReconcile()
			if _, ok := h.find(); !ok {
				t.Fatal("the object was released after an answer that proves nothing")
			}
			h.advance(time.Second)
			h.mustReconcile()
			if _, ok := h.find(); !ok {
				t.Fatal("the object was released without a new listing")
			}
			if verb == cloudfake.DeleteServer { // a gateway answered, and the server exists
				h.later(time.Second)
				h.mustReconcile()
				if _, ok := h.find(); !ok {
					t.Fatal("the object was released although the listing has the server")
				}
				h.cloud.Heal(cloudfake.DeleteServer)
				h.later(time.Second)
				h.mustReconcile()
			}
			h.wantServers()
			h.later(time.Second)
			h.mustReconcile()
			h.wantGone()
		})
	}
}

func TestForgedClaimProvesNothing(t *testing.T) {
	forged := func(vm *pcapi.VM) {
		vm.Finalizers = []string{pcapi.VMFinalizer}
		vm.Annotations = map[string]string{pcapi.ClaimedNameAnnotation: "web", pcapi.ClaimedCloudAnnotation: "default"}
	}
	for name, caps := range map[string]cloud.Capabilities{"exclusive names": uniqueNamesOnly, "names not exclusive": namesNotExclusive, "no proofs": withoutProofs, "keys alone": without(cloud.Labels)} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith(forged))
			h.cloud.AddServers(cloud.Server{ID: "x", Name: "web", State: cloud.StateActive})
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			if id := h.vm().Status.VMID; id == "x" {
				t.Error("the VM took over the server of somebody else")
			}
			h.remove()
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			if !h.cloud.HasServer("x") {
				t.Error("the server of somebody else was deleted")
			}
		})
	}
}

func TestListingBegunBeforeClaimProvesNothing(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith())
	h.cloud.AddServers(cloud.Server{ID: "dead", Name: "web", State: cloud.StateActive})
	h.poll()
	h.cloud.RemoveServers("dead")
	h.advance(time.Second)
	h.cloud.Fail(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Taken, Op: "create server"}, false)
	h.alone = false
	h.mustReconcile()
	h.mustReconcile()
	equal(t, "vmId", "", h.vm().Status.VMID)
	h.later(settleTime)
	h.mustReconcile()
	h.later(settleTime)
	h.mustReconcile()
	h.wantServers("s1")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestRefusalKeepsClaimThatAnotherManagerMayHaveActedOn(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith())
	h.alone = false
	h.cloud.Fail(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Quota, Op: "create server", Detail: "full"}, false)
	h.mustReconcile()
	h.wantClaim("web")
	// The other manager creates the server, and stops before it records the id.
	h.cloud.AddServers(cloud.Server{ID: "s9", Name: "web", State: cloud.StateActive, CPU: 2, CreatedAt: h.now})
	h.remove()
	h.later(time.Second)
	h.mustReconcile()
	h.later(time.Second)
	h.mustReconcile()
	h.wantServers()
	h.wantGone()
}

func TestNewManagerCountsSettleTimeFromFirstObservationOfClaim(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith(withClaim))
	h.later(time.Hour)
	h.mustReconcile()
	h.wantCalls()
	h.later(settleTime / 2)
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown")
	h.later(settleTime)
	h.mustReconcile()
	h.wantCalls("create web")
}

func TestOrphanedVMWithOpenCreateReleasesItsServer(t *testing.T) {
	h := harnessWithLostAnswer(t, withoutKeys, true)
	h.cloud.Hide("s1")
	h.edit(orphaning)
	h.remove()
	h.later(time.Second)
	h.mustReconcile()
	h.vm() // it waits for the server
	h.cloud.Show("s1")
	h.later(time.Second)
	h.mustReconcile()
	h.wantGone()
	h.wantServers("s1")
	equal(t, "labels", map[string]string{}, h.cloud.Server("s1").Labels)
}

func TestAcceptedChangeThatIsNotAppliedIsNotReady(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(), serverWith(withCores(1)))
	h.cloud.Ignore(cloudfake.UpdateServer)
	for range 3 {
		h.later(time.Minute)
		h.mustReconcile()
	}
	h.wantCondition(pcapi.ReadyCondition, "False Progressing", "does not show it")
	h.cloud.Heal(cloudfake.UpdateServer)
	h.later(5 * time.Minute)
	h.mustReconcile()
	h.later(time.Minute)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestDriftThatComesBackLaterIsNotAChangeThatWasNotApplied(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(), serverWith(withCores(1)))
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	h.later(time.Hour)
	h.mustReconcile()
	h.cloud.ModifyServer("s1", withCores(1))
	h.later(time.Minute)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	h.wantCalls("update s1", "update s1")
}

func TestOutcomeUnknownStaysWhileCloudIsUnavailable(t *testing.T) {
	h := harnessWithLostAnswer(t, withoutKeys, false)
	h.inv.MarkUnavailable("the cloud does not answer")
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable")
	h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown", "may have been created")
}

// A GET has shown that a new server is being deleted. Then a gateway answers the next one with 404, while listings lag
// behind the create.
func TestListingThatLagsBehindIsNoProofOfADeletion(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	h.cloud.SetSlow(true)
	h.mustReconcile()
	h.cloud.Finish()
	h.later(time.Second)
	h.mustReconcile()
	h.remove()
	h.mustReconcile()
	h.wantServers("s1")
	h.hideReads(errUnproven)
	for range 3 {
		h.later(2 * time.Second)
		h.mustReconcile()
	}
	if _, ok := h.find(); !ok {
		t.Fatal("the VM is released, and its server exists")
	}
	h.cloud.Finish()
	h.later(settleTime)
	h.mustReconcile()
	h.wantGone()
}
