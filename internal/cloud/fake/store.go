package fake

import (
	"fmt"
	"slices"
)

// store holds servers or networks in the order in which they were added.
type store[R any] struct {
	prefix string
	// last is the number of the newest id, and added that of the newest item.
	last, added int
	items       map[string]stored[R]
	// changed is closed at the next change.
	changed chan struct{}
	// reuses means that new items have the lowest number that is free.
	reuses bool
	// withheld reports whether an id is not given for now; nil if all are.
	withheld func(id string) bool
}

type stored[R any] struct {
	item R
	id   string
	// at is the item's place in the order, from 1.
	at int
}

func newStore[R any](prefix string) *store[R] {
	return &store[R]{prefix: prefix, items: map[string]stored[R]{}, changed: make(chan struct{})}
}

func (s *store[R]) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// newID returns the next id that is not in use, or the lowest.
func (s *store[R]) newID() string {
	if s.reuses {
		s.last = 0
	}
	for {
		s.last++
		if id := fmt.Sprintf("%s%d", s.prefix, s.last); !s.has(id) && (s.withheld == nil || !s.withheld(id)) {
			return id
		}
	}
}

// place returns the item's place in the order, 0 if there is none. An item with an id of
// one that is gone has another one.
func (s *store[R]) place(id string) int { return s.items[id].at }

func (s *store[R]) has(id string) bool {
	_, ok := s.items[id]
	return ok
}

func (s *store[R]) get(id string) (R, bool) {
	found, ok := s.items[id]
	return found.item, ok
}

// put adds an item, or replaces it in its place.
func (s *store[R]) put(id string, item R) {
	at := s.items[id].at
	if at == 0 {
		s.added++
		at = s.added
	}
	s.items[id] = stored[R]{item: item, id: id, at: at}
	s.notify()
}

func (s *store[R]) remove(id string) {
	delete(s.items, id)
	s.notify()
}

func (s *store[R]) clear() {
	clear(s.items)
	s.notify()
}

// ordered returns the items with their places.
func (s *store[R]) ordered() []stored[R] {
	found := make([]stored[R], 0, len(s.items))
	for _, item := range s.items {
		found = append(found, item)
	}
	slices.SortFunc(found, func(a, b stored[R]) int { return a.at - b.at })
	return found
}

func (s *store[R]) all() []R {
	found := make([]R, 0, len(s.items))
	for _, one := range s.ordered() {
		found = append(found, one.item)
	}
	return found
}
