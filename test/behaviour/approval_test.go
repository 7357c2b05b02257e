package behaviour_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func approvedVM(vm *pcapi.VM) { vm.Spec.Approval = pcapi.ApprovalRequired }

func approvedGroup(g *pcapi.VmGroup) { g.Spec.Approval = pcapi.ApprovalRequired }

// waitsWith matches an object that waits for the approval of a plan with these changes.
func waitsWith(changes ...string) types.GomegaMatcher {
	return SatisfyAll(
		testkit.HaveCondition("Ready", metav1.ConditionFalse, "ApprovalRequired", pcapi.ApprovedPlanAnnotation),
		WithTransform(planned, Equal(append([]string{"Pending"}, changes...))),
	)
}

// planned returns the phase and the changes of the plan of an object.
func planned(object approval.Object) []string {
	_, plan := object.Approval()
	if plan == nil {
		return nil
	}
	texts := []string{string(plan.Phase)}
	for _, change := range plan.Changes {
		texts = append(texts, approval.Text(change))
	}
	return texts
}

// approve approves the plan of an object.
func approve[O approval.Object](t *T, object O) {
	t.Helper()
	_, plan := get(t, object).Approval()
	annotate(t, object, pcapi.ApprovedPlanAnnotation, plan.Hash)
}

// names returns the names of the three members of a group as a plan shows them.
func names(t *T, g *pcapi.VmGroup) string {
	t.Helper()
	members, err := membersOf(g)(t.Context())
	t.Expect(err).NotTo(HaveOccurred())
	sorted := make([]string, 0, len(members))
	for i := range members {
		sorted = append(sorted, members[i].Name)
	}
	slices.Sort(sorted)
	last := len(sorted) - 1
	return strings.Join(sorted[:last], ", ") + " and " + sorted[last]
}

func TestApproval(t *testing.T) { approvalCases.run(t) }

var approvalCases = cases{
	"VM that requires an approval: each plan waits for its own, and a deletion, too": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.createVM("web", approvedVM, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(2) })
		create := "Create web (cpu 2)"
		t.Eventually(latest(vm)).Should(waitsWith(create))
		f.waitForPolls(2)
		t.Expect(f.effects()).To(BeEmpty())
		approve(t, vm)
		t.Eventually(latest(vm)).Should(SatisfyAll(testkit.BeReady(), WithTransform(planned, Equal([]string{"Applied", create}))))

		edit(t, vm, powerOff)
		t.Eventually(latest(vm)).Should(waitsWith("PowerOff web"))
		edit(t, vm, func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) })
		t.Eventually(latest(vm)).Should(waitsWith("PowerOff web", "Update web (cpu 2 to 4)"))
		f.waitForPolls(2)
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate}))
		approve(t, vm)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Stopped"))

		deleteObject(t, vm)
		t.Eventually(latest(vm)).Should(SatisfyAll(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked", "Delete web"), waitsWith("Delete web")))
		f.waitForPolls(2)
		t.Expect(f.serversNamed("web")).To(HaveLen(1))
		approve(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.Servers()).To(BeEmpty())
	},

	"VM that is changed by hand, and requires an approval: the correction waits for it": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.createVM("web", approvedVM)
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "ApprovalRequired"))
		approve(t, vm)
		t.Eventually(latest(vm)).Should(testkit.BeReady())
		server, _ := f.serverOf(get(t, vm))()
		server.State, server.PowerState = mockcloud.StateStopped, mockcloud.PowerOff
		_, err := f.PutServer(server)
		t.Expect(err).NotTo(HaveOccurred())
		t.Eventually(latest(vm)).Should(waitsWith("PowerOn web"))
		f.waitForPolls(2)
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate}))
		approve(t, vm)
		t.Eventually(latest(vm)).Should(testkit.BeReady())
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpUpdate}))
	},

	"group that requires an approval: one holds for all members, also when they are replaced, drift and are deleted": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g := f.createGroup("web", 3, approvedGroup)
		create := func(n int, template string) string {
			count := fmt.Sprintf("%d members", n)
			return fmt.Sprintf("Create %s (cpu 2, memory 1Gi, template %s, folder %s)", count, template, f.namespace+"-web")
		}
		t.Eventually(latest(g)).Should(waitsWith(create(3, "debian-13")))
		f.waitForPolls(2)
		t.Expect(membersOf(g)(t.Context())).To(BeEmpty())
		t.Expect(f.effects()).To(BeEmpty())
		approve(t, g)
		t.Eventually(latest(g)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.Plan.Phase", pcapi.PlanApplied)))
		t.Expect(f.Servers()).To(HaveLen(3))

		members, err := membersOf(g)(t.Context())
		t.Expect(err).NotTo(HaveOccurred())
		server, _ := f.serverOf(&members[0])()
		server.State, server.PowerState = mockcloud.StateStopped, mockcloud.PowerOff
		_, err = f.PutServer(server)
		t.Expect(err).NotTo(HaveOccurred())
		t.Eventually(latest(g)).Should(waitsWith("PowerOn " + members[0].Name))
		f.waitForPolls(2)
		t.Expect(f.effects()).To(HaveLen(3))
		approve(t, g)
		t.Eventually(latest(g)).Should(testkit.BeReady())

		edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Template = "debian-14" })
		t.Eventually(latest(g)).Should(waitsWith(create(3, "debian-14"), "Delete "+names(t, g)))
		f.waitForPolls(2)
		t.Expect(f.effects()).To(HaveLen(4))
		approve(t, g)
		t.Eventually(latest(g)).Should(testkit.BeReady())
		t.Expect(f.Servers()).To(HaveLen(3))
		t.Eventually(func() string { return names(t, g) }).Should(MatchRegexp("^[^,]+, [^,]+ and [^,]+$"), "the former members are gone")

		deleteObject(t, g)
		t.Eventually(latest(g)).Should(SatisfyAll(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked"), waitsWith("Delete "+names(t, g))))
		f.waitForPolls(2)
		t.Expect(f.Servers()).To(HaveLen(3))
		approve(t, g)
		t.Eventually(isGone(g)).Should(BeTrue())
		t.Eventually(f.Servers).Should(BeEmpty())
	},

	"group gets the policy Required with a new size: its members have it at once, and nothing is resized before the approval": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, members := f.readyGroup("web", 1)
		edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Approval, g.Spec.CPU = pcapi.ApprovalRequired, pcapi.Cores(4) })
		t.Eventually(latest(g)).Should(waitsWith("Update " + members[0].Name + " (cpu 2 to 4)"))
		t.Expect(get(t, &members[0]).Spec.Approval).To(Equal(pcapi.ApprovalRequired))
		f.waitForPolls(2)
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate}))
		edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Approval = pcapi.ApprovalNotRequired })
		t.Eventually(latest(&members[0])).Should(waitsWith("Update "+members[0].Spec.VMName+" (cpu 2 to 4)"), "a group takes the policy from no VM")
		for i := range members {
			edit(t, &members[i], func(vm *pcapi.VM) { vm.Spec.Approval = pcapi.ApprovalNotRequired })
		}
		t.Eventually(latest(g)).Should(testkit.BeReady())
	},

	"VM that requires an approval is made the member of a group without one: nothing of it is sent": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		vm := f.readyVM("web")
		edit(t, vm, approvedVM)
		g := f.createGroup("thief", 0)
		edit(t, vm, func(vm *pcapi.VM) {
			t.Expect(controllerutil.SetControllerReference(g, vm, env.Client.Scheme())).To(Succeed())
		})
		t.Eventually(latest(vm)).Should(waitsWith("Delete web"))
		t.Expect(get(t, vm).Spec.Approval).To(Equal(pcapi.ApprovalRequired))
		f.waitForPolls(2)
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate}))
		approve(t, vm)
		t.Eventually(f.Servers).Should(BeEmpty())
	},
}
