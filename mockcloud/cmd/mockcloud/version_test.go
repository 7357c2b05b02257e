package main

import (
	"fmt"
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

func TestFirstLogLineHasTheVersion(t *testing.T) {
	out := output(t)
	if err := run(t.Context(), []string{"--addr=256.0.0.1:1"}, out, nil); err == nil {
		t.Error("an address that does not exist: got no error")
	}
	log, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(log), "\n")
	want := fmt.Sprintf("level=INFO msg=\"starting the mock cloud\" version=dev goVersion=%s", runtime.Version())
	if !strings.HasSuffix(first, want) {
		t.Errorf("the first log line is %s, want it to end with %s", first, want)
	}
}
