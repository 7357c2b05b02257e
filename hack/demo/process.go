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

// process is a child in a process group of its own, so that it does not receive
// Ctrl-C from the terminal. Its output goes to a file.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	// done is closed when the process has exited; err is set before.
	done chan struct{}
	err  error
}

// start starts a program and returns at once. It calls ended when the process has
// exited for any reason.
func start(name, log, path string, args []string, ended func(error)) (*process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("creating the log of the %s: %w", name, err)
	}
	defer func() { _ = file.Close() }()
	p := &process{name: name, log: log, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.SysProcAttr = processGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
		ended(fmt.Errorf("the %s exited: %v", name, p.cmd.ProcessState))
	}()
	return p, nil
}

// stop sends SIGTERM to the process and kills its group if it has not exited
// after grace.
func (p *process) stop(grace time.Duration) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping the %s: %w", p.name, err)
	}
	select {
	case <-p.done:
	case <-time.After(grace):
		killGroup(p.cmd.Process.Pid)
		<-p.done
		return fmt.Errorf("the %s did not stop within %v and was killed", p.name, grace)
	}
	if p.err != nil {
		return fmt.Errorf("the %s stopped with an error: %w", p.name, p.err)
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
