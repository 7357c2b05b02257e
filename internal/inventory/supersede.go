package inventory

import (
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// published is what publish changed.
type published struct {
	// superseded are the IDs of the servers whose answers no longer hide the listing.
	superseded []string
	// progress is whether the transitional state of any server changed.
	progress bool
}

// publish discards the answers that are older than the listing, except those on
// created servers that the listing may not show yet.
func (o *overlay) publish(snap *Snapshot, settleTime time.Duration, now time.Time) (p published) {
	for id := range o.entries {
		o.compare(id, snap, settleTime, now, &p)
	}
	for server := range snap.owned.all() {
		if server.state.Transitional() && server.owner.cluster == o.cluster {
			p.progress = o.track(server.id, server.state, now) || p.progress
		}
	}
	o.takeAnswers(snap.current)
	return p
}

// amend is publish for a snapshot that differs from the last one in these servers alone,
// and is not begun later. It looks at them and at the answers that are older now.
func (o *overlay) amend(snap *Snapshot, ids []string, settleTime time.Duration, now time.Time) (p published) {
	for _, older := range o.takeAnswers(snap.current) {
		o.compare(older.id, snap, settleTime, now, &p)
	}
	for _, id := range ids {
		o.compare(id, snap, settleTime, now, &p)
		if server := snap.ids.get(id); server != nil && !ownerless(server) && server.owner.cluster == o.cluster {
			p.progress = o.track(id, server.state, now) || p.progress
		}
	}
	return p
}

// takeAnswers takes the answers that were recorded before a time.
func (o *overlay) takeAnswers(before time.Time) []recording {
	n := 0
	for n < len(o.answers) && o.answers[n].at.Before(before) {
		n++
	}
	older := o.answers[:n]
	if o.answers = o.answers[n:]; len(o.answers) == 0 {
		o.answers = nil
	}
	return older
}

// compare compares what is known of a server with a new snapshot.
func (o *overlay) compare(id string, snap *Snapshot, settleTime time.Duration, now time.Time, p *published) {
	e, ok := o.entries[id]
	if !ok {
		return
	}
	if e.recorded() && e.recordedAt.Before(snap.knownUntil(id)) && o.supersede(id, e, snap, settleTime) {
		p.superseded = append(p.superseded, id)
	}
	p.progress = o.track(id, snap.state(id), now) || p.progress
}

// supersede replaces what is recorded of a server by a newer listing, and
// reports whether that changed what is known of the server.
func (o *overlay) supersede(id string, e *overlayEntry, snap *Snapshot, settleTime time.Duration) bool {
	server := snap.ids.get(id)
	listed, wasListed := server != nil, e.listed
	switch {
	case !e.retained(snap.Begun, settleTime), listed && server.state == cloud.StateDeleting:
		o.discard(id)
		return !listed || !wasListed
	case listed:
		o.set(e, func() { e.server, e.listed = server, true })
		return !wasListed
	default:
		o.set(e, func() { e.listed = false })
		return false
	}
}

// reread replaces what is recorded of a server by what was reported of it, if the cloud
// says that it changed since the answer. It reports whether that changed what is known
// of the server. begun is the time up to which the last snapshot has all changes.
func (o *overlay) reread(id string, server *listed, updatedAt, begun time.Time, settleTime time.Duration) bool {
	e, ok := o.entries[id]
	if !ok || !e.recorded() || e.listed || e.updatedAt.IsZero() || !updatedAt.After(e.updatedAt) {
		return false
	}
	if e.retained(begun, settleTime) {
		o.set(e, func() { e.server, e.listed = server, true })
	} else {
		o.discard(id)
	}
	return true
}

// deleted records that a server was reported to be gone. It discards the answer that its
// deletion began. A server that was created within the settle time is known further on,
// and so is any other answer that is newer than the last listing. deleted reports whether
// one hides the report.
func (o *overlay) deleted(id string, now time.Time, settleTime time.Duration) (hidden bool) {
	e, ok := o.entries[id]
	switch {
	case !ok:
	case e.state() == cloud.StateDeleting, e.listed && !e.retained(now, settleTime):
		o.discard(id)
	default:
		o.set(e, func() { e.listed = false })
	}
	return o.recorded(id) != nil
}

// differs reports whether an answer hides what was reported of a server, and says
// something else.
func (o *overlay) differs(id string, reported *listed) bool {
	answer := o.recorded(id)
	if answer == nil {
		return false
	}
	known := *answer
	known.utilization = reported.utilization // answers may lack it
	return !equalServers(&known, reported)
}
