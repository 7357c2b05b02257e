package inventory_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

var dawn = time.Date(2026, 3, 1, 6, 0, 0, 0, time.UTC)

// clock tells the time that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func server(id string, change ...func(*cloud.Server)) cloud.Server {
	s := cloud.Server{ID: id, Name: "vm-" + id, State: cloud.StateActive, CreatedAt: dawn}
	for _, f := range change {
		f(&s)
	}
	return s
}

func named(name string) func(*cloud.Server) {
	return func(s *cloud.Server) { s.Name = name }
}

func in(state cloud.State) func(*cloud.Server) {
	return func(s *cloud.Server) { s.State = state }
}

func bornAfter(age time.Duration) func(*cloud.Server) {
	return func(s *cloud.Server) { s.CreatedAt = dawn.Add(age) }
}

func owned(uid, cluster string) func(*cloud.Server) {
	return func(s *cloud.Server) {
		s.Labels = map[string]string{inventory.UIDLabel: uid, inventory.ClusterLabel: cluster}
	}
}

// house is one inventory with its clock and all that it told.
type house struct {
	t     *testing.T
	clock *clock
	dir   *inventory.Directory
	inv   *inventory.Inventory
	wakes []inventory.Event
	haste []string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, clock: &clock{now: dawn}}
	h.dir = inventory.New(h.clock.Now)
	h.dir.Subscribe(func(w inventory.Event) {
		slices.Sort(w.Servers)
		slices.SortFunc(w.Refs, func(a, b inventory.Ref) int { return strings.Compare(a.Name, b.Name) })
		h.wakes = append(h.wakes, w)
	})
	h.dir.OnPollRequest(func(name string, within time.Duration) { h.haste = append(h.haste, name+" "+within.String()) })
	h.inv = h.dir.Cloud("home")
	return h
}

// list makes a listing begun now and ended took later.
func (h *house) list(took time.Duration, servers ...cloud.Server) *inventory.Snapshot {
	h.t.Helper()
	c := fake.New(fake.Options{})
	c.AddServers(servers...)
	c.OnCall(func(context.Context, fake.Verb, string) { h.clock.advance(took) })
	snap, err := inventory.List(h.t.Context(), c, h.clock.Now)
	if err != nil {
		h.t.Fatalf("List: %v", err)
	}
	return snap
}

func (h *house) publish(servers ...cloud.Server) {
	h.t.Helper()
	h.inv.Publish(h.list(0, servers...))
}

// told returns what was told since it was last asked.
func (h *house) told() []inventory.Event {
	wakes := h.wakes
	h.wakes = nil
	return wakes
}

func (h *house) wantTold(want ...inventory.Event) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.told(), cmpEmpty); diff != "" {
		h.t.Errorf("told (-want +got):\n%s", diff)
	}
}

// cmpEmpty takes nil slices and empty ones for the same.
var cmpEmpty = cmp.FilterValues(
	func(a, b []inventory.Ref) bool { return len(a) == 0 && len(b) == 0 },
	cmp.Comparer(func(_, _ []inventory.Ref) bool { return true }),
)

func ids(servers []cloud.Server) []string {
	var found []string
	for _, s := range servers {
		found = append(found, s.ID)
	}
	return found
}

func equal(t *testing.T, what string, want, got any, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
