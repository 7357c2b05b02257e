package alerts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/internal/testkit"
)

// program returns the path of a program of the Debian package prometheus.
func program(t *testkit.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("%v: this test needs Prometheus with promtool, for example Debian's package: apt-get install prometheus", err)
	}
	return path
}

// prometheus is a running Prometheus.
type prometheus struct{ url string }

// startPrometheus starts a Prometheus that scrapes target as the ServiceMonitor says, and
// ends with the test.
func startPrometheus(t *testkit.T, target string, rules []byte, honorLabels bool) *prometheus {
	t.Helper()
	folder := t.TempDir()
	config := fmt.Appendf(nil, `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 500ms}
rule_files: [rules.yaml]
scrape_configs:
- job_name: operator
  honor_labels: %t
  static_configs: [{targets: [%q], labels: {namespace: %q}}]
`, honorLabels, target, operatorNamespace)
	t.Expect(os.WriteFile(filepath.Join(folder, "rules.yaml"), rules, 0o600)).To(Succeed())
	t.Expect(os.WriteFile(filepath.Join(folder, "prometheus.yaml"), config, 0o600)).To(Succeed())
	check(t, filepath.Join(folder, "rules.yaml"))
	address, err := testkit.FreeAddress()
	t.Expect(err).NotTo(HaveOccurred())
	log := &testkit.Buffer{}
	ctx, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, program(t, "prometheus"),
		"--config.file="+filepath.Join(folder, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address="+address.String(), "--log.level=warn")
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	command.Stdout, command.Stderr, command.SysProcAttr = log, log, testkit.WithParent()
	t.Expect(command.Start()).To(Succeed())
	t.Cleanup(func() {
		stop()
		_ = command.Wait() // ends by a signal
		if t.Failed() {
			t.Log(log.String())
		}
	})
	p := &prometheus{url: "http://" + address.String()}
	t.Eventually(func(ctx context.Context) error { return p.get(ctx, "/api/v1/status/buildinfo", nil) }).Should(Succeed())
	return p
}

// check has promtool check a file of rules.
func check(t *testkit.T, file string) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program(t, "promtool"), "check", "rules", file).CombinedOutput()
	t.Expect(err).NotTo(HaveOccurred(), string(output))
}

// get reads the data of an answer of the HTTP API.
func (p *prometheus) get(ctx context.Context, path string, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          json.RawMessage
	}{}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: %s: %w", path, response.Status, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", path, answer.Error)
	}
	if data == nil {
		return nil
	}
	return json.Unmarshal(answer.Data, data)
}

// alert is an active alert.
type alert struct {
	Labels, Annotations map[string]string
	State               string
}

// firing returns the alerts that fire.
func (p *prometheus) firing(ctx context.Context) (firing []alert, err error) {
	var data struct{ Alerts []alert }
	if err := p.get(ctx, "/api/v1/alerts", &data); err != nil {
		return nil, err
	}
	for _, a := range data.Alerts {
		if a.State == "firing" {
			firing = append(firing, a)
		}
	}
	return firing, nil
}

// names returns the names of the alerts that fire.
func (p *prometheus) names(ctx context.Context) ([]string, error) {
	firing, err := p.firing(ctx)
	var names []string
	for _, a := range firing {
		names = append(names, a.Labels["alertname"])
	}
	return names, err
}

// series returns how many series a query returns now.
func (p *prometheus) series(ctx context.Context, query string) (int, error) {
	var data struct{ Result []json.RawMessage }
	err := p.get(ctx, "/api/v1/query?query="+url.QueryEscape(query), &data)
	return len(data.Result), err
}
