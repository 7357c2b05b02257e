package vcsim

import (
	"strings"
	"sync"
)

// starting has the clones that were answered before their VMs are started. A vCenter
// ends the task of a clone after it started the VM; the simulator leaves the VM stopped.
type starting struct {
	mu    sync.Mutex
	tasks map[string]chan struct{}
}

func newStarting() *starting { return &starting{tasks: map[string]chan struct{}{}} }

// begin calls start with the answer to a clone, concurrently.
func (s *starting) begin(answer string, start func(string)) {
	found := taskRef.FindStringSubmatch(answer)
	if found == nil {
		return
	}
	started := make(chan struct{})
	s.mu.Lock()
	s.tasks[found[1]] = started
	s.mu.Unlock()
	go func() {
		defer func() {
			s.mu.Lock()
			delete(s.tasks, found[1])
			s.mu.Unlock()
			close(started)
		}()
		start(answer)
	}()
}

// wait returns once the VMs are started that an answer says are cloned.
func (s *starting) wait(answer string) {
	if !strings.Contains(answer, "<state>success</state>") {
		return
	}
	var waiting []chan struct{}
	s.mu.Lock()
	for task, started := range s.tasks {
		if strings.Contains(answer, ">"+task+"<") {
			waiting = append(waiting, started)
		}
	}
	s.mu.Unlock()
	for _, started := range waiting {
		<-started
	}
}
