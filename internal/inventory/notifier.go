package inventory

import (
	"cmp"
	"sync"
	"time"
)

// Event names the objects of a cloud that are to be reconciled.
type Event struct {
	// Cloud is the name of the cloud.
	Cloud string
	// Servers are the IDs of servers that changed: their owners are to be reconciled.
	Servers []string
	// Refs are objects that waited for this event.
	Refs []Ref
	// Owners are the objects that the labels of servers name that are new or in another
	// state. They need not exist: a cloud can list servers with any labels.
	Owners []Ref
	// All says that each object of the cloud is to be reconciled.
	All bool
}

// Ref names an object that waits for something of a cloud.
type Ref struct {
	Namespace, Name string
	// Kind is empty for a VM.
	Kind string
}

func (r Ref) compare(to Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, to.Kind), cmp.Compare(r.Namespace, to.Namespace), cmp.Compare(r.Name, to.Name))
}

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
