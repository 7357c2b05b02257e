//go:build !linux

package testkit

import "syscall"

// withParent: only Linux knows how to end a process together with its parent.
func withParent() *syscall.SysProcAttr { return nil }
