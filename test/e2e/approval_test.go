package e2e_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
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
	field := func(path string) func() (string, error) {
		return outputOf(ctx, "get", "vm", "ledger", "-n", samples, "--ignore-not-found", "-o", "jsonpath={"+path+"}")
	}
	approve := func(user string, more ...string) error {
		hash, err := field(".status.plan.hash")()
		Expect(err).NotTo(HaveOccurred())
		_, err = tryKubectl(ctx, "", append([]string{"annotate", "vm/ledger", "-n", samples, "--overwrite", pcapi.ApprovedPlanAnnotation + "=" + hash, "--as", user}, more...)...)
		return err
	}

	planned, err := plugin(ctx, "plan", "-n", samples, "-f", protected, "--as", developer)
	Expect(err).To(MatchError(ContainSubstring("exit status 2")))
	Expect(planned).To(And(ContainSubstring("create ledger: cpu 1, memory 1Gi"), ContainSubstring("spec.approval is Required")))
	kubectl(ctx, "apply", "-n", samples, "-f", protected, "--as", developer)
	Eventually(field(".status.plan.phase")).Should(Equal("Pending"))
	// The API server takes a moment to enforce a new policy.
	Eventually(func() error { return approve(developer, "--dry-run=server") }).Should(MatchError(ContainSubstring("you lack the right to approve vms")))
	Expect(field(".status.vmId")()).To(BeEmpty())
	Expect(approve(approver)).To(Succeed())
	kubectl(ctx, "wait", "--for=condition=Ready", "vm/ledger", "-n", samples, "--timeout=60s")

	kubectl(ctx, "delete", "vm/ledger", "-n", samples, "--wait=false", "--as", developer)
	Eventually(field(".status.plan.changes[0].action")).Should(Equal("Delete"))
	Expect(approve(developer)).To(MatchError(ContainSubstring("you lack the right to approve vms")))
	Expect(approve(approver)).To(Succeed())
	Eventually(field(".metadata.name")).Should(BeEmpty())
}
