package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/mockcloud"
)

// autoscaled is the namespace of a group that an autoscaler scales.
const autoscaled = "autoscaled"

// overlay applies or deletes an overlay of the version under test with make.
func overlay(ctx context.Context, verb, name string) {
	GinkgoHelper()
	_, err := run(ctx, "", "make", "--no-print-directory", verb, "OVERLAY=config/overlays/"+name, "VERSION="+version, "IMAGE_TAG_BASE="+images)
	Expect(err).NotTo(HaveOccurred())
}

// members returns the ids of the servers of all VMs of a namespace.
func members(ctx context.Context, namespace string) []string {
	GinkgoHelper()
	return strings.Fields(kubectl(ctx, "get", "vms", "-n", namespace, "-o", "jsonpath={.items[*].status.vmId}"))
}

// total counts the operations of the separate cloud since it was deployed.
func total(ctx context.Context) map[mockcloud.Op]int {
	GinkgoHelper()
	count := map[mockcloud.Op]int{}
	for _, ops := range separateMock.effects(ctx) {
		for _, op := range ops {
			count[op]++
		}
	}
	return count
}

var _ = Describe("A HorizontalPodAutoscaler of a VmGroup", Ordered, long, func() {
	BeforeAll(removeLeftovers)
	var busy []string
	// use sets the CPU use that the cloud reports of the first members.
	use := func(ctx context.Context, percent int) {
		GinkgoHelper()
		for _, id := range busy {
			separateMock.call(ctx, http.MethodPatch, "/admin/servers/"+id, map[string]int{"cpuUtilization": percent}, nil)
		}
	}
	waitForMembers := func(ctx context.Context, n string) {
		GinkgoHelper()
		Eventually(outputOf(ctx, "get", "vmgroup", "web", "-n", autoscaled, "-o", "jsonpath={.spec.replicas} {.status.replicas} {.status.readyReplicas}")).
			Should(Equal(n + " " + n + " " + n))
	}

	It("finds the metrics API when the overlay is applied beside the operator", func(ctx SpecContext) {
		overlay(ctx, "deploy", "development")
		overlay(ctx, "deploy", "autoscaling")
		for _, deployment := range []string{"controller-manager", "metrics-api"} {
			kubectl(ctx, "rollout", "status", "deployment/private-cloud-operator-"+deployment, "-n", operatorNamespace, "--timeout=120s")
		}
		kubectl(ctx, "wait", "--for=condition=Available", "apiservice/v1beta1.custom.metrics.k8s.io", "apiservice/v1beta2.custom.metrics.k8s.io", "--timeout=60s")
	})

	It("scales the group to minReplicas while there is no load", func(ctx SpecContext) {
		deploySeparateCloud(ctx)
		separateMock.call(ctx, http.MethodPatch, "/admin/behaviour", map[string]string{"utilisation": "fixed:0"}, nil)
		Expect(cluster.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: autoscaled}})).To(Succeed())
		apply(ctx, fmt.Sprintf(`
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VmGroup
metadata: {name: web, namespace: %[1]s}
spec: {cpu: 2, cloudRef: {name: %[2]s}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: %[1]s}
spec:
  scaleTargetRef: &web {apiVersion: samplecontroller.k8s.io/v1alpha1, kind: VmGroup, name: web}
  minReplicas: 2
  maxReplicas: 6
  metrics:
  - type: Object
    object:
      describedObject: *web
      metric: {name: cpu_utilization_sum}
      target: {type: AverageValue, averageValue: "50"}
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
`, autoscaled, separateCloud))
		waitForMembers(ctx, "2")
		kubectl(ctx, "wait", "--for=condition=ScalingActive", "hpa/web", "-n", autoscaled, "--timeout=60s")
		busy = members(ctx, autoscaled)
	})

	It("scales up by what the load needs, and no further while new members are being built", func(ctx SpecContext) {
		// Longer than the autoscaler's period, so that it reads the metric while they are being built.
		separateMock.call(ctx, http.MethodPatch, "/admin/behaviour", map[string]string{"buildTime": "20s"}, nil)
		use(ctx, 90)
		waitForMembers(ctx, "4")
		Expect(total(ctx)).To(Equal(map[mockcloud.Op]int{mockcloud.OpCreate: 4}), "two members with 90 % are four with 45 %, below 50 %")
	})

	It("scales down after the load", func(ctx SpecContext) {
		use(ctx, 10)
		waitForMembers(ctx, "2")
		Eventually(func() map[mockcloud.Op]int { return total(ctx) }).Should(Equal(map[mockcloud.Op]int{mockcloud.OpCreate: 4, mockcloud.OpDelete: 2}))
		Expect(members(ctx, autoscaled)).To(ConsistOf(busy), "the newest go first")
	})

	It("leaves nothing when it is removed", func(ctx SpecContext) {
		kubectl(ctx, "delete", "hpa,vmgroups", "--all", "-n", autoscaled, "--timeout=60s")
		removeObjects(ctx)
		overlay(ctx, "undeploy", "autoscaling")
		overlay(ctx, "undeploy", "development")
		kubectl(ctx, "delete", "namespace", autoscaled, "--timeout=120s")
		expectNothingLeft(ctx)
	})
})
