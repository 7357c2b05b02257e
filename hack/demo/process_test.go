package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// timeout is far longer than any of these processes needs.
const timeout = 30 * time.Second

// shell starts a script and waits until it has printed "ready", which it does once
// its traps are set.
func shell(t *testing.T, script string) (*process, <-chan error) {
	t.Helper()
	ended := make(chan error, 1)
	p, err := start("script", filepath.Join(t.TempDir(), "script.log"), "/bin/sh", []string{"-c", script}, func(err error) { ended <- err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		killGroup(p.cmd.Process.Pid)
		<-p.done
	})
	NewWithT(t).Eventually(func() string { return tail(p.log, 1) }, timeout).Should(ContainSubstring("ready"), "the script sets its traps first")
	return p, ended
}

func TestStopWaitsForAProcessThatHandlesSIGTERM(t *testing.T) {
	p, _ := shell(t, `trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done`)

	if err := p.stop(timeout); err != nil {
		t.Error(err)
	}
	if log := tail(p.log, 1); log != "  bye\n" {
		t.Errorf("the last line of its log is %q", log)
	}
	if err := p.stop(timeout); err != nil {
		t.Errorf("stopping a stopped process: %v", err)
	}
}

func TestStopKillsTheGroupOfAProcessThatIgnoresSIGTERM(t *testing.T) {
	p, _ := shell(t, `trap '' TERM; sleep 1000 & echo ready; wait`)

	err := p.stop(50 * time.Millisecond)

	if want := "the script did not stop within 50ms and was killed"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	NewWithT(t).Eventually(func() error { return syscall.Kill(-p.cmd.Process.Pid, 0) }, timeout).
		Should(MatchError(syscall.ESRCH), "the sleep that the script started is in its group")
}

func TestStartCallsEndedWhenTheProcessExits(t *testing.T) {
	_, ended := shell(t, `echo ready; exit 3`)

	select {
	case err := <-ended:
		if want := "the script exited: exit status 3"; err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	case <-time.After(timeout):
		t.Error("ended was not called")
	}
}

func TestRemoveStaleFoldersRemovesFoldersOfKilledDemosOnly(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	alive, err := makeFolder()
	if err != nil {
		t.Fatal(err)
	}
	killed, failed := filepath.Join(os.TempDir(), folderPrefix+"killed"), filepath.Join(os.TempDir(), folderPrefix+"failed")
	for _, folder := range []string{filepath.Join(killed, scratchName), failed} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(killed, lockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	removeStaleFolders()

	for folder, want := range map[string]bool{alive: true, failed: true, killed: false} {
		if _, err := os.Stat(folder); (err == nil) != want {
			t.Errorf("%s exists: %v, want %v", folder, err == nil, want)
		}
	}
}
