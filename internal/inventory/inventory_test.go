package inventory_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestPublishReportsChangedServers(t *testing.T) {
	using := func(percent int) func(*cloud.Server) {
		return func(s *cloud.Server) { s.CPUUtilization = &percent }
	}
	tests := []struct {
		name     string
		was, now []cloud.Server
		want     []string
	}{
		{name: "an equal listing: none", was: []cloud.Server{server("a", using(5), owned("u", "c"))}, now: []cloud.Server{server("a", using(5), owned("u", "c"))}},
		{name: "a server appeared: that server", now: []cloud.Server{server("a")}, want: []string{"a"}},
		{name: "a server vanished: that server", was: []cloud.Server{server("a"), server("b")}, now: []cloud.Server{server("b")}, want: []string{"a"}},
		{name: "the state changed: that server", was: []cloud.Server{server("a")}, now: []cloud.Server{server("a", in(cloud.StateStopped))}, want: []string{"a"}},
		{name: "the name changed: that server", was: []cloud.Server{server("a")}, now: []cloud.Server{server("a", named("other"))}, want: []string{"a"}},
		{name: "the CPU utilization changed: that server", was: []cloud.Server{server("a", using(5))}, now: []cloud.Server{server("a", using(6))}, want: []string{"a"}},
		{name: "the CPU utilization was unknown and is 0: that server", was: []cloud.Server{server("a")}, now: []cloud.Server{server("a", using(0))}, want: []string{"a"}},
		{name: "the labels changed: that server", was: []cloud.Server{server("a", owned("u", "c"))}, now: []cloud.Server{server("a")}, want: []string{"a"}},
		{name: "the host changed: that server", was: []cloud.Server{server("a")}, now: []cloud.Server{server("a", func(s *cloud.Server) { s.Host = "h" })}, want: []string{"a"}},
		{name: "CPU and memory changed: both servers", was: []cloud.Server{server("a"), server("b")}, now: []cloud.Server{server("a", func(s *cloud.Server) { s.CPU = 2 }), server("b", func(s *cloud.Server) { s.MemoryMiB = 2 })}, want: []string{"a", "b"}},
		{name: "only the time of the last update changed: none", was: []cloud.Server{server("a")}, now: []cloud.Server{server("a", func(s *cloud.Server) { s.UpdatedAt = dawn })}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t)
			h.publish(tc.was...)
			h.takeEvents()
			h.clock.advance(time.Minute)
			h.publish(tc.now...)
			h.wantEvents(inventory.Event{Cloud: "home", Servers: tc.want})
		})
	}
}

func TestWaitingObjectsAreEnqueuedWhenTheCloudIsAvailable(t *testing.T) {
	h := newHarness(t)
	a, b := inventory.Ref{Namespace: "n", Name: "a"}, inventory.Ref{Namespace: "n", Name: "b"}
	h.inv.EnqueueWhenAvailable(a, h.inv.View())
	h.inv.EnqueueWhenAvailable(a, h.inv.View())
	h.inv.EnqueueWhenAvailable(b, h.inv.View())
	h.publish()
	h.wantEvents(inventory.Event{Cloud: "home", Refs: []inventory.Ref{a, b}})

	h.inv.EnqueueWhenAvailable(a, h.inv.View())
	h.publish()
	h.wantEvents(inventory.Event{Cloud: "home"})
	h.inv.MarkUnavailable("connection refused")
	h.wantEvents()
	h.publish()
	h.wantEvents(inventory.Event{Cloud: "home", Refs: []inventory.Ref{a}})

	h.inv.MarkUnavailable("connection refused")
	h.publish()
	h.wantEvents(inventory.Event{Cloud: "home"})
}

func TestWaitingObjectWithAStaleViewIsEnqueuedAtOnce(t *testing.T) {
	ref := inventory.Ref{Name: "a"}
	h := newHarness(t)
	stale := h.inv.View()
	h.publish()
	h.takeEvents()
	h.inv.EnqueueWhenAvailable(ref, stale)
	h.wantEvents(inventory.Event{Cloud: "home", Refs: []inventory.Ref{ref}})

	h.inv.Brake(true)
	stale = h.inv.View()
	h.inv.Brake(false)
	h.takeEvents()
	h.inv.EnqueueWhenAvailable(ref, stale)
	h.wantEvents(inventory.Event{Cloud: "home", Refs: []inventory.Ref{ref}})

	h.inv.EnqueueWhenAvailable(ref, h.inv.View())
	h.wantEvents()
}

func TestEnqueueAfterListingIgnoresListingsBegunEarlier(t *testing.T) {
	h := newHarness(t)
	ref := inventory.Ref{Namespace: "n", Name: "a"}
	early := h.list(time.Second)
	h.inv.EnqueueAfterListing(ref, h.clock.Now())
	equal(t, "poll requests", []string{"home 1s"}, h.pollRequests)

	h.inv.Publish(early)
	h.wantEvents(inventory.Event{Cloud: "home"})

	h.inv.EnqueueAfterListing(ref, dawn)
	h.publish()
	h.wantEvents(inventory.Event{Cloud: "home", Refs: []inventory.Ref{ref}})
	h.publish()
	h.wantEvents(inventory.Event{Cloud: "home"})
}

func TestServerThatIsNewOrInAnotherStateEnqueuesTheObjectThatItsLabelsName(t *testing.T) {
	h := newHarness(t)
	labelled := func(s *cloud.Server) {
		s.Labels = map[string]string{inventory.NamespaceLabel: "ns", inventory.NameLabel: "web"}
	}
	h.publish(server("a", labelled))
	h.takeEvents()
	h.clock.advance(time.Second)
	h.publish(server("a", labelled), server("b", labelled))
	h.wantEvents(inventory.Event{Cloud: "home", Servers: []string{"b"}, Owners: []inventory.Ref{{Namespace: "ns", Name: "web"}}})
	h.clock.advance(time.Second)
	h.publish(server("a", labelled), server("b", labelled, in(cloud.StateStopped)))
	h.wantEvents(inventory.Event{Cloud: "home", Servers: []string{"b"}, Owners: []inventory.Ref{{Namespace: "ns", Name: "web"}}})
	h.clock.advance(time.Second)
	h.publish(server("a", labelled), server("b", labelled, in(cloud.StateStopped), func(s *cloud.Server) { s.Host = "h" }))
	h.wantEvents(inventory.Event{Cloud: "home", Servers: []string{"b"}})
}

func TestEnqueueAfterListingKeepsTheLatestTime(t *testing.T) {
	h := newHarness(t)
	ref := inventory.Ref{Name: "a"}
	h.inv.EnqueueAfterListing(ref, dawn.Add(time.Minute))
	h.inv.EnqueueAfterListing(ref, dawn)
	h.publish()
	h.wantEvents(inventory.Event{Cloud: "home"})
	h.clock.advance(time.Minute)
	h.publish()
	h.wantEvents(inventory.Event{Cloud: "home", Refs: []inventory.Ref{ref}})
}

func TestRecordedServerHidesListingsBegunEarlier(t *testing.T) {
	h := newHarness(t)
	h.publish(server("a"))
	early := h.list(time.Second, server("a"))
	h.inv.RecordServer("u", server("a", in(cloud.StateDeleting)))

	h.inv.Publish(early)
	got, known := h.inv.Server("a")
	equal(t, "known", true, known)
	equal(t, "state after a listing begun before the record", cloud.StateDeleting, got.State)

	h.takeEvents()
	h.clock.advance(time.Second)
	h.publish(server("a"))
	got, known = h.inv.Server("a")
	equal(t, "known", true, known)
	equal(t, "state after a listing begun after the record", cloud.StateActive, got.State)
	h.wantEvents(inventory.Event{Cloud: "home", Servers: []string{"a"}})
}

func TestRecordedServerIsDroppedByALaterListingWithoutIt(t *testing.T) {
	h := newHarness(t)
	h.inv.RecordServer("u", server("a"))
	h.clock.advance(time.Second)
	h.publish()
	if s, known := h.inv.Server("a"); known {
		t.Errorf("Server(a) = %v; want it not known", s)
	}
	h.wantEvents(inventory.Event{Cloud: "home", Servers: []string{"a"}})
}

func TestRecordedServerIsACopy(t *testing.T) {
	h := newHarness(t)
	s := server("a", owned("u", "c"))
	h.inv.RecordServer("u", s)
	s.Labels[inventory.UIDLabel] = "changed"
	got, _ := h.inv.Server("a")
	equal(t, "recorded server", server("a", owned("u", "c")), got)
}

func TestForgetServerDropsTheRecord(t *testing.T) {
	h := newHarness(t)
	h.publish(server("a"))
	h.inv.RecordServer("u", server("a", in(cloud.StateDeleting)))
	h.inv.RecordServer("u", server("b"))
	h.inv.ForgetServer("a")
	h.inv.ForgetServer("b")
	a, _ := h.inv.Server("a")
	equal(t, "a, as listed", server("a"), a)
	if _, known := h.inv.Server("b"); known {
		t.Error("b is still known")
	}
}

func TestOwnedReturnsTheServersOfOneObject(t *testing.T) {
	tests := []struct {
		name     string
		listed   []cloud.Server
		recorded []cloud.Server
		want     []cloud.Server
	}{
		{name: "before the first listing: none"},
		{
			name:   "several servers: by age, then by ID",
			listed: []cloud.Server{server("c", owned("u", "c1"), createdAfter(time.Second)), server("b", owned("u", "c1")), server("a", owned("u", "c1"))},
			want:   []cloud.Server{server("a", owned("u", "c1")), server("b", owned("u", "c1")), server("c", owned("u", "c1"), createdAfter(time.Second))},
		},
		{
			name:   "the UID is the same and the cluster differs, as after a restore of etcd elsewhere: none",
			listed: []cloud.Server{server("a", owned("u", "c2"))},
		},
		{name: "the server of another object: none", listed: []cloud.Server{server("a", owned("v", "c1"))}},
		{name: "a server without labels: none", listed: []cloud.Server{server("a")}},
		{
			name:     "recorded before the first listing, without labels: that server",
			recorded: []cloud.Server{server("a")}, want: []cloud.Server{server("a")},
		},
		{
			name:     "recorded and listed: only the record",
			listed:   []cloud.Server{server("a", owned("u", "c1"))},
			recorded: []cloud.Server{server("a", owned("u", "c1"), in(cloud.StateDeleting))},
			want:     []cloud.Server{server("a", owned("u", "c1"), in(cloud.StateDeleting))},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t)
			if tc.listed != nil {
				h.publish(tc.listed...)
			}
			for _, s := range tc.recorded {
				h.inv.RecordServer("u", s)
			}
			h.inv.RecordServer("another object", server("x"))
			equal(t, "Owned", tc.want, h.inv.Owned("u", "c1"))
		})
	}
}

func TestNamedReturnsTheServersOfOneNameByAge(t *testing.T) {
	h := newHarness(t)
	equal(t, "Named before the first listing", []string(nil), ids(h.inv.Named("web")))
	h.publish(server("c", named("web"), createdAfter(time.Second)), server("b", named("web")), server("a", named("web")), server("d", named("db")))
	equal(t, "Named", []string{"a", "b", "c"}, ids(h.inv.Named("web")))
	equal(t, "Named of no server", []string(nil), ids(h.inv.Named("none")))
}

func TestBrakeEnqueuesAllObjectsWhenReleased(t *testing.T) {
	h := newHarness(t)
	h.inv.EnqueueWhenAvailable(inventory.Ref{Name: "a"}, h.inv.View())
	h.inv.Brake(false)
	h.wantEvents()
	h.inv.Brake(true)
	h.inv.Brake(true)
	h.wantEvents()
	equal(t, "Braked", true, h.inv.View().Braked)

	h.inv.Brake(false)
	h.wantEvents(inventory.Event{Cloud: "home", All: true, Refs: []inventory.Ref{{Name: "a"}}})
	equal(t, "Braked", false, h.inv.View().Braked)
	h.publish()
	h.wantEvents(inventory.Event{Cloud: "home"})
}

func TestViewFollowsTheConnection(t *testing.T) {
	h := newHarness(t)
	ignore := cmp.Options{cmpopts.IgnoreFields(inventory.View{}, "Snapshot", "Client"), cmpopts.IgnoreUnexported(inventory.View{})}
	want := func(when string, view inventory.View, listed bool) {
		t.Helper()
		got := h.inv.View()
		equal(t, when, view, got, ignore)
		equal(t, when+": listed", listed, got.Snapshot != nil)
	}
	want("before the first connection", inventory.View{Unavailable: "the Cloud does not exist or has not been connected yet"}, false)

	settings := inventory.Settings{PollInterval: time.Minute, SettleTime: time.Hour, UtilizationStep: 5}
	caps := cloud.NewCapabilities(cloud.Labels)
	h.inv.Configure(settings)
	h.inv.Connect(struct{ cloud.Client }{}, caps)
	h.inv.MarkUnavailable("")
	want("connected and not listed", inventory.View{Unavailable: "the cloud has not been listed yet", Capabilities: caps, Settings: settings}, false)

	h.publish(server("a"))
	want("listed", inventory.View{Capabilities: caps, Settings: settings}, true)

	h.inv.MarkUnavailable("connection refused")
	want("unavailable: what is known is kept", inventory.View{Unavailable: "connection refused", Capabilities: caps, Settings: settings}, true)

	h.publish(server("a"))
	want("available after the next listing", inventory.View{Capabilities: caps, Settings: settings}, true)

	h.inv.Brake(true)
	h.inv.RecordServer("u", server("b"))
	h.inv.Disconnect()
	want("disconnected: nothing is known", inventory.View{Unavailable: "the Cloud does not exist or has not been connected yet", Settings: settings}, false)
	if _, known := h.inv.Server("b"); known {
		t.Error("Disconnect did not drop the recorded server")
	}
}

func TestMissingAndImplausible(t *testing.T) {
	many := func(n int) []string {
		known := make([]string, n)
		for i := range known {
			known[i] = string(rune('a' + i))
		}
		return known
	}
	tests := []struct {
		name        string
		known, left []string
		gone        []string
		brake       bool
	}{
		{name: "no known server: none gone, no brake"},
		{name: "all are listed: none gone, no brake", known: many(4), left: many(4)},
		{name: "the only server is gone, maybe deleted by hand: no brake", known: many(1), gone: []string{"a"}},
		{name: "one of two is gone: no brake", known: many(2), left: []string{"b"}, gone: []string{"a"}},
		{name: "two of two are gone: brake", known: many(2), gone: []string{"a", "b"}, brake: true},
		{name: "a quarter is gone: brake", known: []string{"h", "g", "f", "e", "d", "c", "b", "a"}, left: many(8)[2:], gone: []string{"a", "b"}, brake: true},
		{name: "less than a quarter is gone: no brake", known: many(9), left: many(9)[2:], gone: []string{"a", "b"}},
		{name: "fifty of a thousand are gone: brake", known: many(1000), left: many(1000)[50:], gone: many(50), brake: true},
		{name: "forty-nine of a thousand are gone: no brake", known: many(1000), left: many(1000)[49:], gone: many(49)},
		{name: "servers that are not known are listed: none gone, no brake", known: many(3), left: append(many(3), "x", "y")},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t)
			var servers []cloud.Server
			for _, id := range tc.left {
				servers = append(servers, server(id))
			}
			gone := h.list(0, servers...).Missing(tc.known)
			type answer struct {
				Gone  []string
				Brake bool
			}
			if diff := cmp.Diff(answer{tc.gone, tc.brake}, answer{gone, inventory.Implausible(len(gone), len(tc.known))}); diff != "" {
				t.Errorf("missing servers and brake (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSampleIsEvenlySpreadAndHasNoDuplicates(t *testing.T) {
	for n := range 200 {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("s%03d", i)
		}
		sample := inventory.Sample(all, 20)
		equal(t, "size", min(n, 20), len(sample))
		if !slices.IsSorted(sample) || len(slices.Compact(slices.Clone(sample))) != len(sample) {
			t.Fatalf("sample of %d is not sorted or has duplicates: %v", n, sample)
		}
		last := 0
		for i, id := range sample {
			at, _ := slices.BinarySearch(all, id)
			if gap := at - last; i > 0 && (gap < n/len(sample) || gap > n/len(sample)+1) {
				t.Fatalf("sample of %d has a gap of %d before %s: not evenly spread", n, gap, id)
			}
			last = at
		}
	}
}
