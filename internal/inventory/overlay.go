package inventory

import (
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// transitionTimeout is how long a server in a transitional state warrants
// faster polling. It is far longer than builds and deletes take: a server that
// is in such a state for longer is stuck, and is listed at the poll interval.
const transitionTimeout = 10 * time.Minute

// overlay is what this process knows of servers in addition to the last
// listing: what the cloud answered since the listing began, and which servers
// are expected to change soon.
type overlay struct {
	entries map[string]*overlayEntry
	// byOwner holds the IDs of recorded servers by the UID of their owner.
	byOwner map[string]map[string]struct{}
}

// overlayEntry is what is known of one server.
type overlayEntry struct {
	// server is the cloud's answer, which hides the listing. It was recorded at
	// recordedAt for the object with the UID owner. recordedAt is zero if the
	// last listing is newer than any answer.
	server     cloud.Server
	owner      string
	recordedAt time.Time

	// transition is the transitional state that the server is in by the answer
	// or by the last listing; empty if it is in none. It warrants faster polling
	// until deadline.
	transition cloud.State
	deadline   time.Time
}

func (e *overlayEntry) recorded() bool { return !e.recordedAt.IsZero() }

func newOverlay() *overlay {
	return &overlay{entries: map[string]*overlayEntry{}, byOwner: map[string]map[string]struct{}{}}
}

// record keeps an answer of the cloud on a server of owner.
func (o *overlay) record(owner string, server cloud.Server, now time.Time) {
	o.discard(server.ID)
	e, ok := o.entries[server.ID]
	if !ok {
		e = &overlayEntry{}
		o.entries[server.ID] = e
	}
	e.server, e.owner, e.recordedAt = server, owner, now
	if o.byOwner[owner] == nil {
		o.byOwner[owner] = map[string]struct{}{}
	}
	o.byOwner[owner][server.ID] = struct{}{}
}

// discard drops the recorded answer on a server, and reports whether there was
// one. The caller calls track afterwards.
func (o *overlay) discard(id string) bool {
	e, ok := o.entries[id]
	if !ok || !e.recorded() {
		return false
	}
	delete(o.byOwner[e.owner], id)
	if len(o.byOwner[e.owner]) == 0 {
		delete(o.byOwner, e.owner)
	}
	e.server, e.owner, e.recordedAt = cloud.Server{}, "", time.Time{}
	return true
}

// recorded returns the recorded answer on a server, if there is one.
func (o *overlay) recorded(id string) (cloud.Server, bool) {
	if e, ok := o.entries[id]; ok && e.recorded() {
		return e.server, true
	}
	return cloud.Server{}, false
}

// owned returns the recorded servers of owner.
func (o *overlay) owned(owner string) []cloud.Server {
	var found []cloud.Server
	for id := range o.byOwner[owner] {
		found = append(found, o.entries[id].server)
	}
	return found
}

// track updates which transitional state one of our servers is in, and drops
// the entry if there is nothing left to know. listed is the server's state in
// the last listing, empty if it is not listed. The deadline is that of the
// moment when the server was first known to be in the state: neither answers
// nor listings that repeat the state move it.
func (o *overlay) track(id string, listed cloud.State, now time.Time) {
	e, ok := o.entries[id]
	if !ok {
		e = &overlayEntry{}
	}
	state := listed
	if e.server.State.Transitional() {
		state = e.server.State
	}
	switch {
	case !state.Transitional():
		e.transition, e.deadline = "", time.Time{}
	case state != e.transition:
		e.transition, e.deadline = state, now.Add(transitionTimeout)
	}
	switch {
	case e.transition == "" && !e.recorded():
		delete(o.entries, id)
	case !ok:
		o.entries[id] = e
	}
}

// publish discards the answers that are older than the listing, and returns
// the IDs of their servers.
func (o *overlay) publish(snap *Snapshot, now time.Time) (superseded []string) {
	for id, e := range o.entries {
		if e.recorded() && e.recordedAt.Before(snap.Begun) {
			o.discard(id)
			superseded = append(superseded, id)
		}
		o.track(id, snap.servers[id].State, now)
	}
	for _, id := range snap.transitional {
		o.track(id, snap.servers[id].State, now)
	}
	return superseded
}

// awaited reports whether a server's state warrants faster polling.
func (o *overlay) awaited(id string, now time.Time) bool {
	e, ok := o.entries[id]
	return ok && now.Before(e.deadline)
}

// awaitsAny reports whether the state of any server warrants faster polling.
func (o *overlay) awaitsAny(now time.Time) bool {
	for _, e := range o.entries {
		if now.Before(e.deadline) {
			return true
		}
	}
	return false
}
