package mockcloud

import (
	"container/heap"
	"time"
)

type dueKind int

const (
	dueReady dueKind = iota
	dueGone
	dueForget
)

// due is something that time alone will do. An entry whose server has changed
// meanwhile is void and is recognised when it comes up.
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

// advance does what is due by now. Every call begins with it, so that what a
// client sees depends on the clock alone and not on when a goroutine ran.
func (c *Cloud) advance() {
	next := c.nextDue.Load()
	if next == 0 || c.now().UnixNano() < next {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for len(c.st.due) > 0 && !c.st.due[0].at.After(now) {
		c.apply(heap.Pop(&c.st.due).(due))
	}
	c.noteDue()
}

func (c *Cloud) apply(d due) {
	var err error
	switch d.what {
	case dueReady:
		r := c.st.servers[d.id]
		if r == nil || r.State != StateBuilding || !r.ReadyAt.Equal(d.at) {
			return
		}
		next := r.clone()
		next.ReadyAt, next.UpdatedAt = time.Time{}, d.at
		next.State = settled(next.PowerState)
		err = c.replace(next)
	case dueGone:
		r := c.st.servers[d.id]
		if r == nil || r.State != StateDeleting || !r.GoneAt.Equal(d.at) {
			return
		}
		err = c.remove(r, d.at, LedgerEntry{Op: OpGone, Time: d.at})
	case dueForget:
		delete(c.st.keys, d.id)
		err = c.store.Write(Change{Bucket: bucketKeys, Key: d.id})
	}
	if err != nil {
		c.log.Error("a transition was not stored", "id", d.id, "error", err)
	}
}

// noteDue publishes when the next transition is due. The caller holds mu.
func (c *Cloud) noteDue() {
	var next int64
	if len(c.st.due) > 0 {
		next = c.st.due[0].at.UnixNano()
	}
	if c.nextDue.Swap(next) != next {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// tick keeps transitions, and the events that they cause, coming while no
// client calls.
func (c *Cloud) tick() {
	for {
		var timer <-chan time.Time
		if next := c.nextDue.Load(); next != 0 {
			timer = c.clock.After(time.Unix(0, next).Sub(c.clock.Now()))
		}
		select {
		case <-c.closed:
			return
		case <-c.wake:
		case <-timer:
			c.advance()
		}
	}
}
