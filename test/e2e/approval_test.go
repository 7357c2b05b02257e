package e2e_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	// developer may edit the objects of a namespace, with the ClusterRole edit of Kubernetes.
	developer = "team-developer"
	// approver has the ClusterRole approver-role and no other right.
	approver = "team-approver"
	// protected is the sample of a VM whose plans need an approval.
	protected = "config/samples/policies/vm_approved.yaml"
)

// approveAsTheApprover shows that a developer can plan for a VM whose changes need an approval, create it and
// delete it, and that nothing is done until the approver approves the plan.
func approveAsTheApprover(ctx context.Context) {
	GinkgoHelper()
	const policy = "config/components/approval/policy.yaml"
	kubectl(ctx, "apply", "-f", policy)
	DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "-f", policy) })
	for user, role := range map[string]string{developer: "edit", approver: "private-cloud-operator-approver-role"} {
		kubectl(ctx, "create", "rolebinding", user, "-n", samples, "--user="+user, "--clusterrole="+role)
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "rolebinding", user, "-n", samples) })
	}
	DeferCleanup(func(ctx SpecContext) {
		_, _ = tryKubectl(ctx, "", "patch", "-n", samples, "-f", protected, "--type=merge", "-p", `{"spec":{"approval":"NotRequired"}}`)
		kubectl(ctx, "delete", "-n", samples, "-f", protected, "--ignore-not-found", "--timeout=60s")
	})
	field := func(path string) func() (string, error) {
		return outputOf(ctx, "get", "vm", "ledger", "-n", samples, "--ignore-not-found", "-o", "jsonpath={"+path+"}")
	}
	approve := func(user string, more ...string) error {
		hash, err := field(".status.plan.hash")()
		if err == nil {
			_, err = tryKubectl(ctx, "", append([]string{"annotate", "vm/ledger", "-n", samples, "--overwrite", pcapi.ApprovedPlanAnnotation + "=" + hash, "--as", user}, more...)...)
		}
		return err
	}
	refused := MatchError(ContainSubstring("you lack the right to approve vms"))
	effects := func() []mockcloud.Op { return bundledMock.effects(ctx)["ledger"] }
	before := effects()

	planned, err := plugin(ctx, "plan", "-n", samples, "-f", protected, "--as", developer)
	Expect(err).To(MatchError(ContainSubstring("exit status 2")))
	Expect(planned).To(And(ContainSubstring("create ledger: cpu 1, memory 1Gi"), ContainSubstring("spec.approval is Required")))
	kubectl(ctx, "apply", "-n", samples, "-f", protected, "--as", developer)
	Eventually(field(".status.plan.phase")).Should(Equal("Pending"))
	// The API server takes a moment to enforce a new policy.
	Eventually(func() error { return approve(developer, "--dry-run=server") }).Should(refused)
	Expect(effects()).To(Equal(before), "nothing is created without an approval")
	Expect(approve(approver)).To(Succeed())
	kubectl(ctx, "wait", "--for=condition=Ready", "vm/ledger", "-n", samples, "--timeout=60s")
	created := slices.Concat(before, []mockcloud.Op{mockcloud.OpCreate})
	Expect(effects()).To(Equal(created))

	kubectl(ctx, "delete", "vm/ledger", "-n", samples, "--wait=false", "--as", developer)
	Eventually(field(".status.plan.changes[0].action")).Should(Equal("Delete"))
	Expect(approve(developer, "--dry-run=server")).To(refused)
	Expect(effects()).To(Equal(created), "nothing is deleted without an approval")
	Expect(approve(approver)).To(Succeed())
	Eventually(field(".metadata.name")).Should(BeEmpty())
}
