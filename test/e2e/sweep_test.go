package e2e_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// kinds are those of the cluster as a whole that something of the operator may
// be among. What would bring others back is first.
func kinds(ctx context.Context) string {
	GinkgoHelper()
	kinds := "validatingwebhookconfiguration,crd,clusterrole,clusterrolebinding,namespace"
	if hasOLMv1(ctx) {
		kinds = "clusterextension,clustercatalog," + kinds
	}
	return kinds
}

// ours tells by its name whether something of the cluster is there because of these tests.
func ours(name string) bool {
	_, name, _ = strings.Cut(name, "/")
	return strings.Contains(name, "private-cloud") || strings.Contains(name, "samplecontroller.k8s.io") ||
		name == elsewhere || name == inFlight || name == failover || name == autoscaled
}

// left names what is there of the operator.
func left(ctx context.Context) []string {
	GinkgoHelper()
	var found []string
	for name := range strings.FieldsSeq(kubectl(ctx, "get", kinds(ctx), "-o", "name")) {
		if ours(name) {
			found = append(found, name)
		}
	}
	// Their names are Kubernetes', and another server's perhaps. Without a server, no namespace can be deleted.
	services := kubectl(ctx, "get", "apiservices", "-l", "app.kubernetes.io/name=private-cloud-operator-metrics-api", "-o", "name")
	return append(strings.Fields(services), found...)
}

// expectNothingLeft removes the namespaces, and looks that all else is gone.
func expectNothingLeft(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "delete", "namespace", home, elsewhere, "--ignore-not-found", "--timeout=120s")
	Expect(left(ctx)).To(BeEmpty())
}

// sweep removes what a run that failed has left, without regard for finalizers.
func sweep(ctx SpecContext) {
	remains := left(ctx)
	if len(remains) == 0 {
		return
	}
	GinkgoWriter.Println("removing what an earlier run has left:", remains)
	kubectl(ctx, append([]string{"delete", "--wait=false", "--ignore-not-found"}, remains...)...)
	Eventually(ctx, func() []string {
		for _, kind := range []string{"vmgroups", "vms", "networks.samplecontroller.k8s.io", "clouds"} {
			list, _ := tryKubectl(ctx, "", "get", kind, "-A", "-o", `jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}`)
			for line := range strings.Lines(list) {
				if namespace, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
					_, _ = tryKubectl(ctx, "", "patch", kind, name, "-n", namespace, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
				}
			}
		}
		return left(ctx)
	}).Should(BeEmpty())
}
