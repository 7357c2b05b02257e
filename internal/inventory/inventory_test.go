package inventory_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestPublishTellsWhoseServersChanged(t *testing.T) {
	half := func(percent int) func(*cloud.Server) {
		return func(s *cloud.Server) { s.CPUUtilization = &percent }
	}
	tests := []struct {
		name     string
		was, now []cloud.Server
		want     []string
	}{
		{name: "an equal listing is no news", was: []cloud.Server{server("a", half(5), owned("u", "c"))}, now: []cloud.Server{server("a", half(5), owned("u", "c"))}},
		{name: "a server appeared", now: []cloud.Server{server("a")}, want: []string{"a"}},
		{name: "a server vanished", was: []cloud.Server{server("a"), server("b")}, now: []cloud.Server{server("b")}, want: []string{"a"}},
		{name: "its state is another", was: []cloud.Server{server("a")}, now: []cloud.Server{server("a", in(cloud.StateStopped))}, want: []string{"a"}},
		{name: "its name is another", was: []cloud.Server{server("a")}, now: []cloud.Server{server("a", named("other"))}, want: []string{"a"}},
		{name: "its use is another", was: []cloud.Server{server("a", half(5))}, now: []cloud.Server{server("a", half(6))}, want: []string{"a"}},
		{name: "its use is known now: 0 is not the same as unknown", was: []cloud.Server{server("a")}, now: []cloud.Server{server("a", half(0))}, want: []string{"a"}},
		{name: "its labels are others", was: []cloud.Server{server("a", owned("u", "c"))}, now: []cloud.Server{server("a")}, want: []string{"a"}},
		{name: "it moved to another host", was: []cloud.Server{server("a")}, now: []cloud.Server{server("a", func(s *cloud.Server) { s.Host = "h" })}, want: []string{"a"}},
		{name: "it was resized", was: []cloud.Server{server("a"), server("b")}, now: []cloud.Server{server("a", func(s *cloud.Server) { s.CPU = 2 }), server("b", func(s *cloud.Server) { s.MemoryGiB = 2 })}, want: []string{"a", "b"}},
		{name: "a new time of its last update alone is no news", was: []cloud.Server{server("a")}, now: []cloud.Server{server("a", func(s *cloud.Server) { s.UpdatedAt = dawn })}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t)
			h.publish(tc.was...)
			h.told()
			h.clock.advance(time.Minute)
			h.publish(tc.now...)
			h.wantTold(inventory.Event{Cloud: "home", Servers: tc.want})
		})
	}
}

func TestWaitIsOverWhenTheCloudCanBeUsedAgain(t *testing.T) {
	h := newHouse(t)
	a, b := inventory.Ref{Namespace: "n", Name: "a"}, inventory.Ref{Namespace: "n", Name: "b"}
	h.inv.EnqueueWhenAvailable(a, h.inv.View())
	h.inv.EnqueueWhenAvailable(a, h.inv.View())
	h.inv.EnqueueWhenAvailable(b, h.inv.View())
	h.publish()
	h.wantTold(inventory.Event{Cloud: "home", Refs: []inventory.Ref{a, b}})

	h.inv.EnqueueWhenAvailable(a, h.inv.View())
	h.publish()
	h.wantTold(inventory.Event{Cloud: "home"})
	h.inv.MarkUnavailable("connection refused")
	h.wantTold()
	h.publish()
	h.wantTold(inventory.Event{Cloud: "home", Refs: []inventory.Ref{a}})

	h.inv.MarkUnavailable("connection refused")
	h.publish()
	h.wantTold(inventory.Event{Cloud: "home"})
}

func TestWaitIsNotMissedByWhoSawTheCloudJustBeforeItsReturn(t *testing.T) {
	ref := inventory.Ref{Name: "a"}
	h := newHouse(t)
	stale := h.inv.View()
	h.publish()
	h.told()
	h.inv.EnqueueWhenAvailable(ref, stale)
	h.wantTold(inventory.Event{Cloud: "home", Refs: []inventory.Ref{ref}})

	h.inv.Brake(true)
	stale = h.inv.View()
	h.inv.Brake(false)
	h.told()
	h.inv.EnqueueWhenAvailable(ref, stale)
	h.wantTold(inventory.Event{Cloud: "home", Refs: []inventory.Ref{ref}})

	h.inv.EnqueueWhenAvailable(ref, h.inv.View())
	h.wantTold()
}

func TestWantIsServedByAListingBegunLateEnough(t *testing.T) {
	h := newHouse(t)
	ref := inventory.Ref{Namespace: "n", Name: "a"}
	early := h.list(time.Second)
	h.inv.EnqueueAfterListing(ref, h.clock.Now())
	equal(t, "asked for a listing", []string{"home 1s"}, h.haste)

	h.inv.Publish(early)
	h.wantTold(inventory.Event{Cloud: "home"})

	h.inv.EnqueueAfterListing(ref, dawn)
	h.publish()
	h.wantTold(inventory.Event{Cloud: "home", Refs: []inventory.Ref{ref}})
	h.publish()
	h.wantTold(inventory.Event{Cloud: "home"})
}

func TestANewServerWakesTheObjectThatItsLabelsName(t *testing.T) {
	h := newHouse(t)
	labelled := func(s *cloud.Server) {
		s.Labels = map[string]string{inventory.NamespaceLabel: "ns", inventory.NameLabel: "web"}
	}
	h.publish(server("a", labelled))
	h.told()
	h.clock.advance(time.Second)
	h.publish(server("a", labelled), server("b", labelled))
	h.wantTold(inventory.Event{Cloud: "home", Servers: []string{"b"}, Refs: []inventory.Ref{{Namespace: "ns", Name: "web"}}})
	h.clock.advance(time.Second)
	h.publish(server("a", labelled), server("b", labelled, in(cloud.StateStopped)))
	h.wantTold(inventory.Event{Cloud: "home", Servers: []string{"b"}})
}

func TestWantKeepsTheLatestMoment(t *testing.T) {
	h := newHouse(t)
	ref := inventory.Ref{Name: "a"}
	h.inv.EnqueueAfterListing(ref, dawn.Add(time.Minute))
	h.inv.EnqueueAfterListing(ref, dawn)
	h.publish()
	h.wantTold(inventory.Event{Cloud: "home"})
	h.clock.advance(time.Minute)
	h.publish()
	h.wantTold(inventory.Event{Cloud: "home", Refs: []inventory.Ref{ref}})
}

func TestNoteHoldsUntilAListingBegunLater(t *testing.T) {
	h := newHouse(t)
	h.publish(server("a"))
	under := h.list(time.Second, server("a"))
	h.inv.RecordServer("u", server("a", in(cloud.StateDeleting)))

	h.inv.Publish(under)
	got, known := h.inv.Server("a")
	equal(t, "known", true, known)
	equal(t, "state after a listing that began before the note", cloud.StateDeleting, got.State)

	h.told()
	h.clock.advance(time.Second)
	h.publish(server("a"))
	got, known = h.inv.Server("a")
	equal(t, "known", true, known)
	equal(t, "state after a listing that began later", cloud.StateActive, got.State)
	h.wantTold(inventory.Event{Cloud: "home", Servers: []string{"a"}})
}

func TestNoteIsDroppedByALaterListingWithoutTheServer(t *testing.T) {
	h := newHouse(t)
	h.inv.RecordServer("u", server("a"))
	h.clock.advance(time.Second)
	h.publish()
	if s, known := h.inv.Server("a"); known {
		t.Errorf("Server(a) = %v; want it not known", s)
	}
	h.wantTold(inventory.Event{Cloud: "home", Servers: []string{"a"}})
}

func TestNoteIsACopy(t *testing.T) {
	h := newHouse(t)
	s := server("a", owned("u", "c"))
	h.inv.RecordServer("u", s)
	s.Labels[inventory.UIDLabel] = "changed"
	got, _ := h.inv.Server("a")
	equal(t, "noted server", server("a", owned("u", "c")), got)
}

func TestForgetDropsWhatWasNoted(t *testing.T) {
	h := newHouse(t)
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

func TestOwned(t *testing.T) {
	tests := []struct {
		name   string
		listed []cloud.Server
		noted  []cloud.Server
		want   []cloud.Server
	}{
		{name: "nothing is known before the first listing"},
		{
			name:   "the oldest comes first, and the lowest id of two of one age",
			listed: []cloud.Server{server("c", owned("u", "c1"), bornAfter(time.Second)), server("b", owned("u", "c1")), server("a", owned("u", "c1"))},
			want:   []cloud.Server{server("a", owned("u", "c1")), server("b", owned("u", "c1")), server("c", owned("u", "c1"), bornAfter(time.Second))},
		},
		{
			name:   "another cluster's server is not ours even with our UID, as after a restore of etcd elsewhere",
			listed: []cloud.Server{server("a", owned("u", "c2"))},
		},
		{name: "another object's server is not this one's", listed: []cloud.Server{server("a", owned("v", "c1"))}},
		{name: "a server without labels is nobody's", listed: []cloud.Server{server("a")}},
		{
			name:  "one that we made is ours before any listing, labels or not",
			noted: []cloud.Server{server("a")}, want: []cloud.Server{server("a")},
		},
		{
			name:   "what we noted counts once, and before what was listed",
			listed: []cloud.Server{server("a", owned("u", "c1"))},
			noted:  []cloud.Server{server("a", owned("u", "c1"), in(cloud.StateDeleting))},
			want:   []cloud.Server{server("a", owned("u", "c1"), in(cloud.StateDeleting))},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t)
			if tc.listed != nil {
				h.publish(tc.listed...)
			}
			for _, s := range tc.noted {
				h.inv.RecordServer("u", s)
			}
			h.inv.RecordServer("somebody else", server("x"))
			equal(t, "Owned", tc.want, h.inv.Owned("u", "c1"))
		})
	}
}

func TestNamedAreOrderedByAge(t *testing.T) {
	h := newHouse(t)
	equal(t, "Named before the first listing", []string(nil), ids(h.inv.Named("web")))
	h.publish(server("c", named("web"), bornAfter(time.Second)), server("b", named("web")), server("a", named("web")), server("d", named("db")))
	equal(t, "Named", []string{"a", "b", "c"}, ids(h.inv.Named("web")))
	equal(t, "Named of no server", []string(nil), ids(h.inv.Named("none")))
}

func TestBrakeWakesEverybodyWhenReleased(t *testing.T) {
	h := newHouse(t)
	h.inv.EnqueueWhenAvailable(inventory.Ref{Name: "a"}, h.inv.View())
	h.inv.Brake(false)
	h.wantTold()
	h.inv.Brake(true)
	h.inv.Brake(true)
	h.wantTold()
	equal(t, "Braked", true, h.inv.View().Braked)

	h.inv.Brake(false)
	h.wantTold(inventory.Event{Cloud: "home", All: true, Refs: []inventory.Ref{{Name: "a"}}})
	equal(t, "Braked", false, h.inv.View().Braked)
	h.publish()
	h.wantTold(inventory.Event{Cloud: "home"})
}

func TestView(t *testing.T) {
	h := newHouse(t)
	ignore := cmp.Options{cmpopts.IgnoreFields(inventory.View{}, "Snapshot", "Client"), cmpopts.IgnoreUnexported(inventory.View{})}
	see := func(when string, want inventory.View, listed bool) {
		t.Helper()
		got := h.inv.View()
		equal(t, when, want, got, ignore)
		equal(t, when+": listed", listed, got.Snapshot != nil)
	}
	see("before its Cloud was seen", inventory.View{Unavailable: "the Cloud does not exist or has not been connected yet"}, false)

	settings := inventory.Settings{PollInterval: time.Minute, SettleTime: time.Hour, UtilizationStep: 5}
	caps := cloud.NewCapabilities(cloud.Labels)
	h.inv.Configure(settings)
	h.inv.Connect(fake.New(fake.Options{Capabilities: caps}), caps)
	h.inv.MarkUnavailable("")
	see("connected and not listed", inventory.View{Unavailable: "the cloud has not been listed yet", Capabilities: caps, Settings: settings}, false)

	h.publish(server("a"))
	see("listed", inventory.View{Capabilities: caps, Settings: settings}, true)

	h.inv.MarkUnavailable("connection refused")
	see("away: what is known stays", inventory.View{Unavailable: "connection refused", Capabilities: caps, Settings: settings}, true)

	h.publish(server("a"))
	see("back with the next listing", inventory.View{Capabilities: caps, Settings: settings}, true)

	h.inv.Brake(true)
	h.inv.RecordServer("u", server("b"))
	h.inv.Disconnect()
	see("disconnected: nothing is known any more", inventory.View{Unavailable: "the Cloud does not exist or has not been connected yet", Settings: settings}, false)
	if _, known := h.inv.Server("b"); known {
		t.Error("a note outlived the connection")
	}
}

func TestDirectoryKeepsOneInventoryPerCloud(t *testing.T) {
	h := newHouse(t)
	h.clock.advance(time.Hour)
	if h.dir.Cloud("home") != h.inv {
		t.Error("a second inventory was made for the same cloud")
	}
	equal(t, "Since of the first", dawn, h.dir.Cloud("home").StartedAt())
	equal(t, "Since of one made later", dawn.Add(time.Hour), h.dir.Cloud("other").StartedAt())
}

func TestVanished(t *testing.T) {
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
		{name: "nothing known, nothing gone"},
		{name: "all are there", known: many(4), left: many(4)},
		{name: "the one and only server may well have been deleted by hand", known: many(1), gone: []string{"a"}},
		{name: "one of two, too", known: many(2), left: []string{"b"}, gone: []string{"a"}},
		{name: "an empty listing where there were two", known: many(2), gone: []string{"a", "b"}, brake: true},
		{name: "a quarter at once", known: []string{"h", "g", "f", "e", "d", "c", "b", "a"}, left: many(8)[2:], gone: []string{"a", "b"}, brake: true},
		{name: "less than a quarter", known: many(9), left: many(9)[2:], gone: []string{"a", "b"}},
		{name: "fifty are too many of any number", known: many(1000), left: many(1000)[50:], gone: many(50), brake: true},
		{name: "forty-nine of a thousand are not", known: many(1000), left: many(1000)[49:], gone: many(49)},
		{name: "servers that nobody knew do not count", known: many(3), left: append(many(3), "x", "y")},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t)
			var servers []cloud.Server
			for _, id := range tc.left {
				servers = append(servers, server(id))
			}
			gone, brake := inventory.Vanished(tc.known, h.list(0, servers...))
			type answer struct {
				Gone  []string
				Brake bool
			}
			if diff := cmp.Diff(answer{tc.gone, tc.brake}, answer{gone, brake}); diff != "" {
				t.Errorf("Vanished (-want +got):\n%s", diff)
			}
		})
	}
}
