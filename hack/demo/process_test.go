package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// patience is far longer than any of these processes needs.
const patience = 30 * time.Second

// shell starts a script that says "ready" once it has set its traps, and waits for that.
func shell(t *testing.T, script string) (*process, <-chan error) {
	t.Helper()
	ended := make(chan error, 1)
	p, err := start("script", filepath.Join(t.TempDir(), "script.log"), "/bin/sh", []string{"-c", script}, func(err error) { ended <- err })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		killGroup(p.cmd.Process.Pid)
		<-p.over
	})
	NewWithT(t).Eventually(func() string { return tail(p.log, 1) }, patience).Should(ContainSubstring("ready"), "the script sets its traps first")
	return p, ended
}

func TestAProcessThatHeedsTheRequestToStopIsNotKilled(t *testing.T) {
	p, _ := shell(t, `trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done`)

	if err := p.stop(patience); err != nil {
		t.Error(err)
	}
	if log := tail(p.log, 1); log != "  bye\n" {
		t.Errorf("the last line of its log is %q", log)
	}
	if err := p.stop(patience); err != nil {
		t.Errorf("stopping what has stopped: %v", err)
	}
}

func TestAProcessThatDoesNotStopIsKilledWithAllItsGroup(t *testing.T) {
	p, _ := shell(t, `trap '' TERM; sleep 1000 & echo ready; wait`)

	err := p.stop(50 * time.Millisecond)

	if want := "the script did not stop within 50ms and was killed"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	NewWithT(t).Eventually(func() error { return syscall.Kill(-p.cmd.Process.Pid, 0) }, patience).
		Should(MatchError(syscall.ESRCH), "the sleep that it started is in its group")
}

func TestTheEndOfAProcessByItselfIsTold(t *testing.T) {
	_, ended := shell(t, `echo ready; exit 3`)

	select {
	case err := <-ended:
		if want := "the script ended by itself: exit status 3"; err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	case <-time.After(patience):
		t.Error("nobody was told")
	}
}

func TestOnlyFoldersOfDemosThatWereKilledAreSweptAway(t *testing.T) {
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

	sweep()

	for folder, want := range map[string]bool{alive: true, failed: true, killed: false} {
		if _, err := os.Stat(folder); (err == nil) != want {
			t.Errorf("%s is there: %v, expected %v", folder, err == nil, want)
		}
	}
}
