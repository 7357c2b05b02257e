package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// memoryInterval is the time between two measurements of memory.
const memoryInterval = 100 * time.Millisecond

// memoryWatch measures the resident memory of a process.
type memoryWatch struct {
	ended chan struct{}
	peak  chan int64
}

// watchMemory measures the process whose id pid returns from now on. The process may change.
func watchMemory(pid func() int) *memoryWatch {
	w := &memoryWatch{ended: make(chan struct{}), peak: make(chan int64, 1)}
	go func() {
		ticker := time.NewTicker(memoryInterval)
		defer ticker.Stop()
		var peak int64
		for {
			peak = max(peak, resident(pid()))
			select {
			case <-ticker.C:
			case <-w.ended:
				w.peak <- peak
				return
			}
		}
	}()
	return w
}

// stop returns the largest value in bytes, 0 where /proc does not have it.
func (w *memoryWatch) stop() int64 {
	close(w.ended)
	return <-w.peak
}

// resident returns the resident memory of a process and its descendants in bytes.
func resident(pid int) int64 {
	if pid == 0 {
		return 0
	}
	folder := fmt.Sprintf("/proc/%d", pid)
	status, err := os.ReadFile(folder + "/status")
	if err != nil {
		return 0
	}
	total := residentIn(string(status))
	tasks, err := os.ReadDir(folder + "/task")
	if err != nil {
		return total
	}
	for _, task := range tasks {
		children, err := os.ReadFile(folder + "/task/" + task.Name() + "/children")
		if err != nil {
			continue
		}
		for child := range strings.FieldsSeq(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				total += resident(id)
			}
		}
	}
	return total
}

// residentIn returns the resident memory that /proc/PID/status states, in bytes.
func residentIn(status string) int64 {
	for line := range strings.Lines(status) {
		if text, found := strings.CutPrefix(line, "VmRSS:"); found {
			kibibytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kibibytes << 10
		}
	}
	return 0
}
