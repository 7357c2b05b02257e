package inventory_test

import (
	"context"
	"errors"
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

// clock is a clock that a test advances.
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

// listing answers ListServers with its pages by marker, and records the calls.
// Its pages may break the contract of cloud.Client, which a fake.Cloud keeps.
type listing struct {
	cloud.ServerReader
	pages map[string]cloud.ServerPage
	fail  map[string]error
	// each is called before a page is answered.
	each  func()
	asked []cloud.ListServers
}

func (l *listing) ListServers(_ context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	l.asked = append(l.asked, opts)
	if l.each != nil {
		l.each()
	}
	return l.pages[opts.Marker], l.fail[opts.Marker]
}

// pages chains pages by the markers "1", "2" and so on.
func pages(servers ...[]cloud.Server) *listing {
	l := &listing{pages: map[string]cloud.ServerPage{}}
	marker := ""
	for i, page := range servers {
		next := ""
		if i+1 < len(servers) {
			next = string(rune('1' + i))
		}
		l.pages[marker] = cloud.ServerPage{Servers: page, Next: next}
		marker = next
	}
	return l
}

// newCloud returns a cloud that has these networks and can list its hosts.
func newCloud(networks ...cloud.Network) *fake.Cloud {
	c := fake.New(fake.Options{Capabilities: cloud.NewCapabilities(cloud.Networks, cloud.Hosts)})
	c.AddNetworks(networks...)
	return c
}

// delay makes each call of the cloud take this long, whether its context ends or not.
func delay(c *fake.Cloud, takes time.Duration) {
	c.OnCall(func(context.Context, fake.Verb, string) { <-time.After(takes) })
}

// unclassified breaks the contract of cloud.Client: the errors of its listings
// are not cloud errors.
type unclassified struct{ *fake.Cloud }

func (u unclassified) ListNetworks(ctx context.Context) ([]cloud.Network, error) {
	networks, err := u.Cloud.ListNetworks(ctx)
	return networks, errors.Unwrap(err)
}

func (u unclassified) ListHosts(ctx context.Context) ([]cloud.Host, error) {
	hosts, err := u.Cloud.ListHosts(ctx)
	return hosts, errors.Unwrap(err)
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

func createdAfter(age time.Duration) func(*cloud.Server) {
	return func(s *cloud.Server) { s.CreatedAt = dawn.Add(age) }
}

func owned(uid, cluster string) func(*cloud.Server) {
	return func(s *cloud.Server) {
		s.Labels = map[string]string{inventory.UIDLabel: uid, inventory.ClusterLabel: cluster}
	}
}

// harness is one inventory with its clock and the notifications that it sent.
type harness struct {
	t            *testing.T
	clock        *clock
	dir          *inventory.Directory
	inv          *inventory.Inventory
	events       []inventory.Event
	pollRequests []string
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{t: t, clock: &clock{now: dawn}}
	h.dir = inventory.New(h.clock.Now, "c")
	h.dir.Subscribe(func(e inventory.Event) {
		slices.Sort(e.Servers)
		slices.SortFunc(e.Refs, func(a, b inventory.Ref) int { return strings.Compare(a.Name, b.Name) })
		h.events = append(h.events, e)
	})
	h.dir.OnPollRequest(func(name string, within time.Duration) {
		h.pollRequests = append(h.pollRequests, name+" "+within.String())
	})
	h.inv = h.dir.Cloud("home")
	return h
}

// list makes a listing that begins now and takes this long.
func (h *harness) list(took time.Duration, servers ...cloud.Server) *inventory.Snapshot {
	h.t.Helper()
	l := pages(servers)
	l.each = func() { h.clock.advance(took) }
	snap, err := inventory.List(h.t.Context(), l, h.clock.Now)
	if err != nil {
		h.t.Fatalf("List: %v", err)
	}
	return snap
}

func (h *harness) publish(servers ...cloud.Server) {
	h.t.Helper()
	h.inv.Publish(h.list(0, servers...))
}

// takeEvents returns the events since it was last called.
func (h *harness) takeEvents() []inventory.Event {
	events := h.events
	h.events = nil
	return events
}

func (h *harness) wantEvents(want ...inventory.Event) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.takeEvents(), cmpEmpty); diff != "" {
		h.t.Errorf("events (-want +got):\n%s", diff)
	}
}

// cmpEmpty compares nil slices and empty slices as equal.
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
