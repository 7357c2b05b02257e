package e2e_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// kinds are the cluster-scoped kinds of which objects of the operator may exist. Kinds
// whose objects would create others again are first.
func kinds(ctx context.Context) string {
	GinkgoHelper()
	kinds := "validatingwebhookconfiguration,crd,clusterrole,clusterrolebinding,namespace"
	if hasOLMv1(ctx) {
		kinds = "clusterextension,clustercatalog," + kinds
	}
	return kinds
}

// isOurs reports whether an object with a name belongs to these tests.
func isOurs(name string) bool {
	_, name, _ = strings.Cut(name, "/")
	return strings.Contains(name, "private-cloud") || strings.Contains(name, "samplecontroller.k8s.io") ||
		strings.HasPrefix(name, "olm.og.operator-sdk-og.") ||
		name == separateCloud || name == inFlight || name == failover || name == autoscaled
}

// leftovers returns the names of objects of the operator that exist.
func leftovers(ctx context.Context) []string {
	GinkgoHelper()
	var found []string
	for name := range strings.FieldsSeq(kubectl(ctx, "get", kinds(ctx), "-o", "name")) {
		if isOurs(name) {
			found = append(found, name)
		}
	}
	// APIServices are selected by label, since other servers may use the same names. Without
	// their server, no namespace can be deleted.
	services := kubectl(ctx, "get", "apiservices", "-l", "app.kubernetes.io/name=private-cloud-operator-metrics-api", "-o", "name")
	return append(strings.Fields(services), found...)
}

// expectNothingLeft deletes the namespaces, and checks that nothing else is left. It repeats the commands that docs/install.md
// says to repeat.
func expectNothingLeft(ctx context.Context, repeated ...func(context.Context)) {
	GinkgoHelper()
	kubectl(ctx, "delete", "namespace", operatorNamespace, separateCloud, "--ignore-not-found", "--timeout=120s")
	Eventually(ctx, func() []string {
		for _, command := range repeated {
			command(ctx)
		}
		return leftovers(ctx)
	}).Should(BeEmpty(), "OLM removes the cluster roles of a CSV after the CSV")
}

// removeLeftovers removes what an earlier run has left, without regard to finalizers.
func removeLeftovers(ctx SpecContext) {
	remains := leftovers(ctx)
	if len(remains) == 0 {
		return
	}
	GinkgoWriter.Println("removing what an earlier run has left:", remains)
	kubectl(ctx, append([]string{"delete", "--wait=false", "--ignore-not-found"}, remains...)...)
	Eventually(ctx, func() []string {
		for _, kind := range []string{"vmsnapshots", "vmgroups", "vms", "networks.samplecontroller.k8s.io", "clouds"} {
			list, _ := tryKubectl(ctx, "", "get", kind, "-A", "-o", `jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}`)
			for line := range strings.Lines(list) {
				if namespace, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
					_, _ = tryKubectl(ctx, "", "patch", kind, name, "-n", namespace, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
				}
			}
		}
		return leftovers(ctx)
	}).Should(BeEmpty())
}
