package inventory

import (
	"slices"
	"time"
)

// waitlist holds objects, each with the begin of the earliest listing that serves it.
type waitlist struct {
	since map[Ref]time.Time
	// order has the objects in the order of these times. A waiter whose time is not that
	// of its object any more does not count.
	order []waiter
}

type waiter struct {
	ref   Ref
	since time.Time
}

func newWaitlist() *waitlist { return &waitlist{since: map[Ref]time.Time{}} }

// add adds an object, unless it waits for this time or a later one already, and reports
// whether it did.
func (w *waitlist) add(ref Ref, since time.Time) bool {
	if !w.since[ref].Before(since) {
		return false
	}
	if len(w.order) > 2*len(w.since)+16 {
		w.order = slices.DeleteFunc(w.order, func(last waiter) bool { return !w.counts(last) })
	}
	w.since[ref] = since
	at, _ := slices.BinarySearchFunc(w.order, since, func(other waiter, since time.Time) int {
		if other.since.After(since) {
			return 1
		}
		return -1 // after those of the same time
	})
	w.order = slices.Insert(w.order, at, waiter{ref: ref, since: since})
	return true
}

func (w *waitlist) counts(last waiter) bool {
	since, waits := w.since[last.ref]
	return waits && since.Equal(last.since)
}

// earliest returns the time of the object that waits for the earliest listing, and
// whether any waits.
func (w *waitlist) earliest() (since time.Time, waits bool) {
	for len(w.order) > 0 && !w.counts(w.order[0]) {
		w.order = w.order[1:]
	}
	if len(w.order) == 0 {
		return time.Time{}, false
	}
	return w.order[0].since, true
}

// latest is earliest for the latest listing.
func (w *waitlist) latest() (since time.Time, waits bool) {
	for len(w.order) > 0 && !w.counts(w.order[len(w.order)-1]) {
		w.order = w.order[:len(w.order)-1]
	}
	if len(w.order) == 0 {
		return time.Time{}, false
	}
	return w.order[len(w.order)-1].since, true
}

// take removes and returns the objects that a listing begun at this time serves.
func (w *waitlist) take(begun time.Time) []Ref {
	var refs []Ref
	for since, waits := w.earliest(); waits && !begun.Before(since); since, waits = w.earliest() {
		refs = append(refs, w.order[0].ref)
		w.drop(w.order[0].ref)
	}
	return refs
}

// takeAll removes and returns all objects.
func (w *waitlist) takeAll() []Ref {
	refs := make([]Ref, 0, len(w.since))
	for ref := range w.since {
		refs = append(refs, ref)
	}
	*w = *newWaitlist()
	return refs
}

// drop removes an object.
func (w *waitlist) drop(ref Ref) { delete(w.since, ref) }
