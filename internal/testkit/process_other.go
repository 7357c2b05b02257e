//go:build !linux

package testkit

import "syscall"

// WithParent returns nil: only Linux can end a process together with its parent.
func WithParent() *syscall.SysProcAttr { return nil }
