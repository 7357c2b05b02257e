package behaviour_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// claimPolicyLabels are the labels of namespaces in which VMs are created with their claim.
var claimPolicyLabels = map[string]string{"claim-at-creation": "enabled"}

func TestClaimAtCreation(t *testing.T) {
	setUp := newT(t)
	remove, err := env.ClaimAtCreation(t.Context(), claimPolicyLabels)
	setUp.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { setUp.Expect(remove(context.WithoutCancel(t.Context()))).To(Succeed()) })
	f := newClaimFixture(setUp, mockcloud.Options{})
	setUp.Eventually(func() []string { return f.created().Finalizers }).ShouldNot(BeEmpty(), "the policy is in effect")
	claimPolicyCases.run(t)
}

func newClaimFixture(t *T, options mockcloud.Options, change ...func(*pcapi.Cloud)) *fixture {
	t.Helper()
	f := newFixture(t, options, change...)
	f.namespace = newNamespace(t, claimPolicyLabels)
	return f
}

// created returns a VM on the cloud of the fixture as the API server stores it, without
// storing it.
func (f *fixture) created(change ...func(*pcapi.VM)) *pcapi.VM {
	f.t.Helper()
	change = append([]func(*pcapi.VM){func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: f.object.Name} }}, change...)
	var vm *pcapi.VM
	f.t.Eventually(func() error { // the policy knows a kind only a moment after its CRD was created
		vm = testkit.VM(f.namespace, "web", change...)
		return env.Client.Create(f.t.Context(), vm, client.DryRunAll)
	}).Should(Succeed())
	return vm
}

// claimed matches the VM that was created with its claim on a Cloud.
func claimed(cloud string) types.GomegaMatcher {
	return SatisfyAll(
		HaveField("Finalizers", ContainElement(pcapi.VMFinalizer)),
		HaveField("Annotations", And(HaveKeyWithValue(pcapi.ClaimedNameAnnotation, "web"), HaveKeyWithValue(pcapi.ClaimedCloudAnnotation, cloud))),
	)
}

// unclaimed matches a VM that was created without a claim.
func unclaimed() types.GomegaMatcher {
	return SatisfyAll(HaveField("Finalizers", BeEmpty()), HaveField("Annotations", Not(HaveKey(pcapi.ClaimedNameAnnotation))))
}

var claimPolicyCases = cases{
	"cloud with keys and labels: a VM's life takes two writes and four calls": func(t *T) {
		f := newClaimFixture(t, mockcloud.Options{})
		t.Eventually(func() []string { return f.created().Finalizers }).ShouldNot(BeEmpty(), "the API server has seen what the Cloud can do")
		f.stayWithin(2, "Created", "Deleted")
	},

	"cloud with keys and labels that is seldom listed: the VM is created before the next listing": func(t *T) {
		f := newClaimFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) { c.Spec.PollInterval = metav1.Duration{Duration: time.Hour} })
		f.ResetCalls()
		f.readyVM("web")
		t.Expect(f.CountCalls("GET", "/servers")).To(BeZero())
	},

	"finalizers and annotations of the user: they stay": func(t *T) {
		f := newClaimFixture(t, mockcloud.Options{})
		vm := f.created(func(vm *pcapi.VM) {
			vm.Finalizers, vm.Annotations = []string{"example.com/mine"}, map[string]string{"example.com/team": "shop"}
		})
		t.Expect(vm).To(claimed(f.object.Name))
		t.Expect(vm).To(SatisfyAll(HaveField("Finalizers", ContainElement("example.com/mine")), HaveField("Annotations", HaveKeyWithValue("example.com/team", "shop"))))
	},

	"cloud without keys or without labels: the VM is created without a claim": func(t *T) {
		for _, options := range []mockcloud.Options{without(mockcloud.Idempotency), without(mockcloud.Labels), {Profile: mockcloud.Core}} {
			t.Expect(newClaimFixture(t, options).created()).To(unclaimed())
		}
	},

	"VM that imports a server, or that waits for a Network: it is created without a claim": func(t *T) {
		f := newClaimFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) { c.Spec.Imports = pcapi.ImportPolicyAny })
		t.Expect(f.created(func(vm *pcapi.VM) { vm.Spec.Import = &pcapi.VMImport{VMID: "x"} })).To(unclaimed())
		t.Expect(f.created(func(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: "net"} })).To(unclaimed())
		t.Expect(f.created(on("net"))).To(unclaimed())
	},

	"no cloudRef: the claim is on the default Cloud of the namespace": func(t *T) {
		f := newClaimFixture(t, mockcloud.Options{})
		byDefault := func(vm *pcapi.VM) { vm.Spec.CloudRef = nil }
		t.Expect(f.created(byDefault)).To(claimed(pcapi.DefaultCloudName))
		labels := maps.Clone(claimPolicyLabels)
		labels[pcapi.DefaultCloudLabel] = f.object.Name
		f.namespace = newNamespace(t, labels)
		t.Expect(f.created(byDefault)).To(claimed(f.object.Name))
	},

	"Cloud that does not exist: the VM is created without a claim": func(t *T) {
		f := newClaimFixture(t, mockcloud.Options{})
		t.Expect(f.created(func(vm *pcapi.VM) { vm.Spec.CloudRef.Name = "nowhere" })).To(unclaimed())
	},

	"Cloud that the namespace may not use: the VM is created as with one that does not exist": func(t *T) {
		requirement := func(key string, operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
		}
		const key = "claim-at-creation"
		f := newClaimFixture(t, mockcloud.Options{})
		t.Eventually(func() []string { return f.created().Finalizers }).ShouldNot(BeEmpty(), "the API server has seen what the Cloud can do")
		for name, tc := range map[string]struct {
			selector *metav1.LabelSelector
			allowed  bool
		}{
			"all":                         {&metav1.LabelSelector{}, true},
			"matchLabels":                 {&metav1.LabelSelector{MatchLabels: claimPolicyLabels}, true},
			"matchLabels, another value":  {&metav1.LabelSelector{MatchLabels: map[string]string{key: "no"}}, false},
			"matchLabels, another label":  {&metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, false},
			"In":                          {requirement(key, "In", "no", "enabled"), true},
			"In, another value":           {requirement(key, "In", "no"), false},
			"In, another label":           {requirement("team", "In", "enabled"), false},
			"In without values":           {requirement(key, "In"), false},
			"NotIn":                       {requirement(key, "NotIn", "no"), true},
			"NotIn, another label":        {requirement("team", "NotIn", "a"), true},
			"NotIn, the value":            {requirement(key, "NotIn", "no", "enabled"), false},
			"NotIn with an invalid value": {requirement(key, "NotIn", "a b"), false},
			"Exists":                      {requirement(key, "Exists"), true},
			"Exists, another label":       {requirement("team", "Exists"), false},
			"Exists with values":          {requirement(key, "Exists", "enabled"), false},
			"DoesNotExist":                {requirement("team", "DoesNotExist"), true},
			"DoesNotExist, the label":     {requirement(key, "DoesNotExist"), false},
			"an invalid key":              {requirement("a b", "DoesNotExist"), false},
			"an unknown operator":         {requirement(key, "Like", "enabled"), false},
			"labels match, expressions do not": {&metav1.LabelSelector{
				MatchLabels: claimPolicyLabels, MatchExpressions: requirement("team", "Exists").MatchExpressions,
			}, false},
		} {
			edit(t, f.object, func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = tc.selector })
			want := unclaimed()
			if tc.allowed {
				want = claimed(f.object.Name)
			}
			t.Eventually(func() *pcapi.VM { return f.created() }).Should(want, name)
			t.Consistently(func() *pcapi.VM { return f.created() }, "300ms").Should(want, name)
			selects, err := tenancy.Selects(t.Context(), env.Client, tc.selector, f.namespace)
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(selects).To(Equal(tc.allowed), "what the operator says: %s", name)
		}
	},

	"the name is prohibited: the VM is not created in the cloud and can be deleted": func(t *T) {
		f := newClaimFixture(t, mockcloud.Options{})
		vm := f.createVM("web", func(vm *pcapi.VM) { vm.Spec.VMName = "forbidden" })
		t.Eventually(latest(vm)).Should(testkit.HaveCondition("NameChecked", metav1.ConditionFalse, "Prohibited"))
		deleteObject(t, vm)
		t.Eventually(isGone(vm)).Should(BeTrue())
		t.Expect(f.createCalls()).To(BeZero())
	},

	"the VM is deleted at once: no server is left": func(t *T) {
		f := newClaimFixture(t, mockcloud.Options{})
		for i := range 20 {
			deleteObject(t, f.createVM(fmt.Sprintf("web-%d", i)))
		}
		t.Eventually(func() ([]pcapi.VM, error) {
			var list pcapi.VMList
			err := env.Client.List(t.Context(), &list, client.InNamespace(f.namespace))
			return list.Items, err
		}).Should(BeEmpty())
		t.Expect(f.Servers()).To(BeEmpty())
	},
}
