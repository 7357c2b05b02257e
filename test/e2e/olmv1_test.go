package e2e_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const (
	crdExtensions = "crd/clusterextensions.olm.operatorframework.io"
	extension     = "clusterextension/private-cloud-operator"
)

// hasOLMv1 reports whether the cluster has the kind ClusterExtension.
func hasOLMv1(ctx context.Context) bool {
	GinkgoHelper()
	return kubectl(ctx, "get", crdExtensions, "--ignore-not-found", "-o", "name") != ""
}

// waitInstalled waits for the version of the extension and for its pods: OLM v1 does
// not wait for pods.
func waitInstalled(ctx context.Context, version string) {
	GinkgoHelper()
	kubectl(ctx, "wait", extension, "--for=jsonpath={.status.install.bundle.version}="+version, "--timeout=5m")
	for _, deployment := range []string{manager, "deployment/" + bundledMock.service} {
		kubectl(ctx, "rollout", "status", deployment, "-n", operatorNamespace, "--timeout=120s")
	}
	Expect(kubectl(ctx, "get", manager, "-n", operatorNamespace, "-o", "jsonpath={.spec.template.spec.containers[0].image}")).To(ContainSubstring(":v" + version + "@sha256:"))
}

var _ = Describe("OLM v1", Ordered, long, func() {
	BeforeAll(func(ctx SpecContext) {
		if !hasOLMv1(ctx) {
			Skip("OLM v1 is not on this cluster: there is no " + crdExtensions)
		}
		removeLeftovers(ctx)
	})

	It("installs the version of a ClusterExtension from a ClusterCatalog", func(ctx SpecContext) {
		createOperatorNamespace(ctx, "restricted")
		kubectl(ctx, "create", "serviceaccount", "installer", "-n", operatorNamespace)
		kubectl(ctx, "create", "clusterrolebinding", "private-cloud-installer", "--clusterrole=cluster-admin", "--serviceaccount="+operatorNamespace+":installer")
		apply(ctx, fmt.Sprintf(`
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: private-cloud}
spec:
  source:
    type: Image
    image: {ref: "%[2]s-olmv1-catalog:v%[3]s"}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: private-cloud-operator}
spec:
  namespace: %[1]s
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog: {packageName: private-cloud-operator, channels: [stable], version: "%[4]s"}
`, operatorNamespace, images, version, previous))
		waitInstalled(ctx, previous)
	})

	It("makes the samples Ready", func(ctx SpecContext) {
		useDefaultCloud(ctx)
		applySamples(ctx)
		expectStalledName(ctx)
	})

	It("upgrades to the version of the extension and does not change servers", func(ctx SpecContext) {
		servers, effects := serversOfSamples(ctx), bundledMock.effects(ctx)
		kubectl(ctx, "patch", extension, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"source":{"catalog":{"version":%q}}}}`, version))
		waitInstalled(ctx, version)
		kubectl(ctx, "wait", "-n", samples, "--for=condition=Ready", "--timeout=120s", "vm/sample", "vm/database", "vm/web", "vm/standby")
		Expect(serversOfSamples(ctx)).To(Equal(servers))
		Expect(bundledMock.effects(ctx)).To(Equal(effects))
		removeSamples(ctx)
	})

	It("leaves nothing when it is removed after the objects", func(ctx SpecContext) {
		removeObjects(ctx)
		kubectl(ctx, "delete", extension, "--timeout=120s")
		kubectl(ctx, "delete", "clustercatalog/private-cloud", "clusterrolebinding/private-cloud-installer")
		expectNothingLeft(ctx)
	})
})
