package inventory

import (
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// transitionTimeout is how long a server in a transitional state warrants
// faster polling. It is far longer than builds and deletes take: a server that
// is in such a state for longer is stuck, and is listed at the poll interval.
const transitionTimeout = 10 * time.Minute

// maxTransitions bounds the servers that are tracked because a listing shows them in
// a transitional state. A cloud can list any number of servers with the labels of this
// cluster, and a few suffice for faster polling.
const maxTransitions = 10_000

// overlay is what this process knows of servers in addition to the last
// listing: what the cloud answered since the listing began, which servers it
// created lately, and which servers are expected to change soon.
type overlay struct {
	// cluster is the value of ClusterLabel of this cluster's servers. Listings of
	// other clusters' servers are not tracked.
	cluster string
	entries map[string]*overlayEntry
	// byOwner holds the IDs of recorded servers by the UID of their owner.
	byOwner map[string]map[string]struct{}
	// answers are those that were recorded and that no snapshot is newer than, in order.
	// One that was replaced since is still among them.
	answers []recording
	// hiding is how many answers hide the last snapshot.
	hiding int
	// awaited are the entries in a transition whose deadline is not known to have passed.
	awaited map[string]*overlayEntry
}

// recording is that an answer on a server was recorded.
type recording struct {
	id string
	at time.Time
}

// overlayEntry is what is known of one server.
type overlayEntry struct {
	// server is the cloud's answer, which hides the listing. It was recorded at
	// recordedAt for the object with the UID owner. recordedAt is zero if the
	// last listing is newer than any answer. server is nil where there was none.
	// updatedAt is that of the answer, by the cloud's own clock; zero if it has none.
	server                *listed
	owner                 string
	recordedAt, updatedAt time.Time

	// createdAt is when the answer to the server's create was recorded; zero if this
	// process did not create it. Until the settle time has passed since, a listing
	// that lacks the server does not end the record.
	createdAt time.Time
	// listed is whether the last listing shows the created server and is newer than
	// any answer. Then server is what was listed, and hides nothing.
	listed bool

	// transition is the transitional state that the server is in by the answer
	// or by the last listing; empty if it is in none. It warrants faster polling
	// until deadline.
	transition cloud.State
	deadline   time.Time
}

func (e *overlayEntry) recorded() bool { return !e.recordedAt.IsZero() }

// hides reports whether the answer hides the last snapshot.
func (e *overlayEntry) hides() bool { return e.recorded() && !e.listed }

// state returns the state of the server by the cloud's answer, empty without one.
func (e *overlayEntry) state() cloud.State {
	if e.server == nil {
		return ""
	}
	return e.server.state
}

// retained reports whether a listing that began at begun and lacks the server
// proves nothing: the cloud may show a created server late. A server whose
// deletion began is expected to disappear.
func (e *overlayEntry) retained(begun time.Time, settleTime time.Duration) bool {
	return !e.createdAt.IsZero() && begun.Before(e.createdAt.Add(settleTime)) && e.state() != cloud.StateDeleting
}

func newOverlay(cluster string) *overlay {
	return &overlay{
		cluster: cluster, entries: map[string]*overlayEntry{}, byOwner: map[string]map[string]struct{}{}, awaited: map[string]*overlayEntry{},
	}
}

// set changes an entry, and counts whether it hides the snapshot.
func (o *overlay) set(e *overlayEntry, change func()) {
	before := e.hides()
	change()
	switch after := e.hides(); {
	case after && !before:
		o.hiding++
	case before && !after:
		o.hiding--
	}
}

// record keeps an answer of the cloud on a server of owner. created is whether
// it is the answer to the server's create.
func (o *overlay) record(owner string, server cloud.Server, now time.Time, created bool) {
	e, ok := o.entries[server.ID]
	if !ok {
		e = &overlayEntry{}
		o.entries[server.ID] = e
	}
	createdAt := e.createdAt
	switch {
	case created:
		createdAt = now
	case e.owner != owner && !createdAt.IsZero() && server.State == cloud.StateDeleting:
		return // the answer to a deletion of another owner: the cloud has given the id again
	}
	o.discard(server.ID)
	o.set(e, func() {
		e.server, e.owner, e.recordedAt, e.createdAt, e.updatedAt = newListed(&server), owner, now, createdAt, server.UpdatedAt
	})
	o.answers = append(o.answers, recording{id: server.ID, at: now})
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
	o.set(e, func() {
		e.server, e.owner, e.recordedAt, e.createdAt, e.updatedAt, e.listed = nil, "", time.Time{}, time.Time{}, time.Time{}, false
	})
	return true
}

// createdAfter reports whether an answer to a create of a server was recorded after a time.
func (o *overlay) createdAfter(id string, at time.Time) bool {
	e, ok := o.entries[id]
	return ok && e.createdAt.After(at)
}

// recorded returns the recorded answer on a server, nil if there is none that hides
// the listing.
func (o *overlay) recorded(id string) *listed {
	if e, ok := o.entries[id]; ok && e.hides() {
		return e.server
	}
	return nil
}

// owned returns the recorded servers of owner that hide the listing.
func (o *overlay) owned(owner string) []cloud.Server {
	var found []cloud.Server
	for id := range o.byOwner[owner] {
		if answer := o.recorded(id); answer != nil {
			found = append(found, answer.server())
		}
	}
	return found
}

// track updates which transitional state one of our servers is in, and drops
// the entry if there is nothing left to know. It reports whether the state
// changed. listed is the server's state in the last listing, empty if it is not
// listed. The deadline is that of the moment when the server was first known to
// be in the state: neither answers nor listings that repeat the state move it.
func (o *overlay) track(id string, listed cloud.State, now time.Time) (changed bool) {
	e, ok := o.entries[id]
	if !ok {
		e = &overlayEntry{}
	}
	state, was := listed, e.transition
	if e.state().Transitional() {
		state = e.state()
	}
	switch {
	case !state.Transitional():
		e.transition, e.deadline = "", time.Time{}
		delete(o.awaited, id)
	case state != e.transition:
		if !ok && len(o.entries) >= maxTransitions {
			return false
		}
		e.transition, e.deadline = state, now.Add(transitionTimeout)
		o.entries[id], o.awaited[id] = e, e
	}
	if e.transition == "" && !e.recorded() {
		delete(o.entries, id)
	}
	return e.transition != was
}

// hidesAny reports whether any answer hides the last snapshot.
func (o *overlay) hidesAny() bool { return o.hiding > 0 }

// awaitsAny reports whether the state of any server warrants faster polling.
func (o *overlay) awaitsAny(now time.Time) bool {
	for id, e := range o.awaited {
		if now.Before(e.deadline) {
			return true
		}
		delete(o.awaited, id)
	}
	return false
}
