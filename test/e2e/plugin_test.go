package e2e_test

import (
	"archive/zip"
	"context"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// staff is a user who has the Role diagnostics-reader and no other right.
const staff = "support-staff"

// plugin runs a command of the kubectl plugin, and returns what it printed.
func plugin(ctx context.Context, args ...string) (string, error) {
	GinkgoHelper()
	binary := filepath.Join(root, "bin", "kubectl-privatecloud")
	if _, err := os.Stat(binary); err != nil {
		_, err := run(ctx, "", "make", "--no-print-directory", "bin/kubectl-privatecloud")
		Expect(err).NotTo(HaveOccurred())
	}
	return run(ctx, "", binary, args...)
}

// askThroughAForwardedPort shows that the plugin asks the leader among the pods of the operator, with
// the Role that is for that, and says which right is missing without it.
func askThroughAForwardedPort(ctx context.Context) {
	GinkgoHelper()
	_, err := plugin(ctx, "orphans", "--as", "nobody")
	Expect(err).To(MatchError(ContainSubstring("the right to list pods in namespace " + operatorNamespace + " is missing")))
	kubectl(ctx, "create", "rolebinding", staff, "-n", operatorNamespace, "--user="+staff, "--role=private-cloud-operator-diagnostics-reader")
	DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "rolebinding", staff, "-n", operatorNamespace) })
	Expect(plugin(ctx, "orphans", "--as", staff)).To(ContainSubstring(`on Cloud "default"`))
	_, err = plugin(ctx, "orphans", "--cloud", "missing", "--as", staff)
	Expect(err).To(MatchError(ContainSubstring(`Cloud "missing" does not exist`)))

	kubectl(ctx, "apply", "-n", samples, "-f", prohibited)
	kubectl(ctx, "wait", "--for=condition=Stalled", "vm/taboo", "-n", samples, "--timeout=60s")
	explained, err := plugin(ctx, "why", "vm/taboo", "-n", samples)
	Expect(err).NotTo(HaveOccurred())
	Expect(explained).To(And(ContainSubstring("is not Ready until somebody acts"), ContainSubstring("Cloud default in the operator: brake off"), ContainSubstring("Last step: ")))
	kubectl(ctx, "delete", "-n", samples, "-f", prohibited, "--timeout=60s")
	servers, err := plugin(ctx, "import", "--cloud", "default", "-n", samples)
	Expect(err).NotTo(HaveOccurred())
	Expect(servers).To(ContainSubstring(`servers of Cloud "default" to import`))
}

// runLocalCommands shows that the commands that need no answer of the operator run on this cluster,
// and that a report has the logs of the operator and no endpoint of a cloud.
func runLocalCommands(ctx context.Context) {
	GinkgoHelper()
	Expect(plugin(ctx, "top", "clouds")).To(MatchRegexp(`(?m)^default +\d+ +\d+ +\d+ `))
	Expect(plugin(ctx, "top", "-n", samples)).To(ContainSubstring("NAME"))
	Eventually(func() (string, error) { return plugin(ctx, "drift", "-n", samples) }).Should(HavePrefix("No drift: "))
	Expect(plugin(ctx, "brake")).To(MatchRegexp(`(?m)^default +off`))
	Expect(plugin(ctx, "brake", "acknowledge", "default")).To(ContainSubstring("is off: nothing was changed"))
	Expect(plugin(ctx, "drain", "--policy=delete")).To(ContainSubstring("Nothing was changed."))

	file := filepath.Join(GinkgoT().TempDir(), "report.zip")
	_, err := plugin(ctx, "report", "-A", "--operator-namespace", operatorNamespace, "-f", file)
	Expect(err).NotTo(HaveOccurred())
	bundle, err := zip.OpenReader(file)
	Expect(err).NotTo(HaveOccurred())
	defer bundle.Close()
	endpoint := kubectl(ctx, "get", "cloud", "default", "-o", "jsonpath={.spec.endpoint}")
	address, err := url.Parse(strings.TrimSpace(endpoint))
	Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, f := range bundle.File {
		names = append(names, f.Name)
		content, err := f.Open()
		Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(content)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(text)).NotTo(ContainSubstring(address.Hostname()), f.Name)
	}
	Expect(names).To(ContainElements("manifest.json", "objects/vms.json", "operator/pods.json", MatchRegexp(`^operator/logs/.*/manager\.log$`)))
}
