package inventory

import "time"

// requestComparison has the Cloud reconciled, which calls Reported.
func (i *Inventory) requestComparison() {
	i.notifier.requestPoll(i.name, max(publishInterval, i.untilComparison()))
}

// untilComparison returns the time until Reported returns a snapshot. The caller holds the lock.
func (i *Inventory) untilComparison() time.Duration {
	w, interval := i.watch, i.settings.PollInterval
	if w.offered != nil || w.absent(i.snapshot) || i.awaitsComparison() {
		interval = min(interval, minPollInterval)
	}
	return max(0, interval-i.clock().Sub(w.comparedAt))
}

// awaitsComparison reports whether an object waits for a listing, and a comparison of what
// was reported does as well.
func (i *Inventory) awaitsComparison() bool {
	since, waits := i.afterListing.earliest()
	return waits && i.servedByReports(since)
}

// servedByReports reports whether a comparison is as new as a listing begun at since.
func (i *Inventory) servedByReports(since time.Time) bool {
	return i.watched() && !since.After(i.watch.asOf)
}

// absent reports whether a server that the snapshot has was reported to be gone.
func (w *watch) absent(snap *Snapshot) bool {
	for id, r := range w.pending {
		if r.server == nil && snap.Has(id) {
			return true
		}
	}
	return false
}

// Reported returns a snapshot of all that a watch reported, absences included, which is
// to be compared and published as a listing is. It returns nil if none is due: one is
// due each poll interval, as a listing is without a watch, and soon after a full set or
// an absence was reported, at most once a second.
func (i *Inventory) Reported() *Snapshot {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := i.watch
	if !i.watched() || i.untilListing() == 0 || i.untilComparison() > 0 {
		return nil
	}
	w.comparedAt = i.clock()
	base, by := i.snapshot, changes{}
	if w.offered != nil {
		base = w.offered
		for id, r := range w.recent {
			by[id] = r.server
		}
		i.polled()
	}
	for id, r := range w.pending {
		by[id] = r.server
	}
	snap, _ := base.amended(by)
	if w.exceeded = snap.tooLarge(); w.exceeded != nil {
		w.healthy = false
		return nil
	}
	snap.ID, snap.Begun = snapshotID(w.comparedAt), later(snap.Begun, w.asOf)
	snap.current = snap.Begun
	w.compared, w.comparedSet = snap, w.offered
	w.begin()
	w.pace.forget(w.comparedAt)
	return w.compared
}

// published records that a snapshot is published, and reports whether it is a listing.
// Reports that it has are done. The caller holds the lock.
func (i *Inventory) published(snap *Snapshot) (listed bool) {
	w := i.watch
	listed = snap != w.compared
	if w.offered != nil && (!listed && w.offered == w.comparedSet || listed && !snap.Begun.Before(w.offered.Begun)) {
		w.offered = nil
	}
	w.compared, w.comparedSet = nil, nil // they take as much memory as the snapshot
	for id, r := range w.pending {
		_, since := w.recent[id]
		switch {
		case r.server == nil && !snap.Has(id):
			w.differs = i.overlay.deleted(id, i.clock(), i.settings.SettleTime) || w.differs
			delete(w.pending, id)
		case r.server != nil && !since: // the snapshot has this report or is newer
			delete(w.pending, id)
		}
	}
	return listed
}

// completed returns a snapshot with what a watch reported since the snapshot was begun,
// except absences, which are compared next. Its servers are then as new as those of the
// last one.
func (i *Inventory) completed(snap *Snapshot) *Snapshot {
	w := i.watch
	if !w.healthy {
		return snap
	}
	by := changes{}
	for id, r := range w.recent {
		if r.server != nil {
			by[id] = r.server
		} else if snap.Has(id) {
			w.pending[id] = r // also if the last snapshot lacks the server
		}
	}
	complete, _ := snap.amended(by)
	if i.snapshot != nil {
		complete.current = later(complete.current, i.snapshot.current)
	}
	return complete
}
