package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/component-base/metrics/legacyregistry"
)

// runMain is the environment variable that makes the test binary run main.
const runMain = "TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		version = "v1.2.3"
		main()
		return
	}
	os.Exit(m.Run())
}

// metricsAPI returns a command that runs main with arguments.
func metricsAPI(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], args...)
	command.Env = append(os.Environ(), runMain+"=1")
	return command
}

func TestVersionFlagPrintsTheVersion(t *testing.T) {
	output, err := metricsAPI(t, "--version").CombinedOutput()
	if err != nil || string(output) != "v1.2.3\n" {
		t.Errorf("--version: got %q, %v, want the version alone", output, err)
	}
}

func TestFirstLogLineHasTheVersion(t *testing.T) {
	output, err := metricsAPI(t, "--lister-kubeconfig=/nonexistent").CombinedOutput()
	if err == nil {
		t.Error("without a kubeconfig: got no error")
	}
	first, _, _ := strings.Cut(string(output), "\n")
	for _, want := range []string{`version="v1.2.3"`, fmt.Sprintf("goVersion=%q", runtime.Version())} {
		if !strings.HasPrefix(first, "I") || !strings.Contains(first, want) {
			t.Errorf("the first log line %s is not of level info or does not contain %s", first, want)
		}
	}
}

func TestMetricsHaveBuildInfo(t *testing.T) {
	reportVersion()
	want := fmt.Sprintf(`# HELP privatecloud_build_info Always 1; the labels are the version of the binary and the Go version that built it.
# TYPE privatecloud_build_info gauge
privatecloud_build_info{goversion=%q,version="dev"} 1
`, runtime.Version())
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want), "privatecloud_build_info"); err != nil {
		t.Error(err)
	}
}
