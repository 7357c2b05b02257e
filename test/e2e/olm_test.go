package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/mockcloud"
)

// createOperatorNamespace creates the operator's namespace with a pod security standard.
func createOperatorNamespace(ctx context.Context, podSecurity string) {
	GinkgoHelper()
	apply(ctx, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: %s}}}", operatorNamespace, podSecurity))
}

func csvOf(version string) string { return "csv/private-cloud-operator.v" + version }

func waitSucceeded(ctx context.Context, version string) {
	GinkgoHelper()
	Eventually(outputOf(ctx, "get", csvOf(version), "-n", operatorNamespace, "-o", "jsonpath={.status.phase}")).Should(Equal("Succeeded"))
}

// expectDigests checks that the pods run images that are named by digest, as the
// CSV lists them, and that the policies of the bundle are installed.
func expectDigests(ctx context.Context, version string) {
	GinkgoHelper()
	listed := strings.Fields(kubectl(ctx, "get", csvOf(version), "-n", operatorNamespace, "-o", "jsonpath={.spec.relatedImages[*].image}"))
	Expect(listed).To(HaveLen(4))
	Expect(listed).To(HaveEach(MatchRegexp(`:v` + regexp.QuoteMeta(version) + `@sha256:[0-9a-f]{64}$`)))
	running := strings.Fields(kubectl(ctx, "get", "deployments", "-n", operatorNamespace, "-l", "olm.owner=private-cloud-operator.v"+version,
		"-o", "jsonpath={.items[*].spec.template.spec.containers[*].image}"))
	Expect(running).To(HaveLen(2))
	Expect(listed).To(ContainElements(running))
	Expect(strings.Fields(kubectl(ctx, "get", "networkpolicies", "-n", operatorNamespace, "-o", "name"))).To(ContainElements(
		"networkpolicy.networking.k8s.io/private-cloud-operator-controller-manager",
		"networkpolicy.networking.k8s.io/private-cloud-operator-mock-cloud",
		"networkpolicy.networking.k8s.io/private-cloud-operator-webhook",
	))
}

// removeWhatOLMLeaves removes what OLM does not remove, as docs/install.md says.
func removeWhatOLMLeaves(ctx context.Context) {
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
	kubectl(ctx, "delete", "namespace", operatorNamespace, "--timeout=120s")
	removeClusterRolesOfOperatorGroup(ctx)
}

// removeClusterRolesOfOperatorGroup deletes the ClusterRoles of an OperatorGroup that is deleted. OLM, which updates them
// after a CSV is gone and repeats updates that failed, may create one again.
func removeClusterRolesOfOperatorGroup(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "delete", "clusterroles", "-l", "olm.owner.kind=OperatorGroup,olm.owner.namespace="+operatorNamespace)
}

// removeObjects deletes all objects with finalizers while the operator runs.
func removeObjects(ctx context.Context) {
	GinkgoHelper()
	// Groups first, since they replace deleted members.
	kubectl(ctx, "delete", "vmgroups.samplecontroller.k8s.io", "--all", "-A", "--cascade=foreground", "--timeout=180s")
	kubectl(ctx, "delete", "vmsnapshots.samplecontroller.k8s.io,vms.samplecontroller.k8s.io,networks.samplecontroller.k8s.io,gpuinfos.samplecontroller.k8s.io", "--all", "-A", "--timeout=180s")
	kubectl(ctx, "delete", "clouds", "--all", "--timeout=60s")
}

var _ = Describe("operator-sdk run bundle", Ordered, func() {
	BeforeAll(removeLeftovers)
	bundle := func(version string) string { return images + "-bundle:v" + version }
	It("installs the operator and a mock cloud without further steps", func(ctx SpecContext) {
		// The registry that operator-sdk runs there is not restricted: its init container has no security context.
		createOperatorNamespace(ctx, "baseline")
		operatorSDK(ctx, "run", "bundle", bundle(previous), "-n", operatorNamespace, "--security-context-config=restricted", "--timeout=4m")
		waitSucceeded(ctx, previous)
		useDefaultCloud(ctx)
	})

	It("runs images by digest, with the NetworkPolicies of the bundle", func(ctx SpecContext) {
		expectDigests(ctx, previous)
	})

	It("makes the samples Ready, with columns and events", func(ctx SpecContext) {
		applySamples(ctx)
		expectColumns(ctx)
		expectEvents(ctx)
	})

	It("refuses a prohibited name by the webhook, with a certificate of OLM", func(ctx SpecContext) {
		expectRefusedName(ctx)
	})

	It("refuses a Cloud without allowedNamespaces by the webhook", func(ctx SpecContext) {
		expectRefusedCloud(ctx)
	})

	It("passes the six standard tests of scorecard and the project's own", func(ctx SpecContext) {
		kubectl(ctx, "apply", "-k", "config/scorecard/rbac")
		output := operatorSDK(ctx, append([]string{
			"scorecard", filepath.Join(folder, previous, "bundle"), "-n", operatorNamespace, "-o", "json", "--wait-time=150s",
			"--pod-security=restricted", "--service-account=private-cloud-operator-scorecard",
		}, strings.Fields(os.Getenv("SCORECARD_FLAGS"))...)...)
		results := scorecard(output)
		Expect(results).To(HaveLen(7), output)
		for name, result := range results {
			if name == "olm-status-descriptors" { // a VMClass is nothing in a cloud that could be observed
				Expect(result).To(MatchRegexp(`^pass, but: vmclasses\.samplecontroller\.k8s\.io does not have status spec\.[^;]*$`))
				continue
			}
			Expect(result).To(Equal("pass"), name)
		}
		kubectl(ctx, "delete", "-k", "config/scorecard/rbac")
	})

	It("keeps exactly one server for each VM when it is upgraded while VMs are created", func(ctx SpecContext) {
		deploySeparateCloud(ctx)
		vms := newFleet(ctx, inFlight)
		vms.create(ctx, 20)
		servers := serversOfSamples(ctx)
		done := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(done)
			operatorSDK(ctx, "run", "bundle-upgrade", bundle(version), "-n", operatorNamespace, "--security-context-config=restricted", "--timeout=4m")
		}()
		for working := true; working; {
			select {
			case <-done:
				working = false
			default:
				vms.create(ctx, 1)
				kubectl(ctx, "get", "vms", "-n", vms.namespace)
			}
		}
		waitSucceeded(ctx, version)
		vms.create(ctx, 5)
		vms.expectExactlyOne(ctx)
		vms.remove(ctx)
		expectRefusedName(ctx)
		expectRefusedCloud(ctx)
		kubectl(ctx, "wait", "-n", samples, "--for=condition=Ready", "--timeout=120s", "vm/sample", "vm/database", "vm/web", "vm/standby")
		Expect(serversOfSamples(ctx)).To(Equal(servers), "the bundled mock cloud was upgraded, too, and kept its servers")
	})

	It("deletes the samples with their servers", func(ctx SpecContext) {
		removeSamples(ctx)
		for name, effects := range bundledMock.effects(ctx) {
			if effects[0] == mockcloud.OpCreateSnapshot { // it may go with its server
				continue
			}
			Expect(effects).To(ContainElement(Or(Equal(mockcloud.OpDelete), Equal(mockcloud.OpDeleteNetwork))), "server or network %s", name)
		}
	})

	It("leaves nothing when it is cleaned up after the objects", func(ctx SpecContext) {
		removeObjects(ctx)
		operatorSDK(ctx, "cleanup", "private-cloud-operator", "-n", operatorNamespace, "--timeout=3m")
		removeWhatOLMLeaves(ctx)
		expectNothingLeft(ctx, removeClusterRolesOfOperatorGroup)
	})
})

var _ = Describe("A catalog", Ordered, long, func() {
	BeforeAll(removeLeftovers)

	// The upgrade comes with a new catalog, as docs/install.md says. If one catalog had both versions, OLM would execute both
	// InstallPlans at once: the first could be the last to write the owner of a Service, which would go with the first CSV.
	It("installs the startingCSV of a Subscription and upgrades it automatically when the catalog is replaced", func(ctx SpecContext) {
		createOperatorNamespace(ctx, "restricted")
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
  startingCSV: private-cloud-operator.v%[3]s
  installPlanApproval: Automatic
`, operatorNamespace, images, previous))
		Eventually(outputOf(ctx, "get", "catalogsource", "private-cloud", "-n", operatorNamespace, "-o", "jsonpath={.status.connectionState.lastObservedState}")).Should(Equal("READY"))
		waitSucceeded(ctx, previous)
		Eventually(outputOf(ctx, "get", "installplan", "-n", operatorNamespace, "-o", "jsonpath={.items[*].status.phase}")).Should(Equal("Complete"))
		kubectl(ctx, "patch", "catalogsource", "private-cloud", "-n", operatorNamespace, "--type=merge",
			"-p", fmt.Sprintf(`{"spec":{"image":"%s-catalog:v%s"}}`, images, version))
		waitSucceeded(ctx, version)
		Expect(kubectl(ctx, "get", "installplan", "-n", operatorNamespace, "-o", "jsonpath={.items[*].spec.clusterServiceVersionNames}")).
			To(And(ContainSubstring(previous), ContainSubstring(version)), "the previous version was installed and replaced")
		expectDigests(ctx, version)
	})

	It("makes the samples Ready", func(ctx SpecContext) {
		useDefaultCloud(ctx)
		applySamples(ctx)
		expectRefusedName(ctx)
		removeSamples(ctx)
	})

	It("leaves nothing when it is removed after the objects", func(ctx SpecContext) {
		removeObjects(ctx)
		kubectl(ctx, "delete", "subscription,csv,catalogsource", "--all", "-n", operatorNamespace)
		removeWhatOLMLeaves(ctx)
		expectNothingLeft(ctx, removeClusterRolesOfOperatorGroup)
	})
})
