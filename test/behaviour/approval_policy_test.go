package behaviour_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func TestApprovalPolicy(t *testing.T) {
	setUp := newT(t)
	root, err := testkit.ModuleRoot()
	setUp.Expect(err).NotTo(HaveOccurred())
	for _, component := range []string{"approval", "approval-four-eyes"} {
		policy := filepath.Join(root, "config", "components", component, "policy.yaml")
		kubectl(setUp, "", "apply", "-f", policy)
		t.Cleanup(func() {
			_, err := env.Kubectl(context.WithoutCancel(t.Context()), "", "delete", "--ignore-not-found", "-f", policy)
			setUp.Expect(err).NotTo(HaveOccurred())
		})
	}
	t.Run("who approves", approvalRights)
	t.Run("attempts to change a server without an approval", attemptsWithoutApproval)
}

// namespaceUser returns a client of a user who has these verbs for the kinds of the operator in a namespace.
func namespaceUser(t *T, namespace, name string, verbs ...string) client.Client {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{pcapi.GroupVersion.Group}, Resources: []string{"vms", "vmgroups", "vmgroups/scale", "vmsnapshots", "networks"}, Verbs: verbs,
	}}}
	t.Expect(env.Client.Create(t.Context(), role)).To(Succeed())
	t.Expect(env.Client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})).To(Succeed())
	config := rest.CopyConfig(env.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	c, err := client.New(config, client.Options{Scheme: env.Client.Scheme()})
	t.Expect(err).NotTo(HaveOccurred())
	return c
}

var editVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

func approvalRights(t *testing.T) {
	setUp := newT(t)
	f := newFixture(setUp, mockcloud.Options{})
	vm, g := f.createVM("web", approvedVM), f.createGroup("group", 2, approvedGroup)
	users := map[string]client.Client{
		"editor": namespaceUser(setUp, f.namespace, "editor", editVerbs...), "approver": namespaceUser(setUp, f.namespace, "approver", append([]string{"approve"}, editVerbs...)...),
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
	const fourEyes = "because you have the right to approve plans of"
	ofApprover := func() error {
		return users["approver"].Create(t.Context(), testkit.VM(f.namespace, "own", approvedVM), client.DryRunAll)
	}
	setUp.Eventually(ofApprover).Should(MatchError(ContainSubstring(fourEyes)), "the policy for four eyes is in effect")
	for _, o := range []client.Object{vm, g} {
		setUp.Expect(patch("editor", o, annotation("another"))).To(MatchError(ContainSubstring("approves a plan, for which you lack the right to approve")))
		setUp.Expect(patch("editor", o, off)).To(MatchError(ContainSubstring("spec.approval is Required, and you lack the right to approve")))
		setUp.Expect(patch("editor", o, `{"spec":{"approval":null}}`)).To(MatchError(ContainSubstring("spec.approval is Required")))
		setUp.Expect(patch("editor", o, `{"metadata":{"labels":{"a":"b"}}}`)).To(Succeed())
	}
	setUp.Expect(f.effects()).To(BeEmpty())
	created := testkit.VM(f.namespace, "other", approvedVM, func(vm *pcapi.VM) { vm.Annotations = map[string]string{pcapi.ApprovedPlanAnnotation: "x"} })
	setUp.Expect(users["editor"].Create(t.Context(), created, client.DryRunAll)).To(MatchError(ContainSubstring("approves a plan")))

	setUp.Expect(patch("approver", vm, annotation(get(setUp, vm).Status.Plan.Hash+" editor"))).To(MatchError(ContainSubstring("approves a plan for another user")))
	setUp.Expect(patch("approver", vm, annotation(get(setUp, vm).Status.Plan.Hash+" approver"))).To(Succeed())
	setUp.Expect(patch("approver", g, annotation(get(setUp, g).Status.Plan.Hash))).To(Succeed())
	setUp.Eventually(latest(vm)).Should(testkit.BeReady())
	setUp.Eventually(latest(g)).Should(testkit.BeReady(), "the operator may approve the plans of members")
	plan := get(setUp, vm).Status.Plan
	setUp.Expect(plan.ApprovedBy).To(Equal("approver"))
	setUp.Expect(plan.ApprovedTime.Time).To(BeTemporally("~", time.Now(), time.Minute))
	setUp.Eventually(eventReasons(vm)).Should(ContainElement(pcapi.PlanApprovedReason))
	setUp.Expect(get(setUp, g).Status.Plan.ApprovedBy).To(BeEmpty(), "the approval names nobody")
	var members pcapi.VMList
	setUp.Expect(env.Client.List(t.Context(), &members, client.InNamespace(f.namespace), client.HasLabels{pcapi.GroupLabel})).To(Succeed())
	for i := range members.Items {
		setUp.Expect(members.Items[i].Status.Plan.ApprovedBy).To(Equal("VmGroup/group"))
	}
	setUp.Expect(patch("approver", vm, `{"metadata":{"annotations":{"samplecontroller.k8s.io/delete-first":"true"}}}`)).To(MatchError(ContainSubstring(fourEyes)))
	setUp.Expect(users["approver"].DeleteAllOf(t.Context(), &pcapi.VM{}, client.InNamespace(f.namespace))).To(MatchError(ContainSubstring(fourEyes)))
	for _, o := range []client.Object{vm, g} {
		setUp.Expect(patch("approver", o, `{"spec":{"cpu":3}}`)).To(MatchError(ContainSubstring(fourEyes)))
		setUp.Expect(patch("approver", o, off)).To(MatchError(ContainSubstring(fourEyes)))
		setUp.Expect(users["approver"].Delete(t.Context(), o.DeepCopyObject().(client.Object))).To(MatchError(ContainSubstring(fourEyes)))
		setUp.Expect(patch("approver", o, `{"metadata":{"labels":{"a":"c"}}}`)).To(Succeed())
	}
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 1}}
	setUp.Expect(users["approver"].SubResource("scale").Update(t.Context(), g.DeepCopy(), client.WithSubResourceBody(scale))).To(MatchError(ContainSubstring(fourEyes)))
	setUp.Expect(users["approver"].Create(t.Context(), testkit.VM(f.namespace, "own", approvedVM))).To(MatchError(ContainSubstring(fourEyes)))
	setUp.Expect(users["approver"].Create(t.Context(), testkit.VM(f.namespace, "free"), client.DryRunAll)).To(Succeed())
	for user, refused := range map[string]bool{"editor": false, "approver": true} {
		for _, o := range []client.Object{testkit.VM(f.namespace, "generated", approvedVM), testkit.VmGroup(f.namespace, "generated")} {
			o.SetName("")
			o.SetGenerateName("generated-")
			err := users[user].Create(t.Context(), o, client.DryRunAll)
			setUp.Expect(err != nil).To(Equal(refused), "%s with generateName: %v", user, err)
		}
	}
	for _, change := range []string{`{"metadata":{"annotations":{"samplecontroller.k8s.io/deletion-protection":"true"}}}`, `{"metadata":{"labels":{"samplecontroller.k8s.io/revision":"x"}}}`} {
		setUp.Expect(patch("approver", vm, change)).To(MatchError(ContainSubstring(fourEyes)))
	}
	ofVMs := namespaceUser(setUp, f.namespace, "approver-of-vms", editVerbs...)
	setUp.Expect(env.Client.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "approves-vms"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{pcapi.GroupVersion.Group}, Resources: []string{"vms"}, Verbs: []string{"approve"},
	}}})).To(Succeed())
	setUp.Expect(env.Client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "approves-vms"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "approves-vms"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "approver-of-vms"}},
	})).To(Succeed())
	setUp.Expect(ofVMs.Create(t.Context(), testkit.VmGroup(f.namespace, "of-vms"), client.DryRunAll)).To(MatchError(ContainSubstring(fourEyes)), "who approves the plans of members changes no group")
	setUp.Expect(patch("editor", vm, `{"metadata":{"annotations":{"samplecontroller.k8s.io/approved-plan":null}}}`)).To(Succeed())
	setUp.Expect(patch("editor", vm, `{"metadata":{"finalizers":null}}`)).To(MatchError(ContainSubstring("has finalizers of the operator, and you lack the right to approve")))
	administrator := namespaceUser(setUp, f.namespace, "administrator", append([]string{"approve", "approve-for"}, editVerbs...)...)
	users["administrator"] = administrator
	setUp.Expect(patch("administrator", vm, off)).To(Succeed())
	setUp.Expect(patch("editor", vm, `{"spec":{"approval":"Required"}}`)).To(Succeed())
	setUp.Expect(patch("administrator", vm, off)).To(Succeed())
	setUp.Expect(patch("administrator", g, off)).To(Succeed())
}

// attemptsWithoutApproval has a user who may edit all objects of a namespace, and approve the plans of a VmGroup, try
// to have the operator change, stop, revert or delete the server of a VM whose plans only others may approve.
func attemptsWithoutApproval(t *testing.T) {
	setUp := newT(t)
	f := newFixture(setUp, mockcloud.Options{}, func(c *pcapi.Cloud) { c.Spec.Imports = pcapi.ImportPolicyAny })
	other := newFixture(setUp, mockcloud.Options{})
	eve := namespaceUser(setUp, f.namespace, "eve", editVerbs...)
	patch := func(t *T, o client.Object, text string) error {
		return eve.Patch(t.Context(), o.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(text)))
	}
	spec := func(text string) func(*T, *pcapi.VM) {
		return func(t *T, vm *pcapi.VM) { t.Expect(patch(t, vm, `{"spec":{`+text+`}}`)).To(Succeed()) }
	}
	refused := func(text string) func(*T, *pcapi.VM) {
		return func(t *T, vm *pcapi.VM) {
			t.Expect(patch(t, vm, text)).To(MatchError(ContainSubstring("the right to approve")))
		}
	}
	adopt := func(change ...func(*pcapi.VmGroup)) func(*T, *pcapi.VM) {
		return func(t *T, vm *pcapi.VM) {
			g := testkit.VmGroup(f.namespace, "g-"+vm.Name, append([]func(*pcapi.VmGroup){func(g *pcapi.VmGroup) {
				g.Spec.CloudRef, g.Spec.Replicas = &pcapi.CloudReference{Name: f.object.Name}, new(int32(0))
			}}, change...)...)
			t.Expect(eve.Create(t.Context(), g)).To(Succeed())
			adopted := get(t, vm)
			base := adopted.DeepCopy()
			adopted.OwnerReferences = []metav1.OwnerReference{{APIVersion: pcapi.GroupVersion.String(), Kind: "VmGroup", Name: g.Name, UID: g.UID, Controller: new(true)}}
			t.Expect(eve.Patch(t.Context(), adopted, client.MergeFrom(base))).To(Succeed())
			if g.Spec.Approval == pcapi.ApprovalRequired { // somebody who may approve the plans of the group alone does so
				t.Eventually(func() []string { return planned(get(t, g)) }).Should(ContainElement(ContainSubstring(vm.Name)), "the plan names the member")
				approve(t, g)
			}
		}
	}
	attempts := map[string]func(*T, *pcapi.VM){
		"size":                   spec(`"cpu":8`),
		"power-off":              spec(`"powerState":"Off"`),
		"restart":                spec(`"nextRestartTime":"2026-01-01T00:00:00Z"`),
		"tags":                   spec(`"tags":{"a":"b"}`),
		"policy-ended":           refused(`{"spec":{"approval":"NotRequired","cpu":8}}`),
		"policy-removed":         refused(`{"spec":{"approval":null,"powerState":"Off"}}`),
		"approved-by-the-editor": refused(`{"metadata":{"annotations":{"samplecontroller.k8s.io/approved-plan":"x"}}}`),
		"without-finalizer":      refused(`{"metadata":{"finalizers":null}}`),
		"claim-edited": func(t *T, vm *pcapi.VM) {
			t.Expect(patch(t, vm, `{"metadata":{"annotations":{"samplecontroller.k8s.io/claimed-uid":"x","samplecontroller.k8s.io/claimed-name":"x","samplecontroller.k8s.io/claimed-cloud":"x"}}}`)).To(Succeed())
		},
		"another-cloud": func(t *T, vm *pcapi.VM) {
			t.Expect(patch(t, vm, `{"spec":{"cloudRef":{"name":"`+other.object.Name+`"}}}`)).To(MatchError(ContainSubstring("cannot be changed")))
		},
		"deletion": func(t *T, vm *pcapi.VM) { t.Expect(eve.Delete(t.Context(), vm.DeepCopy())).To(Succeed()) },
		"deletion-orphans": func(t *T, vm *pcapi.VM) {
			spec(`"deletionPolicy":"Orphan"`)(t, vm)
			t.Expect(eve.Delete(t.Context(), vm.DeepCopy())).To(Succeed())
		},
		"deletion-by-a-group":                   adopt(),
		"deletion-by-a-group-whose-plan-counts": adopt(approvedGroup),
		"size-by-a-group":                       adopt(func(g *pcapi.VmGroup) { g.Spec.Replicas, g.Spec.CPU = new(int32(1)), pcapi.Cores(8) }),
		"deletion-of-a-group": func(t *T, vm *pcapi.VM) {
			adopt(func(g *pcapi.VmGroup) { g.Spec.Replicas = new(int32(1)) })(t, vm)
			t.Expect(eve.Delete(t.Context(), testkit.VmGroup(f.namespace, "g-"+vm.Name), client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		},
		"revert": func(t *T, vm *pcapi.VM) {
			snap := &pcapi.VMSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "s-" + vm.Name}, Spec: pcapi.VMSnapshotSpec{VMName: vm.Name}}
			t.Expect(eve.Create(t.Context(), snap)).To(Succeed())
			t.Eventually(latest(snap)).Should(testkit.BeReady())
			spec(`"currentSnapshotName":"`+snap.Name+`"`)(t, vm)
		},
		"a-copy": func(t *T, vm *pcapi.VM) {
			copied := get(t, vm)
			copied.ObjectMeta = metav1.ObjectMeta{Namespace: vm.Namespace, Name: "copy-" + vm.Name, Annotations: copied.Annotations, Finalizers: copied.Finalizers}
			copied.Spec.Approval, copied.Spec.CPU, copied.Spec.PowerState = "", pcapi.Cores(8), pcapi.PowerOff
			delete(copied.Annotations, pcapi.ApprovedPlanAnnotation)
			t.Expect(eve.Create(t.Context(), copied)).To(Succeed())
			t.Expect(eve.Delete(t.Context(), copied)).To(Succeed())
		},
		"an-import": func(t *T, vm *pcapi.VM) {
			t.Expect(eve.Create(t.Context(), testkit.VM(f.namespace, "import-"+vm.Name, func(i *pcapi.VM) {
				i.Spec.VMName, i.Spec.CloudRef, i.Spec.PowerState = vm.Spec.VMName, &pcapi.CloudReference{Name: f.object.Name}, pcapi.PowerOff
				i.Spec.Import = &pcapi.VMImport{VMID: get(t, vm).Status.VMID}
			}))).To(Succeed())
		},
	}
	vms, before := map[string]*pcapi.VM{}, map[string]mockcloud.Server{}
	for name := range attempts {
		vms[name] = f.createVM("prod-"+name, approvedVM)
	}
	for name, vm := range vms {
		setUp.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "ApprovalRequired"))
		approve(setUp, vm)
		setUp.Eventually(latest(vm)).Should(testkit.BeReady())
		server, err := f.serverOf(get(setUp, vm))()
		setUp.Expect(err).NotTo(HaveOccurred())
		before[name] = server
	}
	for name, try := range attempts {
		t.Run(name, func(t *testing.T) { try(newT(t), vms[name]) })
	}
	f.waitForPolls(5)
	for name, was := range before {
		is, exists := f.Server(was.ID)
		setUp.Expect(exists).To(BeTrue(), name)
		setUp.Expect(is).To(Equal(was), name)
	}
}
