package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/mockcloud"
)

// separateCloud is the namespace and the Cloud of a mock cloud that outlives the
// operator: the bundled one is restarted with every upgrade.
const separateCloud = "elsewhere"

// mock is a mock cloud in the cluster. Its Service and its Deployment have the same
// name.
type mock struct{ namespace, service string }

var (
	bundledMock  = mock{namespace: operatorNamespace, service: "private-cloud-operator-mock-cloud"}
	separateMock = mock{namespace: separateCloud, service: "mock-cloud"}
)

// useDefaultCloud waits for the Cloud of the bundled mock cloud, and shortens its settle time, for
// which the brake and deletions after a restart of the operator wait. This mock cloud shows what
// it has at once.
func useDefaultCloud(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "wait", "--for=create", "cloud/default", "--timeout=60s")
	kubectl(ctx, "wait", "--for=condition=Ready", "cloud/default", "--timeout=60s")
	writeCloud(ctx, "", "patch", "cloud", "default", "--type=merge", "-p", `{"spec":{"settleTime":"10s"}}`)
}

// writeCloud runs a kubectl command that writes a Cloud until the API server accepts it. OLM renews the
// certificate of the webhook after an installation or an upgrade, also of a CSV that has Succeeded, and the pod
// with the new one starts later: Clouds are refused until then.
func writeCloud(ctx context.Context, manifest string, args ...string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := tryKubectl(ctx, manifest, args...)
		return err
	}).Should(Succeed(), func() string { return "the webhook for Clouds:\n" + admission(ctx) })
}

// deploySeparateCloud deploys a mock cloud in a namespace of its own, and creates a Cloud for it.
func deploySeparateCloud(ctx context.Context) {
	GinkgoHelper()
	apply(ctx, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: Service
metadata: {name: mock-cloud, namespace: %[1]s}
spec: {selector: {app: mock-cloud}, ports: [{name: http, port: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: mock-cloud, namespace: %[1]s}
spec:
  selector: {matchLabels: {app: mock-cloud}}
  template:
    metadata: {labels: {app: mock-cloud}}
    spec:
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: mock-cloud
        image: %[2]s-mock-cloud:v%[3]s
        args: [--addr=:8080]
        readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
`, separateCloud, images, version))
	kubectl(ctx, "rollout", "status", "deployment/mock-cloud", "-n", separateCloud, "--timeout=120s")
	writeCloud(ctx, fmt.Sprintf(`
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: Cloud
metadata: {name: %[1]s}
spec: {endpoint: "http://mock-cloud.%[1]s.svc:8080", pollInterval: 5s, allowedNamespaces: {}}
`, separateCloud), "apply", "--server-side", "-f", "-")
	kubectl(ctx, "wait", "--for=condition=Ready", "cloud/"+separateCloud, "--timeout=60s")
}

// expectRefusedCloud checks that the webhook of the bundle refuses a Cloud without allowedNamespaces.
func expectRefusedCloud(ctx context.Context) {
	GinkgoHelper()
	const refusal = `admission webhook "allowednamespaces.samplecontroller.k8s.io" denied the request: spec.allowedNamespaces is required`
	cloud := func(allowed string) string {
		return fmt.Sprintf(`{apiVersion: samplecontroller.k8s.io/v1alpha1, kind: Cloud, metadata: {name: open}, spec: {endpoint: "http://open.test"%s}}`, allowed)
	}
	Eventually(func() string { // see writeCloud
		output, _ := tryKubectl(ctx, cloud(""), "create", "--dry-run=server", "-f", "-")
		return output
	}).Should(ContainSubstring(refusal), func() string { return "the webhook for Clouds:\n" + admission(ctx) })
	writeCloud(ctx, cloud(", allowedNamespaces: {}"), "create", "--dry-run=server", "-f", "-")
}

// adminPort is the mock's port of the admin API, which it serves on loopback only.
const adminPort = "8081"

// forwarded is the address in the output of kubectl port-forward.
var forwarded = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) `)

// forward forwards a local port to the admin API in the mock's pod, and returns the
// URL and a function that ends the forwarding.
func (m mock) forward(ctx context.Context) (url string, stop func()) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(ctx)
	command := exec.CommandContext(ctx, os.Getenv("KUBECTL"), "port-forward", "-n", m.namespace, "deployment/"+m.service, ":"+adminPort)
	command.Stderr = GinkgoWriter
	output, err := command.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(command.Start()).To(Succeed())
	stop = func() {
		cancel()
		_ = command.Wait()
	}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if found := forwarded.FindStringSubmatch(lines.Text()); found != nil {
			return "http://" + found[1], stop
		}
	}
	stop()
	Fail(fmt.Sprintf("kubectl does not forward a port to deployment %s in %s", m.service, m.namespace))
	return "", nil
}

// call sends a request to the mock's admin API and decodes the answer into out.
func (m mock) call(ctx context.Context, method, path string, body, out any) {
	GinkgoHelper()
	url, stop := m.forward(ctx)
	defer stop()
	content, err := json.Marshal(body)
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, method, url+path, bytes.NewReader(content))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.StatusCode).To(BeNumerically("<", 300), "%s %s: %s", method, path, answer)
	if out != nil {
		Expect(json.Unmarshal(answer, out)).To(Succeed(), "%s", answer)
	}
}

// effects returns the operations of the ledger by the name of the server, oldest first.
func (m mock) effects(ctx context.Context) map[string][]mockcloud.Op {
	GinkgoHelper()
	var ledger []mockcloud.LedgerEntry
	m.call(ctx, http.MethodGet, "/ledger", nil, &ledger)
	effects := map[string][]mockcloud.Op{}
	for _, entry := range ledger {
		effects[entry.Name] = append(effects[entry.Name], entry.Op)
	}
	return effects
}
