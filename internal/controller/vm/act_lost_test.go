package vm

import (
	"testing"
	"time"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

// open is a VM whose create was sent and its answer lost: it took effect or not.
func open(t *testing.T, caps cloud.Capabilities, committed bool) *world {
	t.Helper()
	w := newWorld(t, caps, vmWith())
	w.cloud.Fail(cloudfake.CreateServer, errReset, committed)
	w.wantAgain(time.Second, w.mustPass())
	w.wantCalls("check web", "create web")
	w.wantClaim("web")
	w.wantSays(v1alpha1.CreatedCondition, "False OutcomeUnknown", "connection reset", "may have been created all the same")
	w.wantSays(v1alpha1.ReconcilingCondition, "True Progressing")
	return w
}

var profiles = map[string]cloud.Capabilities{
	"everything": everything, "labels and names": tokenless, "labels alone": without(cloud.Idempotency, cloud.UniqueNames),
	"names alone": named, "a key and labels": without(cloud.UniqueNames), "a key alone": without(cloud.Labels, cloud.UniqueNames), "a key and names": without(cloud.Labels),
}

func TestAnOpenCreateIsLookedForInAListingBegunLater(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			w := open(t, caps, true)
			w.advance(time.Second)
			w.wantAgain(external.Safety, w.mustPass())
			w.wantCalls()
			w.wantSays(v1alpha1.CreatedCondition, "False OutcomeUnknown")
			w.wantWoken()

			w.later(time.Second)
			w.wantWoken("a")
			w.mustPass()
			w.wantServers("s1")
			equal(t, "vmId", "s1", w.vm().Status.VMID)
			w.wantSays(v1alpha1.ReadyCondition, "True Running")
		})
	}
}

func TestAListingUnderWayWhenTheCreateWasSentProvesNothing(t *testing.T) {
	w := open(t, everything, false)
	w.advance(-time.Second)
	w.poll()
	w.advance(2 * time.Second)
	w.wantAgain(external.Safety, w.mustPass())
	w.wantCalls()
	w.later(time.Second)
	w.mustPass()
	w.wantCalls("create web")
}

func TestAnOpenCreateThatLeftNoTraceIsRepeatedWhenItIsSafe(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			w := open(t, caps, false)
			w.later(time.Second)
			w.mustPass()
			if caps.Has(cloud.Idempotency) {
				w.wantCalls("create web")
				w.wantServers("s1")
				return
			}
			w.wantCalls()
			w.wantSays(v1alpha1.CreatedCondition, "False OutcomeUnknown", "settleTime")
			w.advance(settleTime)
			w.mustPass()
			w.wantCalls()
			w.poll()
			w.wantWoken("a")
			w.mustPass()
			w.wantCalls("create web")
			w.wantServers("s1")
			w.wantSays(v1alpha1.ReadyCondition, "True Running")
		})
	}
}

func TestAServerThatComesLateIsFoundBeforeTheSettleTimeIsOver(t *testing.T) {
	for name, caps := range profiles {
		if caps.Has(cloud.Idempotency) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := open(t, caps, true)
			w.cloud.Hide("s1")
			w.later(time.Second)
			w.mustPass()
			w.cloud.Show("s1")
			w.later(settleTime)
			w.mustPass()
			w.wantCalls()
			equal(t, "vmId", "s1", w.vm().Status.VMID)
			w.wantSays(v1alpha1.CreatedCondition, "True Adopted")
		})
	}
}

func TestANewProcessKnowsNothingOfWhatAnEarlierOneSent(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			w := open(t, caps, true)
			w.cloud.Hide("s1")
			w.advance(time.Hour)
			w.start()
			w.connect()
			w.mustPass()
			if caps.Has(cloud.Idempotency) {
				w.wantCalls("create web")
			} else {
				w.wantCalls()
				w.wantSays(v1alpha1.CreatedCondition, "False OutcomeUnknown", "settleTime")
				w.cloud.Show("s1")
				w.later(time.Second)
				w.mustPass()
				w.wantCalls()
			}
			w.wantServers("s1")
			equal(t, "vmId", "s1", w.vm().Status.VMID)
		})
	}
}

func TestTheAnswerCameButWasNotRecorded(t *testing.T) {
	for name, caps := range profiles {
		for _, refusal := range []error{errConflict, errAPIAway} {
			for _, shown := range []bool{true, false} {
				t.Run(name+": "+refusal.Error(), func(t *testing.T) {
					w := newWorld(t, caps, vmWith())
					w.refuse["status"] = []error{refusal}
					_, _ = w.pass()
					equal(t, "vmId", "", w.vm().Status.VMID)
					w.wantCalls("check web", "create web")

					// The cloud's listing lags behind its own answer.
					if !shown {
						w.cloud.Hide("s1")
					}
					w.later(time.Second)
					_, _ = w.pass()
					w.wantServers("s1")
					w.wantClaim("web")
					w.cloud.Show("s1")
					w.later(time.Second)
					w.mustPass()
					w.wantServers("s1")
					equal(t, "vmId", "s1", w.vm().Status.VMID)
				})
			}
		}
	}
}

func TestAnUnrecordedServerIsNotLeftBehindByADeletion(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, caps, vmWith())
			w.refuse["status"] = []error{errAPIAway}
			_, _ = w.pass()
			w.cloud.Hide("s1")
			w.later(time.Second)
			w.remove()
			_, _ = w.pass()
			w.cloud.Show("s1")
			for range 4 {
				w.later(settleTime)
				_, _ = w.pass()
			}
			w.wantServers()
			w.wantGone()
		})
	}
}

// TestADeletionAfterAClearRefusalWaitsForNothing: it makes no difference that the
// process has just begun.
func TestADeletionAfterAClearRefusalWaitsForNothing(t *testing.T) {
	w := newWorld(t, without(cloud.Idempotency, cloud.UniqueNames), vmWith())
	w.start()
	w.connect()
	w.cloud.Fail(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Rejected, Op: "create server", Detail: "no"}, false)
	w.mustPass()
	w.wantClaim("web")
	w.remove()
	w.mustPass()
	w.advance(time.Second)
	w.poll()
	w.mustPass()
	w.wantGone()
}

// TestADeletionLooksForWhatAnotherManagerMade: this one never sent a create, and
// its last listing is older than the other's.
func TestADeletionLooksForWhatAnotherManagerMade(t *testing.T) {
	w := newWorld(t, everything, vmWith(holdingClaim))
	w.later(settleTime + time.Minute)
	w.advance(time.Second)
	vm := w.vm()
	w.cloud.AddServers(cloud.Server{ID: "s7", Name: "web", State: cloud.StateActive, Labels: map[string]string{
		inventory.UIDLabel: string(vm.UID), inventory.ClusterLabel: "cluster", inventory.NamespaceLabel: "ns", inventory.NameLabel: "a",
	}})
	w.remove()
	w.mustPass()
	if _, ok := w.find(); !ok {
		t.Fatal("the VM went without a listing begun after its deletion")
	}
	w.poll()
	w.mustPass()
	w.wantGone()
	w.wantServers()
}

func TestADeletionOfAnOpenCreateWaitsUntilNothingCanComeOfIt(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			w := open(t, caps, true)
			w.cloud.Hide("s1")
			w.remove()
			w.later(time.Second)
			w.mustPass()
			w.wantCalls()
			w.wantSays(v1alpha1.DeletingCondition, "True Requested", "settleTime")

			w.cloud.Show("s1")
			w.later(time.Minute)
			w.mustPass()
			if !caps.Has(cloud.Labels) && !caps.Has(cloud.UniqueNames) {
				w.wantCalls()
				w.wantSays(v1alpha1.DeletingCondition, "True Blocked", "VM s1")
				return
			}
			w.wantCalls("delete s1", "get s1")
			w.wantGone()
			w.wantServers()
		})
	}
}

func TestADeletionOfAnOpenCreateEndsWhenNothingCameOfIt(t *testing.T) {
	w := open(t, everything, false)
	w.remove()
	w.later(time.Second)
	w.mustPass()
	w.advance(settleTime)
	w.mustPass()
	if _, ok := w.find(); !ok {
		t.Fatal("the VM went without a listing begun after the settle time")
	}
	w.poll()
	w.mustPass()
	w.wantGone()
	w.wantCalls()
}

func TestOneCreateMadeTwoServers(t *testing.T) {
	labelled := without(cloud.Idempotency, cloud.UniqueNames)
	w := open(t, labelled, true)
	w.cloud.AddServers(serverWith(id("s2"), func(s *cloud.Server) { s.CreatedAt = w.now.Add(time.Second) }))
	w.cloud.AddServers(serverWith(id("x"), func(s *cloud.Server) { s.Labels = other("b").Labels }))
	w.later(time.Second)
	w.wantAgain(time.Second, w.mustPass())
	w.wantCalls("delete s2")
	equal(t, "vmId: the older one", "s1", w.vm().Status.VMID)
	w.later(time.Second)
	w.mustPass()
	w.wantCalls()
	w.wantServers("s1", "x")
	w.wantSays(v1alpha1.ReadyCondition, "True Running")
}

func TestADuplicateThatIsGoneAlreadyIsNoTrouble(t *testing.T) {
	w := newWorld(t, everything, onRecord())
	w.cloud.AddServers(serverWith())
	w.cloud.AddServers(serverWith(id("s2")))
	w.poll()
	w.cloud.RemoveServers("s2")
	w.mustPass()
	w.wantCalls("delete s2")
	w.later(time.Second)
	w.mustPass()
	w.wantCalls()
	w.wantSays(v1alpha1.ReadyCondition, "True Running")
}

func TestTwoObjectsOfOneNameWhereNamesTell(t *testing.T) {
	w := newWorld(t, named, vmWith(), other("b", func(vm *v1alpha1.VM) {
		vm.Status.VMID, vm.Finalizers = "sb", []string{v1alpha1.VMFinalizer}
	}))
	w.cloud.AddServers(cloud.Server{ID: "sb", Name: "web", State: cloud.StateActive})
	w.poll()
	w.wantAgain(time.Minute, w.mustPass())
	w.wantCalls()
	w.wantClaim("")
	w.wantSays(v1alpha1.NameCheckedCondition, "False Taken", "another VM object")
	w.remove()
	w.mustPass()
	w.wantGone()
	w.wantServers("sb")
}

func TestTwoObjectsMayHaveOneNameWhereNamesTellNothing(t *testing.T) {
	w := newWorld(t, nameless, vmWith(), other("b", func(vm *v1alpha1.VM) {
		vm.Status.VMID, vm.Finalizers = "sb", []string{v1alpha1.VMFinalizer}
	}))
	w.cloud.AddServers(cloud.Server{ID: "sb", Name: "web", State: cloud.StateActive})
	w.poll()
	w.cloud.Fail(cloudfake.CreateServer, errReset, false)
	w.mustPass()
	w.later(settleTime)
	w.mustPass()
	w.wantServers("s1", "sb")
	equal(t, "vmId", "s1", w.vm().Status.VMID)
	w.wantSays(v1alpha1.CreatedCondition, "True Created", "only a person can attribute")
}

func TestAStrangersServerIsNotTakenOverByItsName(t *testing.T) {
	w := newWorld(t, named, vmWith())
	w.cloud.Fail(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Taken, Op: "create server", Detail: "taken"}, false)
	w.mustPass()
	w.cloud.AddServers(cloud.Server{ID: "x", Name: "web", State: cloud.StateActive})
	w.later(settleTime)
	w.mustPass()
	w.later(settleTime)
	w.mustPass()
	equal(t, "vmId", "", w.vm().Status.VMID)
	w.wantSays(v1alpha1.NameCheckedCondition, "False Taken")
	w.remove()
	w.mustPass()
	w.wantGone()
	w.wantServers("x")
}

func TestAKeyThatWasUsedForAnotherSpecMeansThatAServerExists(t *testing.T) {
	w := open(t, everything, true)
	w.cloud.Hide("s1")
	w.edit(func(vm *v1alpha1.VM) { *vm.Spec.CPU = 8 })
	w.later(time.Second)
	w.mustPass()
	w.wantCalls("create web")
	w.wantSays(v1alpha1.CreatedCondition, "False OutcomeUnknown")
	w.cloud.Show("s1")
	w.later(time.Second)
	w.mustPass()
	w.mustPass()
	w.wantCalls("update s1")
	w.wantServers("s1")
	w.wantSays(v1alpha1.ReadyCondition, "True Running")
}

func TestAKeyThatWasUsedForAnotherSpecNeedsADecisionWhereNothingElseTells(t *testing.T) {
	w := open(t, profiles["a key alone"], true)
	w.edit(func(vm *v1alpha1.VM) { *vm.Spec.CPU = 8 })
	w.later(time.Second)
	w.wantAgain(external.RecheckSoon, w.mustPass())
	w.wantCalls("create web")
	w.wantSays(v1alpha1.StalledCondition, "True Ambiguous", "set the spec back", "spec.import.vmId")
	w.wantSays(v1alpha1.CreatedCondition, "False Ambiguous")

	w.edit(func(vm *v1alpha1.VM) { *vm.Spec.CPU = 2 })
	w.later(time.Second)
	w.mustPass()
	w.wantServers("s1")
	w.wantSays(v1alpha1.ReadyCondition, "True Running")
}
