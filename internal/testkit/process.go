package testkit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// BuildManager builds the operator into a folder, and returns the path of the binary.
func BuildManager(folder string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(folder, "manager")
	build := exec.Command("go", "build", "-o", binary, "./cmd")
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the manager: %w\n%s", err, output)
	}
	return binary, nil
}

// Process is the operator as a process of its own.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// collectSeldom is the environment of processes that collect garbage less often: they live for
// seconds or minutes, and spend a fifth of their time on it otherwise.
const collectSeldom = "GOGC=400"

// StartProcess starts the binary. The process ends when this one does. maxData, if
// not 0, limits its data segment in bytes, RLIMIT_DATA; without a limit it collects
// garbage less often than as it is deployed.
func StartProcess(binary, kubeconfig string, log *Buffer, maxData int64, args ...string) (*Process, error) {
	cmd := exec.Command(binary, args...)
	if maxData > 0 {
		limited := fmt.Sprintf(`ulimit -d %d && exec "$0" "$@"`, maxData>>10)
		cmd = exec.Command("sh", append([]string{"-c", limited, binary}, args...)...)
	}
	cmd.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + os.TempDir(), "GOMAXPROCS=2"}
	if maxData == 0 {
		cmd.Env = append(cmd.Env, collectSeldom)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = WithParent()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	_, _ = fmt.Fprintf(log, "--- manager %d\n", cmd.Process.Pid)
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// ID returns the id of the process.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Kill kills the process, and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the manager: %w", err)
	}
	<-p.done
	return nil
}

// Done is closed when the process is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns why the process ended, nil if it ended by itself and succeeded. It must
// be gone.
func (p *Process) Err() error { return p.err }

// Ended reports whether the process is gone.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
