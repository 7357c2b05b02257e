package testkit

import "syscall"

// withParent has a process killed when this one dies.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
