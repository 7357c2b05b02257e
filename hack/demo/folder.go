package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	folderPrefix = "private-cloud-demo-"
	// scratchName is what is in a demo's folder besides logs: etcd's data above all.
	scratchName = "scratch"
	lockName    = "scratch/lock"
)

// makeFolder makes the folder of a demo, and clears away what demos left that
// were killed.
func makeFolder() (string, error) {
	sweep()
	folder, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return "", fmt.Errorf("making a folder for logs: %w", err)
	}
	if err := os.Mkdir(filepath.Join(folder, scratchName), 0o700); err != nil {
		return "", fmt.Errorf("making a folder for data: %w", err)
	}
	// The lock is held as long as this process lives.
	if _, err := lock(folder); err != nil {
		return "", err
	}
	return folder, nil
}

// sweep removes the folders of demos that were killed. One that failed has kept
// its logs alone, and those stay.
func sweep() {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*", lockName))
	for _, path := range locks {
		folder := filepath.Dir(filepath.Dir(path))
		if held, err := lock(folder); err == nil {
			_ = os.RemoveAll(folder)
			_ = syscall.Close(held)
		}
	}
}

// lock fails while a living process has the folder locked.
func lock(folder string) (int, error) {
	fd, err := syscall.Open(filepath.Join(folder, lockName), syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return 0, fmt.Errorf("opening the lock of %s: %w", folder, err)
	}
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = syscall.Close(fd)
		return 0, fmt.Errorf("locking %s: %w", folder, err)
	}
	return fd, nil
}
