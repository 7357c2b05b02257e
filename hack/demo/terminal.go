package main

import (
	"os"
	"syscall"
	"unsafe"
)

// terminalSize returns the rows and columns of a terminal, and 0 if the file is not
// a terminal.
func terminalSize(file *os.File) (rows, columns int) {
	var size struct{ rows, columns, width, height uint16 }
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	if errno != 0 {
		return 0, 0
	}
	return int(size.rows), int(size.columns)
}
