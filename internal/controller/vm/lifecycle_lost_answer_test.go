package vm

import (
	"errors"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

// harnessWithLostAnswer returns a harness with a VM whose create was sent and its answer
// lost. committed reports whether the create took effect.
func harnessWithLostAnswer(t *testing.T, caps cloud.Capabilities, committed bool) *harness {
	t.Helper()
	h := newHarness(t, caps, vmWith())
	h.cloud.Fail(cloudfake.CreateServer, errReset, committed)
	h.wantRequeue(time.Second, h.mustReconcile())
	h.wantCalls("check web", "create web")
	h.wantClaim("web")
	h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown", "does not answer", "may have been created all the same")
	h.wantCondition(pcapi.ReconcilingCondition, "True Progressing")
	return h
}

var profiles = map[string]cloud.Capabilities{
	"all capabilities": everything, "labels and names": withoutKeys, "labels alone": without(cloud.Idempotency, cloud.UniqueNames),
	"names alone": uniqueNamesOnly, "a key and labels": without(cloud.UniqueNames), "a key alone": without(cloud.Labels, cloud.UniqueNames), "a key and names": without(cloud.Labels),
}

func TestLostAnswerIsResolvedByLaterListing(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			h := harnessWithLostAnswer(t, caps, true)
			h.advance(time.Second)
			h.wantRequeue(external.Safety, h.mustReconcile())
			h.wantCalls()
			h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown")
			h.wantEnqueued()

			h.later(time.Second)
			h.wantEnqueued("a")
			h.mustReconcile()
			h.wantServers("s1")
			equal(t, "vmId", "s1", h.vm().Status.VMID)
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

func TestListingBegunBeforeCreateProvesNothing(t *testing.T) {
	h := harnessWithLostAnswer(t, everything, false)
	h.advance(-time.Second)
	h.poll()
	h.advance(2 * time.Second)
	h.wantRequeue(external.Safety, h.mustReconcile())
	h.wantCalls()
	h.later(time.Second)
	h.mustReconcile()
	h.wantCalls("create web")
}

func TestCreateIsRepeatedOnlyWhenSafe(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			h := harnessWithLostAnswer(t, caps, false)
			h.later(time.Second)
			h.mustReconcile()
			if caps.Has(cloud.Idempotency) {
				h.wantCalls("create web")
				h.wantServers("s1")
				return
			}
			h.wantCalls()
			h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown", "settleTime")
			h.advance(settleTime)
			h.mustReconcile()
			h.wantCalls()
			h.poll()
			h.wantEnqueued("a")
			h.mustReconcile()
			calls := []string{"create web"}
			if caps.Has(cloud.Labels) && caps.Has(cloud.UniqueNames) { // an unlabelled server that has the name by now may be the VM's
				calls = []string{"check web", "create web"}
			}
			h.wantCalls(calls...)
			h.wantServers("s1")
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

func TestLateServerIsAdoptedAtEndOfSettleTime(t *testing.T) {
	for name, caps := range profiles {
		if caps.Has(cloud.Idempotency) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			h := harnessWithLostAnswer(t, caps, true)
			h.cloud.Hide("s1")
			h.later(time.Second)
			h.mustReconcile()
			h.cloud.Show("s1")
			h.later(settleTime)
			h.mustReconcile()
			h.wantCalls()
			equal(t, "vmId", "s1", h.vm().Status.VMID)
			h.wantCondition(pcapi.CreatedCondition, "True Adopted")
		})
	}
}

func TestNewProcessWaitsForSettleTimeBeforeCreate(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			h := harnessWithLostAnswer(t, caps, true)
			h.cloud.Hide("s1")
			h.advance(time.Hour)
			h.start()
			h.connect()
			h.mustReconcile()
			if caps.Has(cloud.Idempotency) {
				h.wantCalls("create web")
			} else {
				h.wantCalls()
				h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown", "settleTime")
				h.cloud.Show("s1")
				h.later(time.Second)
				h.mustReconcile()
				h.wantCalls()
			}
			h.wantServers("s1")
			equal(t, "vmId", "s1", h.vm().Status.VMID)
		})
	}
}

func TestServerIsFoundWhenStatusWriteFailed(t *testing.T) {
	for name, caps := range profiles {
		for _, refusal := range []error{errConflict, errAPIAway} {
			for _, shown := range []bool{true, false} {
				t.Run(name+": "+refusal.Error(), func(t *testing.T) {
					h := newHarness(t, caps, vmWith())
					h.refuse["status"] = []error{refusal}
					if !caps.Has(cloud.Labels) {
						h.refuse["status"] = []error{nil, refusal} // the first write is the claim
					}
					_, _ = h.reconcile()
					want := ""
					if errors.Is(refusal, errConflict) {
						want = "s1" // only the metadata has changed: the status is sent again
					}
					equal(t, "vmId", want, h.vm().Status.VMID)
					h.wantCalls("check web", "create web")

					// The cloud's listing lags behind its own answer.
					if !shown {
						h.cloud.Hide("s1")
					}
					h.later(time.Second)
					_, _ = h.reconcile()
					h.wantServers("s1")
					h.wantClaim("web")
					h.cloud.Show("s1")
					h.later(time.Second)
					h.mustReconcile()
					h.wantServers("s1")
					equal(t, "vmId", "s1", h.vm().Status.VMID)
				})
			}
		}
	}
}

func TestDeletionDeletesUnrecordedServer(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith())
			h.refuse["status"] = []error{errAPIAway}
			_, _ = h.reconcile()
			h.cloud.Hide("s1")
			h.later(time.Second)
			h.remove()
			_, _ = h.reconcile()
			h.cloud.Show("s1")
			for range 4 {
				h.later(settleTime)
				_, _ = h.reconcile()
			}
			h.wantServers()
			h.wantGone()
		})
	}
}

// TestDeletionAfterRefusedCreateDoesNotWaitForSettleTime starts a new process, for which
// no create is open either.
func TestDeletionAfterRefusedCreateDoesNotWaitForSettleTime(t *testing.T) {
	h := newHarness(t, without(cloud.Idempotency, cloud.UniqueNames), vmWith())
	h.start()
	h.connect()
	h.cloud.Fail(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Rejected, Op: "create server", Detail: "no"}, false)
	h.mustReconcile()
	h.wantClaim("web")
	h.remove()
	h.mustReconcile()
	h.advance(time.Second)
	h.poll()
	h.mustReconcile()
	h.wantGone()
}

// TestDeletionFindsServerOfAnotherManager starts from a claim of another manager
// and a listing that is older than the server.
func TestDeletionFindsServerOfAnotherManager(t *testing.T) {
	h := newHarness(t, everything, vmWith(withClaim))
	h.later(settleTime + time.Minute)
	h.advance(time.Second)
	vm := h.vm()
	h.cloud.AddServers(cloud.Server{ID: "s7", Name: "web", State: cloud.StateActive, Labels: map[string]string{
		inventory.UIDLabel: string(vm.UID), inventory.ClusterLabel: "cluster", inventory.NamespaceLabel: "ns", inventory.NameLabel: "a",
	}})
	h.remove()
	h.mustReconcile()
	if _, ok := h.find(); !ok {
		t.Fatal("the finalizer was removed without a listing begun after the deletion")
	}
	h.poll()
	h.mustReconcile()
	h.wantGone()
	h.wantServers()
}

func TestDeletionAfterLostAnswerWaitsForSettleTime(t *testing.T) {
	for name, caps := range profiles {
		t.Run(name, func(t *testing.T) {
			h := harnessWithLostAnswer(t, caps, true)
			h.cloud.Hide("s1")
			h.remove()
			h.later(time.Second)
			h.mustReconcile()
			h.wantCalls()
			h.wantCondition(pcapi.DeletingCondition, "True Requested", "settleTime")

			h.cloud.Show("s1")
			h.later(time.Minute)
			h.mustReconcile()
			if !caps.Has(cloud.Labels) && !caps.Has(cloud.UniqueNames) {
				h.wantCalls()
				h.wantCondition(pcapi.DeletingCondition, "True Blocked", "VM s1")
				return
			}
			h.wantCalls("delete s1", "get s1")
			h.wantGone()
			h.wantServers()
		})
	}
}

func TestDeletionAfterLostAnswerEndsWhenNoServerIsListed(t *testing.T) {
	h := harnessWithLostAnswer(t, everything, false)
	h.remove()
	h.later(time.Second)
	h.mustReconcile()
	h.advance(settleTime)
	h.mustReconcile()
	if _, ok := h.find(); !ok {
		t.Fatal("the finalizer was removed without a listing begun after the settle time")
	}
	h.poll()
	h.mustReconcile()
	h.wantGone()
	h.wantCalls("check web")
}

func TestNameOfAnotherVMIsTakenWithUniqueNames(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith(), other("b", func(vm *pcapi.VM) {
		vm.Status.VMID, vm.Finalizers = "sb", []string{pcapi.VMFinalizer}
	}))
	h.cloud.AddServers(cloud.Server{ID: "sb", Name: "web", State: cloud.StateActive})
	h.poll()
	h.wantRequeue(time.Minute, h.mustReconcile())
	h.wantCalls()
	h.wantClaim("")
	h.wantCondition(pcapi.NameCheckedCondition, "False Taken", "another VM object")
	h.remove()
	h.mustReconcile()
	h.wantGone()
	h.wantServers("sb")
}

func TestTwoVMsShareNameWithoutUniqueNames(t *testing.T) {
	h := newHarness(t, withoutProofs, vmWith(), other("b", func(vm *pcapi.VM) {
		vm.Status.VMID, vm.Finalizers = "sb", []string{pcapi.VMFinalizer}
	}))
	h.cloud.AddServers(cloud.Server{ID: "sb", Name: "web", State: cloud.StateActive})
	h.poll()
	h.cloud.Fail(cloudfake.CreateServer, errReset, false)
	h.mustReconcile()
	h.later(settleTime)
	h.mustReconcile()
	h.wantServers("s1", "sb")
	equal(t, "vmId", "s1", h.vm().Status.VMID)
	h.wantCondition(pcapi.CreatedCondition, "True Created", "only a person can attribute")
}

func TestForeignServerOfSameNameIsNotAdopted(t *testing.T) {
	h := newHarness(t, uniqueNamesOnly, vmWith())
	h.cloud.Fail(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Taken, Op: "create server", Detail: "taken"}, false)
	h.mustReconcile()
	h.cloud.AddServers(cloud.Server{ID: "x", Name: "web", State: cloud.StateActive})
	h.later(settleTime)
	h.mustReconcile()
	h.later(settleTime)
	h.mustReconcile()
	equal(t, "vmId", "", h.vm().Status.VMID)
	h.wantCondition(pcapi.NameCheckedCondition, "False Taken")
	h.remove()
	h.mustReconcile()
	h.wantGone()
	h.wantServers("x")
}

func TestReusedKeyMeansServerExists(t *testing.T) {
	h := harnessWithLostAnswer(t, everything, true)
	h.cloud.Hide("s1")
	h.edit(func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(8) })
	h.later(time.Second)
	h.mustReconcile()
	h.wantCalls("create web")
	h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown")
	h.cloud.Show("s1")
	h.later(time.Second)
	h.mustReconcile()
	h.mustReconcile()
	h.wantCalls("update s1")
	h.wantServers("s1")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestReusedKeyIsAmbiguousWithoutLabelsAndNames(t *testing.T) {
	h := harnessWithLostAnswer(t, profiles["a key alone"], true)
	h.edit(func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(8) })
	h.later(time.Second)
	h.wantRequeue(external.RecheckSoon, h.mustReconcile())
	h.wantCalls("create web")
	h.wantCondition(pcapi.StalledCondition, "True Ambiguous", "set the spec back", "spec.import.vmId")
	h.wantCondition(pcapi.CreatedCondition, "False Ambiguous")

	h.edit(func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(2) })
	h.later(time.Second)
	h.mustReconcile()
	h.wantServers("s1")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}
