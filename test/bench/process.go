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
	// logTail is how much of a program's log its error shows, in bytes.
	logTail = 4 << 10
)

// process is a program that runs until it is stopped.
type process struct {
	name, log string
	cmd       *exec.Cmd
	// exited is closed when the program has ended.
	exited chan struct{}
}

// start starts a program whose output goes to the file log, and returns once
// ready, a URL, answers with 200.
func start(ctx context.Context, name, path, log, ready string, env []string, args ...string) (*process, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("making the log of %s: %w", name, err)
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
			return false, errors.New("it ended")
		default:
			return answers(ctx, ready), nil
		}
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for %s: %w; its log ends:\n%s", name, err, p.tail()), p.stop())
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

// stop ends the program as a cluster would: SIGTERM, and SIGKILL for one that does not listen.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopTime):
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
	return fmt.Errorf("%s did not end within %s of SIGTERM; its log ends:\n%s", p.name, stopTime, p.tail())
}

// freeAddress is an address of this machine where nobody listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// ownCPU is this process's time on the CPU.
func ownCPU() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
