package behaviour_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		t.Eventually(latest(g)).Should(waitsWith("PowerOn 1 member"))
		f.waitForPolls(2)
		t.Expect(f.effects()).To(HaveLen(3))
		approve(t, g)
		t.Eventually(latest(g)).Should(testkit.BeReady())

		edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Template = "debian-14" })
		t.Eventually(latest(g)).Should(waitsWith(create(3, "debian-14"), "Delete 3 members"))
		f.waitForPolls(2)
		t.Expect(f.effects()).To(HaveLen(4))
		approve(t, g)
		t.Eventually(latest(g)).Should(testkit.BeReady())
		t.Expect(f.Servers()).To(HaveLen(3))

		deleteObject(t, g)
		t.Eventually(latest(g)).Should(SatisfyAll(testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Blocked"), waitsWith("Delete 3 members")))
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
		t.Eventually(latest(g)).Should(waitsWith("Update 1 member (cpu 2 to 4)"))
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

func TestApprovalPolicy(t *testing.T) {
	setUp := newT(t)
	root, err := testkit.ModuleRoot()
	setUp.Expect(err).NotTo(HaveOccurred())
	policy := filepath.Join(root, "config", "components", "approval", "policy.yaml")
	kubectl(setUp, "", "apply", "-f", policy)
	t.Cleanup(func() {
		_, err := env.Kubectl(context.WithoutCancel(t.Context()), "", "delete", "--ignore-not-found", "-f", policy)
		setUp.Expect(err).NotTo(HaveOccurred())
	})
	f := newFixture(setUp, mockcloud.Options{})
	vm, g := f.createVM("web", approvedVM), f.createGroup("group", 2, approvedGroup)
	users := map[string]client.Client{}
	for user, verbs := range map[string][]string{"editor": {"create", "get", "patch", "update"}, "approver": {"approve", "create", "get", "patch", "update"}} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "approval-test-" + user}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{pcapi.GroupVersion.Group}, Resources: []string{"vms", "vmgroups"}, Verbs: verbs}}}
		setUp.Expect(env.Client.Create(t.Context(), role)).To(Succeed())
		binding := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}
		setUp.Expect(env.Client.Create(t.Context(), binding)).To(Succeed())
		t.Cleanup(func() { setUp.Expect(env.Client.Delete(context.WithoutCancel(t.Context()), role)).To(Succeed()) })
		config := rest.CopyConfig(env.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
		c, err := client.New(config, client.Options{Scheme: env.Client.Scheme()})
		setUp.Expect(err).NotTo(HaveOccurred())
		users[user] = c
	}
	setUp.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "ApprovalRequired"))
	setUp.Eventually(latest(g)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "ApprovalRequired"))
	patch := func(user string, o client.Object, patch string) error {
		return users[user].Patch(t.Context(), o.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	annotation := func(value string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, pcapi.ApprovedPlanAnnotation, value)
	}
	const off = `{"spec":{"approval":"NotRequired"}}`
	n := 0
	setUp.Eventually(func() error { n++; return patch("editor", vm, annotation(fmt.Sprint(n))) }).Should(MatchError(ContainSubstring("approves a plan, for which you lack the right to approve vms")), "the policy is in effect")
	for _, o := range []client.Object{vm, g} {
		setUp.Expect(patch("editor", o, annotation("another"))).To(MatchError(ContainSubstring("approves a plan, for which you lack the right to approve")))
		setUp.Expect(patch("editor", o, off)).To(MatchError(ContainSubstring("spec.approval is Required, and you lack the right to approve")))
		setUp.Expect(patch("editor", o, `{"spec":{"approval":null}}`)).To(MatchError(ContainSubstring("spec.approval is Required")))
		setUp.Expect(patch("editor", o, `{"metadata":{"labels":{"a":"b"}}}`)).To(Succeed())
	}
	setUp.Expect(f.effects()).To(BeEmpty())
	created := testkit.VM(f.namespace, "other", approvedVM, func(vm *pcapi.VM) { vm.Annotations = map[string]string{pcapi.ApprovedPlanAnnotation: "x"} })
	setUp.Expect(users["editor"].Create(t.Context(), created, client.DryRunAll)).To(MatchError(ContainSubstring("approves a plan")))

	setUp.Expect(patch("approver", vm, annotation(get(setUp, vm).Status.Plan.Hash))).To(Succeed())
	setUp.Expect(patch("approver", g, annotation(get(setUp, g).Status.Plan.Hash))).To(Succeed())
	setUp.Eventually(latest(vm)).Should(testkit.BeReady())
	setUp.Eventually(latest(g)).Should(testkit.BeReady(), "the operator may approve the plans of members")
	setUp.Expect(patch("editor", vm, `{"metadata":{"annotations":{"samplecontroller.k8s.io/approved-plan":null}}}`)).To(Succeed())
	setUp.Expect(patch("editor", vm, `{"metadata":{"finalizers":null}}`)).To(MatchError(ContainSubstring("has finalizers of the operator, and you lack the right to approve")))
	setUp.Expect(patch("approver", vm, off)).To(Succeed())
	setUp.Expect(patch("editor", vm, `{"spec":{"approval":"Required"}}`)).To(Succeed())
	setUp.Expect(patch("approver", vm, off)).To(Succeed())
	setUp.Expect(patch("approver", g, off)).To(Succeed())
}
