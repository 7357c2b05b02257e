package e2e_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/mockcloud"
)

// helm runs helm for the release private-cloud-operator of the chart.
func helm(ctx context.Context, verb string, args ...string) {
	GinkgoHelper()
	args = append([]string{verb, "private-cloud-operator", "-n", operatorNamespace, "--wait", "--timeout=120s"}, args...)
	_, err := run(ctx, "", "bin/helm", args...)
	Expect(err).NotTo(HaveOccurred())
}

// helmInstall installs the version under test.
func helmInstall(ctx context.Context) {
	GinkgoHelper()
	helm(ctx, "install", "charts/private-cloud-operator", "--set", "image.repository="+images+",image.tag=v"+version)
}

var _ = Describe("The Helm chart", Ordered, func() {
	BeforeAll(removeLeftovers)
	var vms *fleet

	It("installs the operator in a namespace that enforces the standard restricted", func(ctx SpecContext) {
		createOperatorNamespace(ctx, "restricted")
		helmInstall(ctx)
		deploySeparateCloud(ctx)
		vms = newFleet(ctx, failover)
		vms.create(ctx, 3)
		vms.expectExactlyOne(ctx)
	})

	It("changes the operator and no server when a value is changed", func(ctx SpecContext) {
		helm(ctx, "upgrade", "charts/private-cloud-operator", "--reuse-values", "--set", "logLevel=debug,replicas=1")
		Expect(kubectl(ctx, "get", manager, "-n", operatorNamespace, "-o", "jsonpath={.spec.replicas} {.spec.template.spec.containers[0].args}")).
			To(MatchRegexp(`^1 .*"--zap-log-level=debug"`))
		vms.expectExactlyOne(ctx)
	})

	It("keeps VMs with their servers when it is uninstalled, and continues when it is installed again", func(ctx SpecContext) {
		helm(ctx, "uninstall", "--cascade=foreground")
		Expect(kubectl(ctx, "get", "pods", "-n", operatorNamespace, "-o", "name")).To(BeEmpty(), "the operator is gone")
		vms.expectExactlyOne(ctx)
		deleted := vms.names[0]
		kubectl(ctx, "delete", "vm", deleted, "-n", failover, "--wait=false")
		helmInstall(ctx)
		kubectl(ctx, "wait", "--for=delete", "vm/"+deleted, "-n", failover, "--timeout=60s")
		Expect(separateMock.effects(ctx)[deleted]).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpDelete}))
		vms.remove(ctx)
	})

	It("leaves the CRDs when it is uninstalled after the objects, and nothing else", func(ctx SpecContext) {
		removeObjects(ctx)
		helm(ctx, "uninstall")
		crds := strings.Fields(kubectl(ctx, "get", "crds", "-l", "app.kubernetes.io/instance=private-cloud-operator", "-o", "name"))
		Expect(crds).To(HaveLen(8))
		kubectl(ctx, append([]string{"delete", "--timeout=60s"}, crds...)...)
		expectNothingLeft(ctx)
	})
})
