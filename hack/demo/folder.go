package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	folderPrefix = "private-cloud-demo-"
	// scratchName is the subfolder for everything but logs, such as the data of etcd.
	scratchName = "scratch"
	lockName    = "scratch/lock"
)

// makeFolder creates the folder of a demo and removes the folders of demos that
// were killed.
func makeFolder() (string, error) {
	removeStaleFolders()
	folder, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return "", fmt.Errorf("creating a folder for logs: %w", err)
	}
	if err := os.Mkdir(filepath.Join(folder, scratchName), 0o700); err != nil {
		return "", fmt.Errorf("creating a folder for data: %w", err)
	}
	// The lock is held until this process exits.
	if _, err := lock(folder); err != nil {
		return "", err
	}
	return folder, nil
}

// removeStaleFolders removes the folders of demos that were killed. The folder of
// a demo that failed has logs and no lock: it stays.
func removeStaleFolders() {
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+"*", lockName))
	for _, path := range locks {
		folder := filepath.Dir(filepath.Dir(path))
		if held, err := lock(folder); err == nil {
			_ = os.RemoveAll(folder)
			_ = syscall.Close(held)
		}
	}
}

// lock locks a folder and returns the file descriptor that holds the lock. It
// returns an error while another process holds it.
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
