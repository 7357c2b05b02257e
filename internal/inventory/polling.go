package inventory

import (
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/jitter"
)

// EnqueueWhenAvailable enqueues ref once the cloud is available (again), or at
// once if that has happened since view was taken.
func (i *Inventory) EnqueueWhenAvailable(ref Ref, view View) {
	i.mu.Lock()
	missed := i.resumed != view.resumed || i.removed
	if !missed {
		i.waiting[ref] = struct{}{}
	}
	i.mu.Unlock()
	if missed {
		i.notifier.notify(Event{Cloud: i.name, Refs: []Ref{ref}})
	}
}

// EnqueueAfterListing enqueues ref when a listing begun at or after since is
// published, and requests a listing.
func (i *Inventory) EnqueueAfterListing(ref Ref, since time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.removed {
		i.notifier.notify(Event{Cloud: i.name, Refs: []Ref{ref}})
		return
	}
	if i.afterListing.add(ref, since) {
		// An object that the last listing did not help waits for the next one with back-off.
		if _, again := i.served[ref]; !again {
			i.idlePolls = 0
		}
	}
	i.notifier.requestPoll(i.name, minPollInterval)
}

// RequestPoll requests a listing soon, for example after a call failed in a way
// that the Cloud should report.
func (i *Inventory) RequestPoll() {
	i.mu.Lock()
	i.pollRequested, i.idlePolls = true, 0
	i.mu.Unlock()
	i.notifier.requestPoll(i.name, minPollInterval)
}

const (
	// minPollInterval is the least time between two listings.
	minPollInterval = time.Second
	// unavailableInterval is the most time between two tries while the cloud is unavailable.
	unavailableInterval = 10 * time.Second
)

// NextPoll returns the time until the next listing or comparison is due, 0 when one is.
// For a listing that is the poll interval with a tenth of jitter, or more while a
// watch reports what changes and no answer hides the snapshot. It is sooner while a
// server is expected to change or a listing was requested. The time doubles with each
// listing in which no such server changed its state, and listing never takes more than
// a quarter of the time.
func (i *Inventory) NextPoll() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	next := i.untilListing()
	if i.watched() {
		next = min(next, i.untilComparison())
	}
	return next
}

// watched reports whether a watch keeps the snapshot up to date.
func (i *Inventory) watched() bool {
	return i.watch.healthy && i.snapshot != nil && i.unavailable == ""
}

// untilListing returns the time until the next listing is due. The caller holds the lock.
func (i *Inventory) untilListing() time.Duration {
	if i.polledAt.IsZero() {
		return 0
	}
	now, interval := i.clock(), i.interval
	switch {
	case i.unavailable != "":
		interval = min(interval, unavailableInterval)
	case i.awaitsChange(now):
		soon := minPollInterval << min(i.idlePolls, 10)
		if i.snapshot != nil {
			soon = max(soon, 4*i.snapshot.Took)
		}
		interval = min(interval, soon)
	case i.watched() && !i.overlay.hidesAny():
		interval = i.untilCheck(interval)
	}
	return max(0, interval-now.Sub(i.polledAt))
}

// untilCheck returns the time between two listings that check what a watch reports:
// checkIntervals poll intervals. Where the listing has the utilization of the servers,
// which a watch does not report, it is maxUtilizationAge at most, but never less than
// the interval.
func (i *Inventory) untilCheck(interval time.Duration) time.Duration {
	check := checkIntervals * interval
	if i.caps.Has(cloud.BulkStatus) {
		return max(interval, min(check, maxUtilizationAge))
	}
	return check
}

// awaitsChange reports whether a listing is wanted before the interval is over. A watch
// reports by itself what servers change to.
func (i *Inventory) awaitsChange(now time.Time) bool {
	return i.pollRequested || i.awaitsListing() || i.watch.differs || (!i.watched() && i.overlay.awaitsAny(now))
}

// awaitsListing reports whether an object waits for a listing that a comparison of what a
// watch reported does not replace.
func (i *Inventory) awaitsListing() bool {
	since, waits := i.afterListing.latest()
	return waits && !i.servedByReports(since)
}

// Polling records that a listing begins.
func (i *Inventory) Polling() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pollRequested, i.watch.differs = false, false
	i.watch.begin()
	i.polled()
}

// polled records that the servers are listed. The caller holds the lock.
func (i *Inventory) polled() {
	i.polledAt = i.clock()
	i.interval = time.Duration(float64(i.settings.PollInterval) * (0.9 + 0.2*jitter.Fraction()))
}
