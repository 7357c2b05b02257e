package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	startTime = 30 * time.Second
	stopTime  = 15 * time.Second
	// logTail is the size of the end of a log that errors contain, in bytes.
	logTail = 4 << 10
)

// process is a program that runs until it is stopped.
type process struct {
	name, log string
	cmd       *exec.Cmd
	// exited is closed when the program has exited.
	exited chan struct{}
}

// start starts a program, whose output goes to the file log, and waits until the URL
// ready returns 200.
func start(ctx context.Context, name, path, log, ready string, env []string, args ...string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("creating the log of %s: %w", name, err)
	}
	defer func() { _ = out.Close() }()
	p := &process{name: name, log: log, cmd: exec.Command(path, args...), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTime, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.exited:
			return false, errors.New("it exited")
		default:
			return answers(ctx, ready), nil
		}
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for %s: %w; last lines of its log:\n%s", name, err, p.tail()), p.stop())
	}
	return p, nil
}

func answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func (p *process) tail() []byte {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(data[max(0, len(data)-logTail):])
}

// stop sends SIGTERM, and SIGKILL if the program does not exit within stopTime.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopTime):
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
	return fmt.Errorf("%s did not exit within %s of SIGTERM; last lines of its log:\n%s", p.name, stopTime, p.tail())
}

// pid is the id of the process.
func (p *process) pid() int { return p.cmd.Process.Pid }

// freeAddress returns a free address of this machine.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// ownCPU returns the CPU time of this process.
func ownCPU() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
