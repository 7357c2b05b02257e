package vm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
)

func needsApproval(vm *pcapi.VM) { vm.Spec.Approval = pcapi.ApprovalRequired }

// plan returns the plan in the status: its phase and its changes.
func (h *harness) plan() string {
	h.t.Helper()
	plan := h.vm().Status.Plan
	if plan == nil {
		return ""
	}
	parts := []string{string(plan.Phase)}
	for _, change := range plan.Changes {
		parts = append(parts, approval.Text(change))
	}
	return strings.Join(parts, "; ")
}

// approve approves the plan in the status, and returns its hash.
func (h *harness) approve() string {
	h.t.Helper()
	hash := h.vm().Status.Plan.Hash
	h.approveHash(hash)
	return hash
}

func (h *harness) approveHash(hash string) {
	h.t.Helper()
	vm := h.vm()
	if vm.Annotations == nil {
		vm.Annotations = map[string]string{}
	}
	vm.Annotations[pcapi.ApprovedPlanAnnotation] = hash
	if err := h.client.Update(h.t.Context(), vm); err != nil {
		h.t.Fatalf("Update: %v", err)
	}
}

// restart starts another process, which knows nothing of the one before.
func (h *harness) restart() {
	h.start()
	h.connect()
}

func TestCreateWaitsForApproval(t *testing.T) {
	h := newHarness(t, everything, vmWith(needsApproval))
	h.mustReconcile()
	h.wantCalls("check web")
	h.wantClaim("")
	h.wantCondition(pcapi.ReadyCondition, "False ApprovalRequired", "plan "+h.vm().Status.Plan.Hash+" waits for an approval: Create web", pcapi.ApprovedPlanAnnotation)
	h.wantCondition(pcapi.NameCheckedCondition, "True Available")
	equal(t, "plan", "Pending; Create web", firstWords(h.plan()))

	h.restart()
	writes := len(h.writes)
	h.mustReconcile()
	h.wantCalls("check web")
	equal(t, "writes without a change", writes, len(h.writes))

	h.approveHash("another")
	h.mustReconcile()
	h.wantServers()

	hash := h.approve()
	h.restart()
	h.mustReconcile()
	h.wantServers("s1")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	equal(t, "plan", "Applied; Create web", firstWords(h.plan()))
	equal(t, "hash", hash, h.vm().Status.Plan.Hash)
}

// withoutForecast is a kind whose forecast describes no step.
type withoutForecast struct{ *kind }

func (withoutForecast) Foresee(string, *pcapi.VM, *observation) ([]pcapi.PlannedChange, bool) {
	return nil, true
}

func TestStepThatNoForecastDescribesWaits(t *testing.T) {
	h := newHarness(t, everything, vmWith(needsApproval))
	h.kind.assemble("cluster", external.New(withoutForecast{h.kind}, func() *pcapi.VM { return &pcapi.VM{} }, func() *observation { return &observation{} }, h.kind.Options))
	h.reconciler = h.kind.Reconciler(h)
	h.mustReconcile()
	h.wantServers()
	h.wantCondition(pcapi.ReadyCondition, "False ApprovalRequired", "waits for an approval: Update web (step Claim)")
}

// firstWords returns a plan without the details of its changes.
func firstWords(plan string) string {
	text, _, _ := strings.Cut(plan, " (")
	return text
}

func TestApprovalHoldsForOnePlan(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(needsApproval, poweredOff), serverWith())
	h.mustReconcile()
	h.wantCalls()
	equal(t, "plan", "Pending; PowerOff web", h.plan())
	first := h.approve()
	h.mustReconcile()
	h.wantCalls("update s1")
	h.wantCondition(pcapi.ReadyCondition, "True Stopped")

	h.setServerState(cloud.StateActive) // somebody starts it
	h.later(time.Minute)
	h.mustReconcile()
	h.wantCalls()
	equal(t, "the same change again", "Pending; PowerOff web", h.plan())
	if h.vm().Status.Plan.Hash == first {
		t.Error("the hash of an applied plan approves another one")
	}
	h.restart()
	h.mustReconcile()
	h.wantCalls()

	h.setServerState(cloud.StateStopped) // somebody stops it again
	h.later(time.Minute)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Stopped")
	equal(t, "plan", "Obsolete; PowerOff web", h.plan())
}

func TestChangedPlanIsAskedForAgain(t *testing.T) {
	for name, change := range map[string]func(h *harness){
		"by an edit of the spec": func(h *harness) { h.edit(func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(8) }) },
		"by drift": func(h *harness) {
			h.setServerState(cloud.StateStopped)
			h.later(time.Minute)
		},
		"by a deletion": func(h *harness) { h.remove() },
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, everything, onRecord(needsApproval, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) }), serverWith(withCores(2)))
			h.mustReconcile()
			before := h.plan()
			hash := h.approve()
			change(h) // before the operator sees the approval
			h.mustReconcile()
			h.wantCalls()
			if h.plan() == before || h.vm().Status.Plan.Hash == hash || h.vm().Status.Plan.Phase != pcapi.PlanPending {
				t.Errorf("plan %s after %s", h.plan(), before)
			}
			h.approve()
			for range 4 {
				h.later(time.Minute)
				h.mustReconcile()
			}
			if len(h.cloud.TakeCalls(cloudfake.ListServers)) == 0 {
				t.Error("nothing was sent after the approval")
			}
		})
	}
}

// TestDriftWhileAPlanIsApplied has a change that fails, and drift before it is sent again.
func TestDriftWhileAPlanIsApplied(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(needsApproval, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) }), serverWith(withCores(2)))
	h.mustReconcile()
	h.approve()
	h.cloud.Fail(cloudfake.UpdateServer, errRefused, false)
	h.mustReconcile()
	h.wantCalls("update s1")
	equal(t, "plan", "Approved; Update web (cpu 2 to 4)", h.plan())

	h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.CPU = 3 })
	h.restart()
	h.later(time.Minute)
	h.mustReconcile()
	h.wantCalls()
	equal(t, "plan", "Pending; Update web (cpu 3 to 4)", h.plan())
}

func TestDeletionWaitsForApproval(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(needsApproval), serverWith())
	h.remove()
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.DeletingCondition, "True Blocked", "Delete web")
	h.approve()
	for range 5 {
		if _, exists := h.find(); exists {
			h.later(time.Minute)
			h.mustReconcile()
		}
	}
	h.wantGone()
	h.wantServers()
}

// TestStartAfterStopIsPartOfPlan has a change of a size that needs a stopped server.
func TestStartAfterStopIsPartOfPlan(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(needsApproval, func(vm *pcapi.VM) {
		vm.Spec.CPU, vm.Spec.UpdatePolicy = pcapi.Cores(4), pcapi.UpdatePolicyRestartAllowed
	}), serverWith(withCores(2)))
	h.cloud.SetNeedsStop(true)
	h.mustReconcile()
	equal(t, "plan", "Pending; Update web (cpu 2 to 4)", h.plan())
	h.approve()
	for range 6 {
		h.restart()
		h.later(time.Minute)
		h.mustReconcile()
	}
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	equal(t, "cores", 4, h.cloud.Server("s1").CPU)
	equal(t, "plan", "Applied; Update web (cpu 2 to 4)", h.plan())
}

func TestPlanWithoutApprovalPolicyIsObsolete(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(needsApproval, poweredOff), serverWith())
	h.mustReconcile()
	h.edit(func(vm *pcapi.VM) { vm.Spec.Approval = pcapi.ApprovalNotRequired })
	h.mustReconcile()
	h.wantCalls("update s1")
	equal(t, "phase", pcapi.PlanObsolete, h.vm().Status.Plan.Phase)
}

// TestNothingIsSentWithoutApproval has random edits, drift, failures, restarts and approvals of
// a VM. What changes the cloud is sent only while a plan is approved that the test approved.
func TestNothingIsSentWithoutApproval(t *testing.T) {
	sent := 0
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			h := newHarness(t, everything, vmWith(needsApproval))
			approved := map[string]bool{}
			for range 60 {
				_, exists := h.find()
				if !exists {
					break
				}
				switch n := random.IntN(12); {
				case n < 2:
					h.edit(func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(1 + random.Int32N(3)) })
				case n < 3:
					h.edit(func(vm *pcapi.VM) {
						vm.Spec.PowerState = []pcapi.PowerState{pcapi.PowerOn, pcapi.PowerOff}[random.IntN(2)]
					})
				case n < 4 && h.vm().Status.VMID != "":
					h.setServerState([]cloud.State{cloud.StateActive, cloud.StateStopped}[random.IntN(2)])
				case n < 5:
					h.restart()
				case n < 6:
					h.refuse["status"] = []error{errAPIAway}
				case n < 7:
					h.loseAnswer([]string{"status", "object"}[random.IntN(2)])
				case n < 10:
					if plan := h.vm().Status.Plan; plan != nil {
						approved[plan.Hash] = true
						h.approve()
					}
				case n == 11 && random.IntN(10) == 0:
					h.remove()
				}
				h.later(time.Minute)
				_, _ = h.reconcile()
				h.refuse, h.lost = map[string][]error{}, ""
				changing := slices.DeleteFunc(h.cloud.TakeCalls(cloudfake.ListServers), func(call string) bool {
					return strings.HasPrefix(call, "check") || strings.HasPrefix(call, "get")
				})
				if len(changing) == 0 {
					continue
				}
				sent += len(changing)
				vm, exists := h.find()
				if exists && (vm.Status.Plan == nil || !approved[vm.Status.Plan.Hash]) {
					t.Fatalf("sent %v with plan %s, which is not approved", changing, h.plan())
				}
			}
		})
	}
	if sent < 500 {
		t.Errorf("only %d changes were sent after approvals", sent)
	}
}
