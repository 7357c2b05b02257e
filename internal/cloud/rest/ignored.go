package rest

import (
	"slices"
	"sync"
)

// maxIgnored bounds what Ignored returns.
const maxIgnored = 16

// ignored collects the fields that were ignored. A nil one collects nothing.
type ignored struct {
	mu     sync.Mutex
	fields map[ignoredField]bool
}

type ignoredField struct{ name, reason string }

func (i *ignored) add(name, reason string) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.fields == nil {
		i.fields = map[ignoredField]bool{}
	}
	if len(i.fields) < maxIgnored {
		i.fields[ignoredField{name, reason}] = true
	}
}

// take returns which fields were ignored since the last call and why, sorted.
func (i *ignored) take() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var texts []string
	for field := range i.fields {
		texts = append(texts, field.name+": "+field.reason)
	}
	i.fields = nil
	slices.Sort(texts)
	return texts
}
