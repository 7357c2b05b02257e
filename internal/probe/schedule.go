package probe

import "time"

// maxOfNamespace is how many dials of one namespace are in progress at a time, so that guests
// which do not answer leave some to others.
const maxOfNamespace = MaxInFlight * 3 / 4

// schedule orders entries by when they are due, and shares the dials between namespaces: of those
// that have an entry that is due, the one with the fewest dials in progress is next, if it has
// less than maxOfNamespace. Each operation takes time in
// proportion to the logarithm of the numbers of entries and namespaces.
type schedule struct {
	lanes map[string]*lane
	// ready are lanes with an entry that is due, and asleep those whose first entry is due later.
	ready, asleep *heapOf[*lane]
}

// lane is the entries of one namespace.
type lane struct {
	namespace string
	waiting   *heapOf[*entry]
	inFlight  int
	// in is the heap that the lane is in, nil for none, and index its place there.
	in    *heapOf[*lane]
	index int
}

func newSchedule() *schedule {
	return &schedule{
		lanes: map[string]*lane{},
		ready: lanesBy(func(a, b *lane) bool {
			return a.inFlight < b.inFlight || a.inFlight == b.inFlight && a.due().Before(b.due())
		}),
		asleep: lanesBy(func(a, b *lane) bool { return a.due().Before(b.due()) }),
	}
}

// put adds an entry that is neither waiting nor in flight.
func (s *schedule) put(e *entry, due time.Time) {
	l := s.lanes[e.key.Namespace]
	if l == nil {
		l = &lane{namespace: e.key.Namespace, waiting: byDue(), index: none}
		s.lanes[l.namespace] = l
	}
	s.change(l, func() {
		e.due = due
		l.waiting.add(e)
	})
}

// remove removes an entry if it is waiting.
func (s *schedule) remove(e *entry) {
	if l := s.lanes[e.key.Namespace]; e.index != none {
		s.change(l, func() { l.waiting.remove(e) })
	}
}

// next takes the entry that is to be dialled now, and counts its dial until done; nil if none
// is due that may be dialled before another one is done. Then wait is the time until one of
// another namespace is due, or idle.
func (s *schedule) next(now time.Time) (e *entry, wait time.Duration) {
	for s.asleep.Len() > 0 && !s.asleep.first().due().After(now) {
		l := s.asleep.first()
		s.move(l, s.ready)
	}
	switch {
	case s.ready.Len() > 0 && s.ready.first().inFlight < maxOfNamespace:
		l := s.ready.first()
		s.change(l, func() {
			e = l.waiting.first()
			l.waiting.remove(e)
			l.inFlight++
		})
		return e, 0
	case s.asleep.Len() > 0:
		return nil, s.asleep.first().due().Sub(now)
	}
	return nil, idle
}

// done ends the dial of an entry that next has returned.
func (s *schedule) done(e *entry) {
	l := s.lanes[e.key.Namespace]
	s.change(l, func() { l.inFlight-- })
}

// change changes a lane, and puts it where it belongs then: not yet among those that are ready,
// which next does.
func (s *schedule) change(l *lane, change func()) {
	s.move(l, nil)
	change()
	switch {
	case l.waiting.Len() > 0:
		s.move(l, s.asleep)
	case l.inFlight == 0:
		delete(s.lanes, l.namespace)
	}
}

func (s *schedule) move(l *lane, to *heapOf[*lane]) {
	if l.in != nil {
		l.in.remove(l)
	}
	if l.in = to; to != nil {
		to.add(l)
	}
}
