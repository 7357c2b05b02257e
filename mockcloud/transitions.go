package mockcloud

import (
	"container/heap"
	"time"
)

type dueKind int

const (
	dueReady dueKind = iota
	dueGone
	dueOff
	dueForget
	dueOperation
)

// due is a transition at a future time. A transition of a server that has changed
// since is ignored when its time comes.
type due struct {
	at   time.Time
	what dueKind
	id   string
}

type dueHeap []due

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(due)) }
func (h *dueHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func (h *dueHeap) add(d due) { heap.Push(h, d) }

// transitions applies the state changes that happen after some time.
type transitions struct {
	core      *core
	records   *records
	servers   *servers
	snapshots *snapshots
}

// advance applies the transitions that are due. Every call begins with it, so that
// responses depend on the clock and not on the scheduling of goroutines.
func (t *transitions) advance() {
	next := t.core.nextDue.Load()
	if next == 0 || t.core.now().UnixNano() < next {
		return
	}
	t.core.mu.Lock()
	defer t.core.mu.Unlock()
	now := t.core.now()
	for len(t.core.st.due) > 0 && !t.core.st.due[0].at.After(now) {
		t.apply(heap.Pop(&t.core.st.due).(due))
	}
	t.core.updateNextDue()
}

func (t *transitions) apply(d due) {
	var err error
	switch d.what {
	case dueReady:
		r := t.core.st.servers[d.id]
		if r == nil || r.State != StateBuilding || !r.ReadyAt.Equal(d.at) {
			return
		}
		next := r.clone()
		next.ReadyAt, next.UpdatedAt = time.Time{}, d.at
		next.State = stateFor(next.PowerState)
		err = t.records.replace(next)
	case dueGone:
		r := t.core.st.servers[d.id]
		if r == nil || r.State != StateDeleting || !r.GoneAt.Equal(d.at) {
			return
		}
		err = t.records.remove(r, d.at, LedgerEntry{Op: OpGone, Time: d.at})
	case dueOff:
		r := t.core.st.servers[d.id]
		if r == nil || !r.OffAt.Equal(d.at) {
			return
		}
		err = t.records.replace(r.shutDown(d.at))
	case dueOperation:
		err = t.endOperation(d.id, d.at)
	case dueForget:
		delete(t.core.st.keys, d.id)
		err = t.core.store.Write(Change{Bucket: bucketKeys, Key: d.id})
	}
	if err != nil {
		t.core.log.Error("storing a transition failed", "id", d.id, "error", err)
	}
}

// updateNextDue sets the time of the next transition. The caller holds mu.
func (c *core) updateNextDue() {
	var next int64
	if len(c.st.due) > 0 {
		next = c.st.due[0].at.UnixNano()
	}
	if c.nextDue.Swap(next) != next {
		select {
		case c.dueChanged <- struct{}{}:
		default:
		}
	}
}

// run applies transitions when they are due, so that their events are
// sent while there are no calls.
func (t *transitions) run() {
	for {
		var timer <-chan time.Time
		if next := t.core.nextDue.Load(); next != 0 {
			timer = t.core.clock.After(time.Unix(0, next).Sub(t.core.clock.Now()))
		}
		select {
		case <-t.core.closed:
			return
		case <-t.core.dueChanged:
		case <-timer:
			t.advance()
		}
	}
}
