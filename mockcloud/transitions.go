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

// advance applies the transitions that are due. Every call begins with it, so that
// responses depend on the clock and not on the scheduling of goroutines.
func (c *Cloud) advance() {
	next := c.core.nextDue.Load()
	if next == 0 || c.core.now().UnixNano() < next {
		return
	}
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	now := c.core.now()
	for len(c.core.st.due) > 0 && !c.core.st.due[0].at.After(now) {
		c.apply(heap.Pop(&c.core.st.due).(due))
	}
	c.core.updateNextDue()
}

func (c *Cloud) apply(d due) {
	var err error
	switch d.what {
	case dueReady:
		r := c.core.st.servers[d.id]
		if r == nil || r.State != StateBuilding || !r.ReadyAt.Equal(d.at) {
			return
		}
		next := r.clone()
		next.ReadyAt, next.UpdatedAt = time.Time{}, d.at
		next.State = stateFor(next.PowerState)
		err = c.records.replace(next)
	case dueGone:
		r := c.core.st.servers[d.id]
		if r == nil || r.State != StateDeleting || !r.GoneAt.Equal(d.at) {
			return
		}
		err = c.records.remove(r, d.at, LedgerEntry{Op: OpGone, Time: d.at})
	case dueOff:
		r := c.core.st.servers[d.id]
		if r == nil || !r.OffAt.Equal(d.at) {
			return
		}
		err = c.records.replace(r.shutDown(d.at))
	case dueOperation:
		err = c.endOperation(d.id, d.at)
	case dueForget:
		delete(c.core.st.keys, d.id)
		err = c.core.store.Write(Change{Bucket: bucketKeys, Key: d.id})
	}
	if err != nil {
		c.core.log.Error("storing a transition failed", "id", d.id, "error", err)
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

// runTransitions applies transitions when they are due, so that their events are
// sent while there are no calls.
func (c *Cloud) runTransitions() {
	for {
		var timer <-chan time.Time
		if next := c.core.nextDue.Load(); next != 0 {
			timer = c.core.clock.After(time.Unix(0, next).Sub(c.core.clock.Now()))
		}
		select {
		case <-c.core.closed:
			return
		case <-c.core.dueChanged:
		case <-timer:
			c.advance()
		}
	}
}
