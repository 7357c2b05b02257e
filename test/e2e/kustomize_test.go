package e2e_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/api/v1alpha1"
)

const manager = "deployment/private-cloud-operator-controller-manager"

// leader is the pod that holds the lease.
func leader(ctx context.Context) (string, error) {
	holder, err := tryKubectl(ctx, "", "get", "lease", "private-cloud-operator.samplecontroller.k8s.io", "-n", home, "-o", "jsonpath={.spec.holderIdentity}")
	name, _, _ := strings.Cut(holder, "_")
	return name, err
}

var _ = Describe("Plain kustomize", Ordered, func() {
	BeforeAll(sweep)

	It("installs the operator and a mock cloud where PodSecurity restricted is enforced", func(ctx SpecContext) {
		_, err := run(ctx, "", "make", "--no-print-directory", "deploy", "OVERLAY=config/overlays/development", "VERSION="+version, "IMAGE_TAG_BASE="+images)
		Expect(err).NotTo(HaveOccurred())
		Expect(kubectl(ctx, "get", "namespace", home, "-o", `jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`)).To(Equal("restricted"))
		kubectl(ctx, "rollout", "status", manager, "-n", home, "--timeout=120s")
		kubectl(ctx, "wait", "--for=condition=Ready", "cloud/default", "--timeout=60s")
		applySamples(ctx)
		expectStalledName(ctx)
	})

	It("deletes groups in the foreground, and leaves the members of those that are orphaned", func(ctx SpecContext) {
		membersOf := func(group string) func() (string, error) {
			return asks(ctx, "get", "vms", "-n", samples, "-l", v1alpha1.GroupLabel+"="+group, "-o", "jsonpath={.items[*].metadata.ownerReferences}{range .items[*]}VM {end}")
		}
		kubectl(ctx, "delete", "vmgroup", "vmgroup-sample", "-n", samples, "--cascade=foreground", "--timeout=60s")
		Expect(membersOf("vmgroup-sample")()).To(BeEmpty())
		kubectl(ctx, "delete", "vmgroup", "workers", "-n", samples, "--cascade=orphan", "--timeout=60s")
		Expect(membersOf("workers")()).To(Equal("VM VM "), "two VMs, and nobody's")
		kubectl(ctx, "delete", "vms", "-n", samples, "-l", v1alpha1.GroupLabel+"=workers", "--timeout=60s")
		applySamples(ctx)
	})

	It("loses, doubles and restarts nothing when the leader's pod is deleted, of two", func(ctx SpecContext) {
		openElsewhere(ctx)
		kubectl(ctx, "scale", manager, "-n", home, "--replicas=2")
		kubectl(ctx, "rollout", "status", manager, "-n", home, "--timeout=120s")
		vms := newFleet(ctx, failover)
		vms.grow(ctx, 20)
		old, err := leader(ctx)
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "delete", "pod", old, "-n", home)
		vms.grow(ctx, 20)
		vms.expectExactlyOne(ctx)
		Expect(leader(ctx)).NotTo(Or(BeEmpty(), Equal(old)))
		vms.end(ctx)
	})

	It("takes its hands off when the mock cloud's pod is deleted, and with it every server", func(ctx SpecContext) {
		kubectl(ctx, "delete", "pod", "-n", home, "-l", "app.kubernetes.io/name=private-cloud-operator-mock-cloud")
		kubectl(ctx, "wait", "--for=condition=Braked", "cloud/default", "--timeout=120s")
		Expect(beside.effects(ctx)).To(BeEmpty(), "nothing was made in place of what vanished")
		snapshot := kubectl(ctx, "get", "cloud", "default", "-o", "jsonpath={.status.conditions[?(@.type=='Braked')].message}")
		acknowledge := snapshot[strings.Index(snapshot, "kubectl ")+len("kubectl "):]
		kubectl(ctx, strings.Fields(acknowledge)...)
		Eventually(asks(ctx, "get", "vm", "sample", "-n", samples, "-o", "jsonpath={.status.state}")).Should(Equal("Lost"))
		removeSamples(ctx)
		applySamples(ctx)
	})

	It("leaves nothing when it is removed after the objects", func(ctx SpecContext) {
		removeObjects(ctx)
		_, err := run(ctx, "", "make", "--no-print-directory", "undeploy", "OVERLAY=config/overlays/development")
		Expect(err).NotTo(HaveOccurred())
		expectNothingLeft(ctx)
	})
})
