package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process is a child in a process group of its own, so that a terminal's
// Ctrl-C does not reach it. Its output goes to a file.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	// over is closed when the process has ended; err then tells how.
	over chan struct{}
	err  error
}

// start starts a program and returns at once. ended is called when the process
// has ended, for whatever reason.
func start(name, log, path string, args []string, ended func(error)) (*process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("making the log of the %s: %w", name, err)
	}
	defer func() { _ = file.Close() }()
	p := &process{name: name, log: log, cmd: exec.Command(path, args...), over: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.over)
		ended(fmt.Errorf("the %s ended by itself: %v", name, p.cmd.ProcessState))
	}()
	return p, nil
}

// stop asks the process to end, and kills it when that takes longer than grace.
func (p *process) stop(grace time.Duration) error {
	select {
	case <-p.over:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping the %s: %w", p.name, err)
	}
	select {
	case <-p.over:
	case <-time.After(grace):
		killGroup(p.cmd.Process.Pid)
		<-p.over
		return fmt.Errorf("the %s did not stop within %v and was killed", p.name, grace)
	}
	if p.err != nil {
		return fmt.Errorf("the %s stopped badly: %w", p.name, p.err)
	}
	return nil
}

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// tail returns the last lines of a file, each indented.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return "  " + err.Error() + "\n"
	}
	all := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	var out bytes.Buffer
	for _, line := range all[max(0, len(all)-lines):] {
		fmt.Fprintf(&out, "  %s\n", line)
	}
	return out.String()
}
