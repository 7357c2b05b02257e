package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/privatecloud/operator/internal/testkit"
)

// manager is the operator as a process.
type manager struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// startManager starts the binary. The process ends when this one does. maxData, if
// not 0, limits its data segment in bytes, RLIMIT_DATA.
func startManager(binary, kubeconfig string, log *testkit.Buffer, maxData int64, args ...string) (*manager, error) {
	cmd := exec.Command(binary, args...)
	if maxData > 0 {
		limited := fmt.Sprintf(`ulimit -d %d && exec "$0" "$@"`, maxData>>10)
		cmd = exec.Command("sh", append([]string{"-c", limited, binary}, args...)...)
	}
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

// kill kills the process.
func (m *manager) kill() error { return m.end(syscall.SIGKILL) }

// end sends a signal and waits for the process to be gone.
func (m *manager) end(with syscall.Signal) error {
	if err := m.cmd.Process.Signal(with); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal the manager: %w", err)
	}
	<-m.done
	return nil
}

// ended reports whether the process is gone.
func (m *manager) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}
