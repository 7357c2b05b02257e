package testkit

import "syscall"

// WithParent returns the attributes of a process that is killed when this one dies.
func WithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
