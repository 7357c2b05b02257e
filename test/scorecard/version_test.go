package main

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
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

func TestVersionFlagPrintsTheVersion(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Args[0], "--version")
	command.Env = append(os.Environ(), runMain+"=1")
	output, err := command.CombinedOutput()
	if err != nil || string(output) != "v1.2.3\n" {
		t.Errorf("--version: got %q, %v, want the version alone", output, err)
	}
}

func TestTestLogStartsWithTheVersion(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	result := run(t.Context(), []string{vmLifecycle})
	first, _, _ := strings.Cut(result.Results[0].Log, "\n")
	if want := "scorecard version dev, built by " + runtime.Version(); first != want {
		t.Errorf("the first line is %q, want %q", first, want)
	}
}
