package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const manager = "deployment/private-cloud-operator-controller-manager"

// leader returns the pod that holds the lease.
func leader(ctx context.Context) (string, error) {
	holder, err := tryKubectl(ctx, "", "get", "lease", "private-cloud-operator.samplecontroller.k8s.io", "-n", operatorNamespace, "-o", "jsonpath={.spec.holderIdentity}")
	name, _, _ := strings.Cut(holder, "_")
	return name, err
}

// drain removes all objects with the Job of config/drain/delete and the image under test, as
// docs/install.md says for another image.
func drain(ctx context.Context) {
	GinkgoHelper()
	const job = "job/private-cloud-operator-drain-delete"
	folder := GinkgoT().TempDir()
	base, err := filepath.Rel(folder, filepath.Join(root, "config", "drain", "delete"))
	Expect(err).NotTo(HaveOccurred())
	kustomization := fmt.Sprintf("resources: [%s]\nimages: [{name: ghcr.io/privatecloud/private-cloud-operator, newName: %s, newTag: v%s}]\n", base, images, version)
	Expect(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(kustomization), 0o600)).To(Succeed())
	kubectl(ctx, "apply", "-k", folder)
	printed := outputOf(ctx, "logs", job, "-n", operatorNamespace)
	Eventually(printed).Should(HaveSuffix("Nothing is left.\n"))
	kubectl(ctx, "wait", "--for=condition=Complete", job, "-n", operatorNamespace, "--timeout=30s")
	Expect(kubectl(ctx, "get", "vmsnapshots,vmgroups,vms,networks.samplecontroller.k8s.io,gpuinfos,clouds", "-A", "-o", "name")).To(BeEmpty())
	kubectl(ctx, "delete", "-k", folder)
}

var _ = Describe("Plain kustomize", Ordered, func() {
	BeforeAll(removeLeftovers)

	It("installs the operator and a mock cloud in a namespace that enforces the standard restricted", func(ctx SpecContext) {
		_, err := run(ctx, "", "make", "--no-print-directory", "deploy", "OVERLAY=config/overlays/development", "VERSION="+version, "IMAGE_TAG_BASE="+images)
		Expect(err).NotTo(HaveOccurred())
		Expect(kubectl(ctx, "get", "namespace", operatorNamespace, "-o", `jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`)).To(Equal("restricted"))
		kubectl(ctx, "rollout", "status", manager, "-n", operatorNamespace, "--timeout=120s")
		useDefaultCloud(ctx)
		applySamples(ctx)
		expectStalledName(ctx)
	})

	It("deletes a group in the foreground with its members, and keeps the members of an orphaned group", func(ctx SpecContext) {
		membersOf := func(group string) func() (string, error) {
			return outputOf(ctx, "get", "vms", "-n", samples, "-l", pcapi.GroupLabel+"="+group, "-o", "jsonpath={.items[*].metadata.ownerReferences}{range .items[*]}VM {end}")
		}
		kubectl(ctx, "delete", "vmgroup", "vmgroup-sample", "-n", samples, "--cascade=foreground", "--timeout=60s")
		Expect(membersOf("vmgroup-sample")()).To(BeEmpty())
		kubectl(ctx, "delete", "vmgroup", "workers", "-n", samples, "--cascade=orphan", "--timeout=60s")
		Expect(membersOf("workers")()).To(Equal("VM VM "), "two VMs without an owner")
		kubectl(ctx, "delete", "vms", "-n", samples, "-l", pcapi.GroupLabel+"=workers", "--timeout=60s")
		applySamples(ctx)
	})

	It("keeps exactly one server for each VM when the pod of the leader is deleted", func(ctx SpecContext) {
		deploySeparateCloud(ctx)
		kubectl(ctx, "scale", manager, "-n", operatorNamespace, "--replicas=2")
		kubectl(ctx, "rollout", "status", manager, "-n", operatorNamespace, "--timeout=120s")
		vms := newFleet(ctx, failover)
		vms.create(ctx, 20)
		old, err := leader(ctx)
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "delete", "pod", old, "-n", operatorNamespace)
		vms.create(ctx, 20)
		vms.expectExactlyOne(ctx)
		Expect(leader(ctx)).NotTo(Or(BeEmpty(), Equal(old)))
		vms.remove(ctx)
	})

	It("answers the kubectl plugin through a forwarded port, of two replicas", func(ctx SpecContext) {
		askThroughAForwardedPort(ctx)
		runLocalCommands(ctx)
	})

	It("makes no change of a VM that requires an approval before the approver approves it", func(ctx SpecContext) {
		approveAsTheApprover(ctx)
	})

	It("stops with the brake when the pod of the mock cloud is deleted with every server", func(ctx SpecContext) {
		kubectl(ctx, "delete", "pod", "-n", operatorNamespace, "-l", "app.kubernetes.io/name=private-cloud-operator-mock-cloud")
		kubectl(ctx, "wait", "--for=condition=Braked", "cloud/default", "--timeout=120s")
		Expect(bundledMock.effects(ctx)).To(BeEmpty(), "nothing was created in place of what vanished")
		// VMs that are younger than settleTime do not count: they can set the brake again.
		Eventually(func() string {
			message := kubectl(ctx, "get", "cloud", "default", "-o", "jsonpath={.status.conditions[?(@.type=='Braked')].message}")
			if _, acknowledge, braked := strings.Cut(message, "kubectl "); braked {
				kubectl(ctx, strings.Fields(acknowledge)...)
			}
			return kubectl(ctx, "get", "vm", "sample", "-n", samples, "-o", "jsonpath={.status.state}")
		}).Should(Equal("Lost"))
		removeSamples(ctx)
		applySamples(ctx)
	})

	It("leaves nothing when it is removed after the Job of the drain", func(ctx SpecContext) {
		drain(ctx)
		_, err := run(ctx, "", "make", "--no-print-directory", "undeploy", "OVERLAY=config/overlays/development")
		Expect(err).NotTo(HaveOccurred())
		expectNothingLeft(ctx)
	})
})
