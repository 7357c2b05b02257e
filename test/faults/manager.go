package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// manager is the operator as a process.
type manager struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// startManager starts binary. It dies with this process.
func startManager(binary, kubeconfig string, log *transcript, args ...string) (*manager, error) {
	cmd := exec.Command(binary, args...)
	cmd.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + os.TempDir(), "GOMAXPROCS=2"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = withParent()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	_, _ = fmt.Fprintf(log, "--- manager %d\n", cmd.Process.Pid)
	m := &manager{cmd: cmd, done: make(chan struct{})}
	go func() {
		m.err = cmd.Wait()
		close(m.done)
	}()
	return m, nil
}

// kill ends the process between two instructions.
func (m *manager) kill() error { return m.end(syscall.SIGKILL) }

// end sends a signal and waits for the process to be gone.
func (m *manager) end(with syscall.Signal) error {
	if err := m.cmd.Process.Signal(with); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal the manager: %w", err)
	}
	<-m.done
	return nil
}

// ended tells whether the process is gone without having been asked to.
func (m *manager) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// transcript is what all managers of a run wrote.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}
