package inventory

import (
	"maps"
	"slices"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// publishInterval is the least time between two snapshots that a watch causes.
	publishInterval = 200 * time.Millisecond
	// checkIntervals is how many poll intervals pass between two listings while a watch
	// reports what changes.
	checkIntervals = 10
	// maxUtilizationAge is the age to which a watch lets the utilization of servers grow,
	// which autoscalers read.
	maxUtilizationAge = time.Minute
)

// watch is what a cloud.Watcher reported and what is still to be done with it.
type watch struct {
	// healthy is whether a full set was reported, and what changed since.
	healthy bool
	// full is the full set that is being reported, and offered one that is complete and
	// has not been compared; nil if there is none.
	full    *intake
	offered *Snapshot
	// pending was reported and is not in the snapshot. Absences stay here until a
	// snapshot without the servers is published.
	pending map[string]report
	// recent was reported since the listing or comparison that is under way began.
	// Absences do not count.
	recent map[string]report
	// bytes is the memory of recent.
	bytes int
	// asOf is the latest AsOf.
	asOf time.Time
	// publishedAt is when reports were last published, and timer publishes the next ones at
	// publishAt; nil if none is to.
	publishedAt, publishAt time.Time
	timer                  *time.Timer
	pace                   pace
	// comparedAt is when Reported last returned a snapshot, which is compared, and
	// comparedSet is the full set that it was made from, if there was one.
	comparedAt  time.Time
	compared    *Snapshot
	comparedSet *Snapshot
	// differs is whether a note hides what was reported of a server, and says something
	// else: a listing decides.
	differs bool
	// exceeded is why no more is taken; nil if it is.
	exceeded error
}

// report is a server as it was reported; nil if it is gone. updatedAt may be zero.
type report struct {
	server    *listed
	updatedAt time.Time
}

func newWatch() *watch {
	return &watch{pending: map[string]report{}, recent: map[string]report{}, pace: pace{}}
}

// Apply takes what the watch of a client reports. Servers that appeared or changed are
// published within publishInterval. A full set, and servers that are gone, are not
// published by themselves: the Cloud is reconciled, which compares them as it compares
// a listing. Apply fails if the client is not the connected one any more or before the
// servers were listed, and if more is reported than a listing may have.
func (i *Inventory) Apply(from cloud.Client, change cloud.Change) error {
	i.mu.Lock()
	event, err := i.apply(from, change)
	i.mu.Unlock()
	if event != nil {
		i.notifier.notify(*event)
	}
	return err
}

func (i *Inventory) apply(from cloud.Client, change cloud.Change) (*Event, error) {
	w := i.watch
	switch {
	case from == nil || i.client != from || i.snapshot == nil:
		return nil, &cloud.Error{Kind: cloud.Unavailable, Op: "watch servers", Detail: "the client is not in use"}
	case w.exceeded != nil:
		return nil, w.exceeded
	case change.Complete:
		return nil, i.takeSet(change)
	}
	for s := range change.Servers {
		server := newListed(&change.Servers[s])
		if server.owner != nil && server.owner.cluster == i.overlay.cluster {
			server.owner.cluster = i.overlay.cluster
		}
		before := i.snapshot.ids.get(server.id)
		if before != nil {
			server.sharing(before)
		}
		server.reported = before == nil || before.reported
		w.take(server.id, report{server: server, updatedAt: change.Servers[s].UpdatedAt})
	}
	for _, id := range change.Gone {
		w.take(id, report{})
	}
	if change.AsOf.After(w.asOf) {
		w.asOf = change.AsOf
	}
	if w.exceeded = w.tooMany(); w.exceeded != nil {
		return nil, w.exceeded
	}
	return i.publishSoon(), w.exceeded
}

func (w *watch) take(id string, r report) {
	if before := w.recent[id]; before.server != nil {
		w.bytes -= costOf(before.server)
	}
	if r.server != nil {
		w.bytes += costOf(r.server)
	}
	w.pending[id], w.recent[id] = r, r
}

func (w *watch) tooMany() error {
	if len(w.recent) <= maxServers && len(w.pending) <= maxServers && w.bytes <= maxBytes {
		return nil
	}
	return &cloud.Error{Kind: cloud.Unreadable, Op: "watch servers", Detail: "the cloud reports more servers than the operator reads"}
}

// takeSet takes a part of a full set. The last one offers the set for comparison.
func (i *Inventory) takeSet(change cloud.Change) error {
	w := i.watch
	if w.full == nil {
		w.full = newIntake(newSnapshot(change.AsOf), nil, holdAll)
	}
	w.full.Begin()
	for _, server := range change.Servers {
		if err := w.full.Take(server); err != nil {
			return err
		}
	}
	if err := w.full.add(); err != nil || change.More {
		return err
	}
	snap := w.full.done()
	w.full, w.healthy = nil, true
	if !snap.Begun.Before(i.snapshot.Begun) {
		snap.Took = max(0, i.clock().Sub(snap.Begun))
		w.offered = snap
		i.requestComparison()
	}
	return nil
}

// begin begins the record of what is reported while servers are listed or compared. A
// record that a full set still needs goes on.
func (w *watch) begin() {
	if w.full != nil || w.offered != nil {
		return
	}
	clear(w.recent)
	w.bytes = 0
}

// publishSoon publishes what was reported, now or when publishInterval has passed.
func (i *Inventory) publishSoon() *Event {
	wait := publishInterval - i.clock().Sub(i.watch.publishedAt)
	if wait <= 0 {
		return i.publishReports()
	}
	i.publishWithin(wait)
	return nil
}

// publishWithin publishes what was reported when this time has passed, or sooner.
func (i *Inventory) publishWithin(wait time.Duration) {
	w, at := i.watch, i.clock().Add(wait)
	if w.timer != nil {
		if !w.publishAt.After(at) {
			return
		}
		w.timer.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		i.mu.Lock()
		var event *Event
		if i.watch == w && w.timer == timer {
			w.timer = nil
			event = i.publishReports()
		}
		i.mu.Unlock()
		if event != nil {
			i.notifier.notify(*event)
		}
	})
	w.timer, w.publishAt = timer, at
}

// publishReports makes a snapshot with the servers that were reported. Absences wait
// for a comparison, and so does Begun, which says what is absent: an absence that did not
// count at the last comparison must not be proved by a later time alone. It returns the
// event to send, nil if there is none. The caller holds the lock.
func (i *Inventory) publishReports() *Event {
	w := i.watch
	w.publishedAt = i.clock()
	by, ids := i.takePending()
	if w.absent(i.snapshot) || i.awaitsComparison() {
		i.requestComparison()
	}
	current := i.snapshot.current
	if len(w.pending) == 0 && w.offered == nil {
		current = later(current, w.asOf)
	}
	if len(by)+len(ids) == 0 && current.Equal(i.snapshot.current) {
		return nil
	}
	snap, changed := i.snapshot.amended(by)
	if w.exceeded = snap.tooLarge(); w.exceeded != nil {
		w.healthy = false // the next report ends the watch
		i.notifier.requestPoll(i.name, max(minPollInterval, i.untilListing()))
		return nil
	}
	w.pace.count(changed, w.publishedAt)
	snap.ID, snap.current = snapshotID(w.publishedAt), current
	noticed := i.overlay.amend(snap, slices.AppendSeq(slices.Clone(ids), maps.Keys(by)), i.settings.SettleTime, w.publishedAt)
	event := i.replace(snap, append(changed, ids...), nil)
	event.Servers = append(event.Servers, noticed.superseded...)
	for id := range by {
		w.differs = w.differs || i.overlay.differs(id, by[id])
	}
	if w.differs {
		i.notifier.requestPoll(i.name, max(minPollInterval, i.untilListing()))
	}
	return &event
}

// takePending takes the reports that are published now. It returns the servers that were
// reported, and the ids of those of which something else is known. The caller holds the lock.
func (i *Inventory) takePending() (by changes, ids []string) {
	w, held := i.watch, time.Duration(0)
	by = changes{}
	for id, r := range w.pending {
		wait := w.pace.wait(id, w.publishedAt)
		switch {
		case r.server != nil && wait > 0 && i.snapshot.Has(id):
			if held == 0 || wait < held {
				held = wait
			}
		case r.server != nil:
			by[id] = r.server
			ids = append(ids, i.reread(id, r)...)
			delete(w.pending, id)
		case !i.snapshot.Has(id) && (w.offered == nil || !w.offered.Has(id)):
			if i.overlay.recorded(id) != nil {
				ids, w.differs = append(ids, id), i.overlay.deleted(id, w.publishedAt, i.settings.SettleTime) || w.differs
			}
			delete(w.pending, id)
		}
	}
	if held > 0 {
		i.publishWithin(max(held, publishInterval))
	}
	return by, ids
}

// reread drops the note on a server if the report on it is newer: if it was read
// later, by the cloud's own clock. It returns the ids of the servers of which something
// else is known then.
func (i *Inventory) reread(id string, r report) []string {
	if i.overlay.reread(id, r.server, r.updatedAt, i.snapshot.Begun, i.settings.SettleTime) {
		return []string{id}
	}
	return nil
}

// WatchEnded records that the watch of a client ended: the servers are listed soon, and
// each poll interval again. What the watch reported is kept, but for absences, which the next
// listing shows.
func (i *Inventory) WatchEnded(from cloud.Client) {
	i.mu.Lock()
	var event *Event
	if i.client == from && i.snapshot != nil {
		maps.DeleteFunc(i.watch.pending, func(_ string, r report) bool { return r.server == nil })
		clear(i.watch.pace)
		event = i.publishReports()
		// The end may be that of the cloud.
		i.pollRequested = i.pollRequested || i.watch.healthy
		i.resetWatch()
		i.notifier.requestPoll(i.name, max(minPollInterval, i.untilListing()))
	}
	i.mu.Unlock()
	if event != nil {
		i.notifier.notify(*event)
	}
}

// resetWatch drops what a watch reported and was not published. The caller holds the lock.
func (i *Inventory) resetWatch() {
	if i.watch.timer != nil {
		i.watch.timer.Stop()
	}
	i.watch = newWatch()
}
