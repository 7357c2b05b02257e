package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/mockcloud"
)

// makeHome makes the operator's namespace, with what PodSecurity enforces there.
func makeHome(ctx context.Context, podSecurity string) {
	GinkgoHelper()
	apply(ctx, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: %s}}}", home, podSecurity))
}

func csvOf(version string) string { return "csv/private-cloud-operator.v" + version }

func untilSucceeded(ctx context.Context, version string) {
	GinkgoHelper()
	Eventually(asks(ctx, "get", csvOf(version), "-n", home, "-o", "jsonpath={.status.phase}")).Should(Equal("Succeeded"))
}

// removeRemains removes what OLM leaves behind, as docs/install.md says.
func removeRemains(ctx context.Context) {
	GinkgoHelper()
	for name := range strings.FieldsSeq(kubectl(ctx, "get", "crds", "-o", "name")) {
		if strings.HasSuffix(name, ".samplecontroller.k8s.io") {
			kubectl(ctx, "delete", name)
		}
	}
	kubectl(ctx, "delete", "rolebinding", "-n", "kube-system", "private-cloud-operator-controller-manager-service-auth-reader", "--ignore-not-found")
	for name := range strings.FieldsSeq(kubectl(ctx, "get", "clusterroles", "-o", "name")) {
		if strings.Contains(name, "/private-cloud-operator-") {
			kubectl(ctx, "delete", name)
		}
	}
}

// removeObjects deletes what the operator has to finish, while it can.
func removeObjects(ctx context.Context) {
	GinkgoHelper()
	// Groups first: they would make deleted members again.
	kubectl(ctx, "delete", "vmgroups.samplecontroller.k8s.io", "--all", "-A", "--cascade=foreground", "--timeout=180s")
	kubectl(ctx, "delete", "vms.samplecontroller.k8s.io,networks.samplecontroller.k8s.io,gpuinfos.samplecontroller.k8s.io", "--all", "-A", "--timeout=180s")
	kubectl(ctx, "delete", "clouds", "--all", "--timeout=60s")
}

var _ = Describe("operator-sdk run bundle", Ordered, func() {
	BeforeAll(sweep)
	bundle := func(version string) string { return images + "-bundle:v" + version }
	It("installs the operator and a mock cloud, with nothing left to do", func(ctx SpecContext) {
		// What operator-sdk itself runs there is not restricted: its registry's init container says nothing of security.
		makeHome(ctx, "baseline")
		operatorSDK(ctx, "run", "bundle", bundle(previous), "-n", home, "--security-context-config=restricted", "--timeout=4m")
		untilSucceeded(ctx, previous)
		kubectl(ctx, "wait", "--for=condition=Ready", "cloud/default", "--timeout=60s")
	})

	It("makes the samples as they say, prints and tells them", func(ctx SpecContext) {
		applySamples(ctx)
		expectColumns(ctx)
		expectStory(ctx)
	})

	It("refuses a name that the cloud prohibits before it is stored, with a certificate of OLM", func(ctx SpecContext) {
		expectRefusedName(ctx)
	})

	It("passes scorecard: the six standard tests and our own", func(ctx SpecContext) {
		kubectl(ctx, "apply", "-k", "config/scorecard/rbac")
		output := operatorSDK(ctx, append([]string{
			"scorecard", filepath.Join(folder, previous, "bundle"), "-n", home, "-o", "json", "--wait-time=150s",
			"--pod-security=restricted", "--service-account=private-cloud-operator-scorecard",
		}, strings.Fields(os.Getenv("SCORECARD_FLAGS"))...)...)
		Expect(scorecard(output)).To(Equal(map[string]string{
			"basic-check-spec": "pass", "olm-bundle-validation": "pass", "olm-crds-have-validation": "pass", "olm-crds-have-resources": "pass",
			"olm-spec-descriptors": "pass", "olm-status-descriptors": "pass", "vm-lifecycle": "pass",
		}), output)
		kubectl(ctx, "delete", "-k", "config/scorecard/rbac")
	})

	It("is upgraded with VMs in flight: none is lost, made twice or restarted", func(ctx SpecContext) {
		openElsewhere(ctx)
		vms := newFleet(ctx, inFlight)
		vms.grow(ctx, 20)
		servers := serversOfSamples(ctx)
		done := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(done)
			operatorSDK(ctx, "run", "bundle-upgrade", bundle(version), "-n", home, "--security-context-config=restricted", "--timeout=4m")
		}()
		for working := true; working; {
			select {
			case <-done:
				working = false
			default:
				vms.grow(ctx, 1)
				kubectl(ctx, "get", "vms", "-n", vms.namespace)
			}
		}
		untilSucceeded(ctx, version)
		vms.grow(ctx, 5)
		vms.expectExactlyOne(ctx)
		vms.end(ctx)
		expectRefusedName(ctx)
		kubectl(ctx, "wait", "-n", samples, "--for=condition=Ready", "--timeout=120s", "vm/sample", "vm/database", "vm/web", "vm/standby")
		Expect(serversOfSamples(ctx)).To(Equal(servers), "the mock cloud beside the operator was upgraded, too, and has kept its servers")
	})

	It("removes the samples with their servers", func(ctx SpecContext) {
		removeSamples(ctx)
		for name, effects := range beside.effects(ctx) {
			Expect(effects).To(ContainElement(Or(Equal(mockcloud.OpDelete), Equal(mockcloud.OpDeleteNetwork))), "server or network %s", name)
		}
	})

	It("leaves nothing when it is cleaned up after the objects", func(ctx SpecContext) {
		removeObjects(ctx)
		operatorSDK(ctx, "cleanup", "private-cloud-operator", "-n", home, "--timeout=3m")
		removeRemains(ctx)
		expectNothingLeft(ctx)
	})
})

var _ = Describe("A catalog", Ordered, func() {
	BeforeAll(sweep)

	It("installs the version that a Subscription begins with, and upgrades it by itself", func(ctx SpecContext) {
		makeHome(ctx, "restricted")
		apply(ctx, fmt.Sprintf(`
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: private-cloud, namespace: %[1]s}
spec: {sourceType: grpc, image: "%[2]s-catalog:v%[3]s", displayName: Private cloud, grpcPodConfig: {securityContextConfig: restricted}}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: private-cloud, namespace: %[1]s}
spec: {}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: private-cloud, namespace: %[1]s}
spec:
  name: private-cloud-operator
  channel: stable
  source: private-cloud
  sourceNamespace: %[1]s
  startingCSV: private-cloud-operator.v%[4]s
  installPlanApproval: Automatic
`, home, images, version, previous))
		Eventually(asks(ctx, "get", "catalogsource", "private-cloud", "-n", home, "-o", "jsonpath={.status.connectionState.lastObservedState}")).Should(Equal("READY"))
		untilSucceeded(ctx, version)
		Expect(kubectl(ctx, "get", "installplan", "-n", home, "-o", "jsonpath={.items[*].spec.clusterServiceVersionNames}")).
			To(And(ContainSubstring(previous), ContainSubstring(version)), "it was there before, and was replaced")
	})

	It("brings what makes the samples Ready", func(ctx SpecContext) {
		kubectl(ctx, "wait", "--for=condition=Ready", "cloud/default", "--timeout=60s")
		applySamples(ctx)
		expectRefusedName(ctx)
		removeSamples(ctx)
	})

	It("leaves nothing when it is removed after the objects", func(ctx SpecContext) {
		removeObjects(ctx)
		kubectl(ctx, "delete", "subscription,csv,catalogsource,operatorgroup", "--all", "-n", home)
		removeRemains(ctx)
		expectNothingLeft(ctx)
	})
})
