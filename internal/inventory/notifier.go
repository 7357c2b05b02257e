package inventory

import (
	"sync"
	"time"
)

// notifier calls the subscribers of all inventories of a Directory.
type notifier struct {
	mu           sync.RWMutex
	events       []func(Event)
	pollRequests []func(cloud string, within time.Duration)
}

func (n *notifier) subscribe(fn func(Event)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, fn)
}

func (n *notifier) onPollRequest(fn func(cloud string, within time.Duration)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pollRequests = append(n.pollRequests, fn)
}

func (n *notifier) notify(event Event) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, fn := range n.events {
		fn(event)
	}
}

func (n *notifier) requestPoll(cloud string, within time.Duration) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	for _, fn := range n.pollRequests {
		fn(cloud, within)
	}
}
