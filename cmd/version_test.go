package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
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

// runManager returns a command that runs main with arguments.
func runManager(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], args...)
	command.Env = append(os.Environ(), runMain+"=1", "POD_NAMESPACE=")
	return command
}

func TestVersionFlagPrintsTheVersion(t *testing.T) {
	output, err := runManager(t, "--version").CombinedOutput()
	if err != nil || string(output) != "v1.2.3\n" {
		t.Errorf("--version: got %q, %v, want the version alone", output, err)
	}
}

func TestFirstLogLineHasTheVersion(t *testing.T) {
	output, err := runManager(t).CombinedOutput()
	if err == nil {
		t.Error("without a namespace: got no error")
	}
	first, _, _ := strings.Cut(string(output), "\n")
	for _, want := range []string{`"level":"info"`, `"version":"v1.2.3"`, fmt.Sprintf(`"goVersion":%q`, runtime.Version())} {
		if !strings.Contains(first, want) {
			t.Errorf("the first log line %s does not contain %s", first, want)
		}
	}
}

func TestMetricsHaveBuildInfo(t *testing.T) {
	reportVersion()
	want := fmt.Sprintf(`# HELP privatecloud_build_info Always 1; the labels are the version of the binary and the Go version that built it.
# TYPE privatecloud_build_info gauge
privatecloud_build_info{goversion=%q,version="dev"} 1
`, runtime.Version())
	if err := testutil.GatherAndCompare(metrics.Registry, strings.NewReader(want), "privatecloud_build_info"); err != nil {
		t.Error(err)
	}
}

// TestBuildsSetTheVersion reads every file that builds a binary of this
// repository: -X is silent about a variable that it does not find, and a build
// without it reports "dev".
func TestBuildsSetTheVersion(t *testing.T) {
	build := regexp.MustCompile(`(?m)^.*go build (?:.*\\\n)*.*$`)
	for _, file := range []string{
		"Makefile", "Dockerfile", "cmd/metrics-api/Dockerfile", "mockcloud/Dockerfile", "test/scorecard/Dockerfile", "hack/images.sh", "hack/plugin.sh",
	} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", file))
			if err != nil {
				t.Fatal(err)
			}
			commands := build.FindAllString(string(text), -1)
			if len(commands) == 0 {
				t.Fatal("found no go build")
			}
			for _, command := range commands {
				if !strings.Contains(command, "-X main.version=v$") {
					t.Errorf("does not set main.version: %s", command)
				}
			}
		})
	}
}

// TestImagesGetTheVersion reads the Makefile: an image that is built without
// the argument has the version of its Dockerfile.
func TestImagesGetTheVersion(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	// The bundle and the catalog are files.
	commands := regexp.MustCompile(`(?m)^\t\$\(CONTAINER_TOOL\) (?:build|buildx build) .*-t \$\((?:\w+_)?IMG\).*$`).FindAllString(string(text), -1)
	var found int
	for _, command := range commands {
		if strings.Contains(command, "BUNDLE_IMG") || strings.Contains(command, "CATALOG_IMG") {
			continue
		}
		found++
		if !strings.Contains(command, "--build-arg VERSION=$(VERSION)") {
			t.Errorf("does not pass VERSION: %s", command)
		}
	}
	if want := 8; found != want {
		t.Errorf("found %d commands that build an image of a binary, want %d", found, want)
	}
}
