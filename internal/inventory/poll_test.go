package inventory_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

// interval is far from every other time in these tests.
const interval = 100 * time.Second

func polling(t *testing.T) *house {
	t.Helper()
	h := newHouse(t)
	h.inv.Configure(inventory.Settings{PollInterval: interval})
	return h
}

// poll lists and publishes, as the Cloud's controller does.
func (h *house) poll(took time.Duration, servers ...cloud.Server) {
	h.t.Helper()
	h.inv.Polling()
	h.inv.Publish(h.list(took, servers...))
}

func (h *house) wantNext(why string, from, to time.Duration) {
	h.t.Helper()
	if got := h.inv.NextPoll(); got < from || got > to {
		h.t.Errorf("NextPoll = %v, want %v to %v: %s", got, from, to, why)
	}
}

func TestNextPollSpreadsTheIntervalByATenth(t *testing.T) {
	h := polling(t)
	h.wantNext("the first listing is due at once", 0, 0)
	h.poll(0)
	seen := map[time.Duration]bool{}
	least, most := interval, interval
	for range 500 {
		h.inv.Polling()
		next := h.inv.NextPoll()
		least, most, seen[next] = min(least, next), max(most, next), true
	}
	if least < interval*9/10 || most > interval*11/10 {
		t.Errorf("intervals lie between %v and %v, want %v to %v", least, most, interval*9/10, interval*11/10)
	}
	if len(seen) < 100 || most-least < interval/10 {
		t.Errorf("500 intervals take %d values between %v and %v: clouds of one start would be listed together for ever", len(seen), least, most)
	}
}

func TestNextPollCountsFromTheLastOne(t *testing.T) {
	h := polling(t)
	h.poll(0, server("a"))
	first := h.inv.NextPoll()
	h.clock.advance(40 * time.Second)
	equal(t, "40 s later", first-40*time.Second, h.inv.NextPoll())
	h.clock.advance(interval)
	h.wantNext("it is overdue", 0, 0)
}

func TestNextPollOfACloudThatIsAway(t *testing.T) {
	h := polling(t)
	h.poll(0)
	h.inv.MarkUnavailable("connection refused")
	h.wantNext("its return is to be noticed soon", 10*time.Second, 10*time.Second)
	h.inv.Configure(inventory.Settings{PollInterval: 2 * time.Second})
	h.inv.Polling()
	h.wantNext("but not less often than it is listed otherwise", 1800*time.Millisecond, 2200*time.Millisecond)
}

func TestNextPollIsSoonWhileNewsAreAwaited(t *testing.T) {
	building := server("a", owned("u", "c"), in(cloud.StateBuilding))
	tests := []struct {
		name string
		busy func(h *house)
		soon bool
	}{
		{name: "nothing is awaited", busy: func(*house) {}},
		{name: "a server of ours is being built", busy: func(h *house) { h.poll(0, building) }, soon: true},
		{name: "a server of ours is being deleted", busy: func(h *house) { h.poll(0, server("a", owned("u", "c"), in(cloud.StateDeleting))) }, soon: true},
		{name: "somebody else's server is being built", busy: func(h *house) { h.poll(0, server("a", in(cloud.StateBuilding))) }},
		{name: "a server that we had built is being built still, on a cloud without labels", soon: true, busy: func(h *house) {
			h.inv.RecordServer("u", building)
			h.clock.advance(time.Second)
			h.poll(0, server("a", in(cloud.StateBuilding)))
		}},
		{name: "a server that we had built is there, on a cloud without labels", busy: func(h *house) {
			h.inv.RecordServer("u", building)
			h.clock.advance(time.Second)
			h.poll(0, server("a", in(cloud.StateBuilding)))
			h.poll(0, server("a"))
		}},
		{name: "we sent a create since", busy: func(h *house) { h.inv.RecordServer("u", building) }, soon: true},
		{name: "what we did since is done", busy: func(h *house) { h.inv.RecordServer("u", server("a")) }},
		{name: "somebody wants a listing begun later", busy: func(h *house) { h.inv.EnqueueAfterListing(inventory.Ref{Name: "a"}, dawn.Add(time.Hour)) }, soon: true},
		{name: "something went wrong", busy: func(h *house) { h.inv.RequestPoll() }, soon: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := polling(t)
			for range 20 {
				h.poll(0)
			}
			tc.busy(h)
			if tc.soon {
				h.wantNext("news are awaited, however calm it was before", time.Second, time.Second)
			} else {
				h.wantNext("nobody waits", interval*9/10, interval*11/10)
			}
		})
	}
}

func TestNextPollBacksOffWhileNewsDoNotCome(t *testing.T) {
	h := polling(t)
	building := server("a", owned("u", "c"), in(cloud.StateBuilding))
	h.poll(0, building)
	for want := time.Second; want < interval*9/10; want *= 2 {
		h.wantNext("each listing without news doubles the wait", want, want)
		h.poll(0, building)
	}
	for range 70 {
		h.poll(0, building)
	}
	h.wantNext("it never gets longer than the interval", interval*9/10, interval*11/10)
	h.poll(0, building, server("b"))
	h.wantNext("news begin it anew", time.Second, time.Second)
}

func TestNextPollLeavesTheCloudFourFifthsOfTheTime(t *testing.T) {
	h := polling(t)
	building := server("a", owned("u", "c"), in(cloud.StateBuilding))
	h.poll(5*time.Second, building)
	h.wantNext("a listing of 5 s begins again after 20 s at the earliest", 15*time.Second, 15*time.Second)
	h.poll(30*time.Second, building)
	h.wantNext("but no later than without the haste", interval*9/10-30*time.Second, interval*11/10-30*time.Second)
}

func TestHasteIsTold(t *testing.T) {
	h := polling(t)
	h.inv.RequestPoll()
	h.inv.RecordServer("u", server("a"))
	h.inv.RecordServer("u", server("a", in(cloud.StateDeleting)))
	h.inv.EnqueueAfterListing(inventory.Ref{Name: "a"}, dawn)
	equal(t, "told", []string{"home 1s", "home 1s", "home 1s"}, h.haste)
	h.inv.Polling()
	h.inv.ForgetServer("a")
	h.publish()
	h.wantNext("haste is over once a listing began", interval*9/10, interval*11/10)
}

// using returns a cloud with the server a, which uses this many percent of its cores.
func using(percent int) *fake.Cloud {
	c := fake.New(fake.Options{})
	c.AddServers(server("a", owned("u", "c")))
	c.SetUtilization(percent)
	return c
}

func TestUseAsksOncePerInterval(t *testing.T) {
	h := polling(t)
	from := using(40)
	h.inv.Connect(from, nil)
	use := func(want, calls int) {
		t.Helper()
		got, err := h.inv.Utilization(t.Context(), "a")
		if err != nil {
			t.Fatalf("Use: %v", err)
		}
		equal(t, "use", want, got.CPUUtilization)
		equal(t, "calls so far", calls, from.Sent(fake.ServerStatus))
	}
	h.publish(server("a"))
	use(40, 1)
	from.SetUtilization(50)
	h.clock.advance(interval * 8 / 10)
	h.publish(server("a"))
	use(40, 1)
	h.clock.advance(interval / 10)
	use(50, 2)

	h.publish()
	h.publish(server("a"))
	use(50, 3)
	h.inv.ForgetServer("a")
	use(50, 4)
	h.inv.Disconnect()
	h.inv.Connect(from, nil)
	use(50, 5)
}

func TestUseReturnsTheLastKnownWhenTheCloudFails(t *testing.T) {
	h := polling(t)
	from := using(40)
	h.inv.Connect(from, nil)
	if _, err := h.inv.Utilization(t.Context(), "a"); err != nil {
		t.Fatalf("Use: %v", err)
	}
	h.clock.advance(interval)
	no := errors.New("no")
	from.Fail(fake.ServerStatus, no, false)
	got, err := h.inv.Utilization(t.Context(), "a")
	if !errors.Is(err, no) {
		t.Errorf("Use failed with %v, want %v", err, no)
	}
	equal(t, "use", 40, got.CPUUtilization)
}

// TestEverythingAtOnce finds data races and deadlocks; run it with -race.
func TestEverythingAtOnce(t *testing.T) {
	dir := inventory.New(time.Now)
	dir.Subscribe(func(w inventory.Event) { _ = len(w.Refs) })
	dir.OnPollRequest(func(string, time.Duration) {})
	from := using(0)
	dir.Cloud("home").Connect(from, nil)
	acts := []func(inv *inventory.Inventory){
		func(inv *inventory.Inventory) { inv.Configure(inventory.Settings{PollInterval: time.Second}) },
		func(inv *inventory.Inventory) { inv.Connect(from, nil) },
		func(inv *inventory.Inventory) { inv.MarkUnavailable("no") },
		func(inv *inventory.Inventory) { inv.Brake(true); inv.Brake(false) },
		func(inv *inventory.Inventory) {
			inv.Polling()
			snap, err := inventory.List(t.Context(), from, time.Now)
			if err != nil {
				t.Errorf("List: %v", err)
				return
			}
			inv.Publish(snap)
		},
		func(inv *inventory.Inventory) { _, _ = inv.Server("a"); _ = inv.View(); _ = inv.NextPoll() },
		func(inv *inventory.Inventory) { _ = inv.Owned("u", "c"); _ = inv.Named("vm-a") },
		func(inv *inventory.Inventory) {
			inv.RecordServer("u", server("a", in(cloud.StateBuilding)))
			inv.ForgetServer("a")
		},
		func(inv *inventory.Inventory) {
			inv.EnqueueWhenAvailable(inventory.Ref{Name: "a"}, inv.View())
			inv.EnqueueAfterListing(inventory.Ref{Name: "a"}, time.Now())
			inv.RequestPoll()
		},
		func(inv *inventory.Inventory) { _, _ = inv.Utilization(t.Context(), "a") },
	}
	var group sync.WaitGroup
	for _, act := range acts {
		group.Go(func() {
			for range 200 {
				act(dir.Cloud("home"))
			}
		})
	}
	group.Wait()
}
