package leader_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/privatecloud/operator/internal/leader"
)

const (
	me   = "me"
	term = 10 * time.Second
)

// lease is a lease in memory.
type lease struct {
	resourcelock.Interface

	held    resourcelock.LeaderElectionRecord
	refusal error
	// onWrite is called while a request is under way.
	onWrite func()
}

func (l *lease) Identity() string { return me }

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &l.held, nil, l.refusal
}

func (l *lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func (l *lease) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	l.onWrite()
	if l.refusal == nil {
		l.held = r
	}
	return l.refusal
}

// clock is a clock that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func TestLeading(t *testing.T) {
	holder := func(name string) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: name}
	}
	type world struct {
		t     *testing.T
		lease *lease
		clock *clock
		lock  *leader.Lock
	}
	update := func(name string) func(*world) {
		return func(w *world) { _ = w.lock.Update(w.t.Context(), holder(name)) }
	}
	after := func(d time.Duration) func(*world) { return func(w *world) { w.clock.at = w.clock.at.Add(d) } }
	refuse := func(w *world) { w.lease.refusal = errors.New("no route to host") }
	read := func(w *world) { _, _, _ = w.lock.Get(w.t.Context()) }
	slow := func(w *world) { w.lease.onWrite = func() { w.clock.at = w.clock.at.Add(6 * time.Second) } }
	tests := map[string]struct {
		do   []func(*world)
		want bool
	}{
		"nothing was written: false":                             {},
		"the lease was acquired: true":                           {do: []func(*world){update(me)}, want: true},
		"the lease was created: true":                            {do: []func(*world){func(w *world) { _ = w.lock.Create(w.t.Context(), holder(me)) }}, want: true},
		"within the term: true":                                  {do: []func(*world){update(me), after(term - 1)}, want: true},
		"the term has passed: false":                             {do: []func(*world){update(me), after(term)}},
		"the term has passed by the wall clock: false":           {do: []func(*world){update(me), func(w *world) { w.clock.at = w.clock.at.Round(0).Add(term) }}},
		"renewed after the term: true":                           {do: []func(*world){update(me), after(term), update(me)}, want: true},
		"a renewal is refused: counted from the one before":      {do: []func(*world){update(me), after(term - 1), refuse, update(me), after(1)}},
		"a renewal takes long: counted from when it was sent":    {do: []func(*world){slow, update(me), after(4 * time.Second)}},
		"the lease was released: false":                          {do: []func(*world){update(me), update("")}},
		"the release is refused: false":                          {do: []func(*world){update(me), refuse, update("")}},
		"another process holds the lease when it is read: false": {do: []func(*world){update(me), func(w *world) { w.lease.held = holder("other") }, read}},
		"this process holds the lease when it is read: true":     {do: []func(*world){update(me), read}, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, lease: &lease{onWrite: func() {}}, clock: &clock{at: time.Now()}}
			w.lock = leader.Wrap(w.lease, term, w.clock.now, func() {})
			for _, do := range tc.do {
				do(w)
			}
			if got := w.lock.Leading(); got != tc.want {
				t.Errorf("Leading() = %v, want %v", got, tc.want)
			}
		})
	}
}
