package inventory_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// interval differs much from all other times in these tests.
const interval = 100 * time.Second

func polling(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t)
	h.inv.Configure(inventory.Settings{PollInterval: interval})
	return h
}

// poll lists and publishes, as the Cloud's controller does.
func (h *harness) poll(took time.Duration, servers ...cloud.Server) {
	h.t.Helper()
	h.inv.Polling()
	h.inv.Publish(h.list(took, servers...))
}

func (h *harness) wantNext(why string, from, to time.Duration) {
	h.t.Helper()
	if got := h.inv.NextPoll(); got < from || got > to {
		h.t.Errorf("NextPoll = %v, want %v to %v: %s", got, from, to, why)
	}
}

func TestNextPollHasATenthOfJitter(t *testing.T) {
	h := polling(t)
	h.wantNext("the first listing is due at once", 0, 0)
	h.poll(0)
	values := map[time.Duration]bool{}
	least, most := interval, interval
	for range 500 {
		h.inv.Polling()
		next := h.inv.NextPoll()
		least, most, values[next] = min(least, next), max(most, next), true
	}
	if least < interval*9/10 || most > interval*11/10 {
		t.Errorf("intervals lie between %v and %v, want %v to %v", least, most, interval*9/10, interval*11/10)
	}
	if len(values) < 100 || most-least < interval/10 {
		t.Errorf("500 intervals take %d values between %v and %v: clouds connected together would always be listed together", len(values), least, most)
	}
}

func TestNextPollCountsFromTheBeginOfTheLastListing(t *testing.T) {
	h := polling(t)
	h.poll(0, server("a"))
	first := h.inv.NextPoll()
	h.clock.advance(40 * time.Second)
	equal(t, "40 s later", first-40*time.Second, h.inv.NextPoll())
	h.clock.advance(interval)
	h.wantNext("it is overdue", 0, 0)
}

func TestNextPollIsSoonerWhileTheCloudIsUnavailable(t *testing.T) {
	h := polling(t)
	h.poll(0)
	h.inv.MarkUnavailable("connection refused")
	h.wantNext("the cloud is unavailable", 10*time.Second, 10*time.Second)
	h.inv.Configure(inventory.Settings{PollInterval: 2 * time.Second})
	h.inv.Polling()
	h.wantNext("the poll interval is shorter than the interval of unavailable clouds", 1800*time.Millisecond, 2200*time.Millisecond)
}

func TestNextPollIsSoonerWhileAChangeIsExpected(t *testing.T) {
	building := server("a", owned("u", "c"), in(cloud.StateBuilding))
	tests := []struct {
		name string
		act  func(h *harness)
		soon bool
	}{
		{name: "nothing is expected: at the interval", act: func(*harness) {}},
		{name: "a server with owner labels is building: soon", act: func(h *harness) { h.poll(0, building) }, soon: true},
		{name: "a server with owner labels is deleting: soon", act: func(h *harness) { h.poll(0, server("a", owned("u", "c"), in(cloud.StateDeleting))) }, soon: true},
		{name: "a server without owner labels is building: at the interval", act: func(h *harness) { h.poll(0, server("a", in(cloud.StateBuilding))) }},
		{name: "a recorded server is still building on a cloud without labels: soon", soon: true, act: func(h *harness) {
			h.inv.RecordServer("u", building)
			h.clock.advance(time.Second)
			h.poll(0, server("a", in(cloud.StateBuilding)))
		}},
		{name: "a recorded server became active on a cloud without labels: at the interval", act: func(h *harness) {
			h.inv.RecordServer("u", building)
			h.clock.advance(time.Second)
			h.poll(0, server("a", in(cloud.StateBuilding)))
			h.poll(0, server("a"))
		}},
		{name: "a building server was recorded since the listing: soon", act: func(h *harness) { h.inv.RecordServer("u", building) }, soon: true},
		{name: "an active server was recorded since the listing: at the interval", act: func(h *harness) { h.inv.RecordServer("u", server("a")) }},
		{name: "an object waits for a listing begun later: soon", act: func(h *harness) { h.inv.EnqueueAfterListing(inventory.Ref{Name: "a"}, dawn.Add(time.Hour)) }, soon: true},
		{name: "a poll was requested: soon", act: func(h *harness) { h.inv.RequestPoll() }, soon: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := polling(t)
			for range 20 {
				h.poll(0)
			}
			tc.act(h)
			if tc.soon {
				h.wantNext("a change is expected, although many listings brought none", time.Second, 2*time.Second)
			} else {
				h.wantNext("no change is expected", interval*9/10, interval*11/10)
			}
		})
	}
}

func TestNextPollBacksOffWhileNothingChanges(t *testing.T) {
	h := polling(t)
	building := server("a", owned("u", "c"), in(cloud.StateBuilding))
	h.poll(0, building)
	for want := time.Second; want < interval*9/10; want *= 2 {
		h.wantNext("each listing without a change doubles the time", want, want)
		h.poll(0, building)
	}
	for range 70 {
		h.poll(0, building)
	}
	h.wantNext("it is at most the interval", interval*9/10, interval*11/10)
	h.poll(0, building, server("b", owned("v", "c"), in(cloud.StateBuilding)))
	h.wantNext("another server that is built resets it", time.Second, time.Second)
	h.poll(0, building, server("b", owned("v", "c"), in(cloud.StateBuilding)))
	h.wantNext("each listing without a change doubles the time", 2*time.Second, 2*time.Second)
	h.poll(0, building, server("b", owned("v", "c")))
	h.wantNext("the end of a build resets it", time.Second, time.Second)
}

func TestUnrelatedChangesDoNotTurnAStuckServerIntoAListingASecond(t *testing.T) {
	stuck := server("a", owned("u", "c"), in(cloud.StateBuilding))
	tests := []struct {
		name string
		// step is called before each listing and returns the servers besides the stuck one.
		step func(h *harness, n int) []cloud.Server
	}{
		{name: "the CPU use of another server changes in each listing", step: func(_ *harness, n int) []cloud.Server {
			return []cloud.Server{server("b", owned("v", "c"), func(s *cloud.Server) { s.CPUUtilization = &n })}
		}},
		{name: "the CPU use of the server itself changes", step: func(_ *harness, n int) []cloud.Server {
			return []cloud.Server{server("a", owned("u", "c"), in(cloud.StateBuilding), func(s *cloud.Server) { s.CPUUtilization = &n })}
		}},
		{name: "servers of others come and go", step: func(_ *harness, n int) []cloud.Server {
			return []cloud.Server{server(fmt.Sprint("x", n), in(cloud.StateBuilding))}
		}},
		{name: "servers of another cluster are built", step: func(_ *harness, n int) []cloud.Server {
			return []cloud.Server{server(fmt.Sprint("x", n), owned("w", "another"), in(cloud.StateBuilding))}
		}},
		{name: "the server is read again before each listing", step: func(h *harness, _ int) []cloud.Server {
			h.inv.RecordServer("u", stuck)
			return nil
		}},
		{name: "its object waits for each listing", step: func(h *harness, _ int) []cloud.Server {
			h.inv.EnqueueAfterListing(inventory.Ref{Namespace: "n", Name: "a"}, h.clock.Now())
			return nil
		}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := polling(t)
			h.inv.Configure(inventory.Settings{PollInterval: time.Hour})
			h.poll(0, stuck)
			begin, listings := h.clock.Now(), 0
			for h.clock.Now().Sub(begin) < 9*time.Minute {
				h.clock.advance(h.inv.NextPoll())
				others := tc.step(h, listings)
				h.clock.advance(time.Millisecond)
				h.poll(0, append([]cloud.Server{stuck}, others...)...)
				listings++
			}
			if listings > 12 {
				t.Errorf("%d listings within %v, want the time between them to double", listings, h.clock.Now().Sub(begin))
			}
		})
	}
}

func TestServersOfAnotherClusterWarrantNoFastPolling(t *testing.T) {
	h := polling(t)
	h.poll(0, server("a", owned("u", "another"), in(cloud.StateBuilding)), server("b", owned("v", "another"), in(cloud.StateDeleting)))
	h.wantNext("their states change without this cluster", interval*9/10, interval*11/10)
}

func TestObjectThatWaitsAgainWaitsLonger(t *testing.T) {
	h := polling(t)
	ref := inventory.Ref{Namespace: "n", Name: "a"}
	for _, want := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		h.poll(0)
		h.inv.EnqueueAfterListing(ref, h.clock.Now())
		h.clock.advance(time.Millisecond)
		if want == time.Second {
			continue // the first listing precedes the first wait
		}
		h.wantNext("it waited for the last listing, too", want/2-time.Millisecond, want-time.Millisecond)
	}
	h.poll(0)
	h.inv.EnqueueAfterListing(inventory.Ref{Namespace: "n", Name: "another"}, h.clock.Now())
	h.wantNext("another object begins anew", time.Second, time.Second)
}

func TestNextPollBoundsTheShareOfTimeSpentListing(t *testing.T) {
	h := polling(t)
	building := server("a", owned("u", "c"), in(cloud.StateBuilding))
	h.poll(5*time.Second, building)
	h.wantNext("after a listing of 5 s, the next begins 20 s after its begin", 15*time.Second, 15*time.Second)
	h.poll(30*time.Second, building)
	h.wantNext("but not later than at the interval", interval*9/10-30*time.Second, interval*11/10-30*time.Second)
}

func TestPollRequestsAreReported(t *testing.T) {
	h := polling(t)
	h.inv.RequestPoll()
	h.inv.RecordServer("u", server("a"))
	h.inv.RecordServer("u", server("a", in(cloud.StateDeleting)))
	h.inv.EnqueueAfterListing(inventory.Ref{Name: "a"}, dawn)
	equal(t, "poll requests", []string{"home 1s", "home 1s", "home 1s"}, h.pollRequests)
	h.inv.Polling()
	h.inv.ForgetServer("a")
	h.publish()
	h.wantNext("the request is served by the begin of a listing", interval*9/10, interval*11/10)
}

// TestInventoryIsSafeForConcurrentUse finds data races and deadlocks; run it with -race.
func TestInventoryIsSafeForConcurrentUse(t *testing.T) {
	dir := inventory.New(time.Now, "c")
	dir.Subscribe(func(e inventory.Event) { _ = len(e.Refs) })
	dir.OnPollRequest(func(string, time.Duration) {})
	c := newCloud()
	c.AddServers(server("a"))
	dir.Cloud("home").Connect(c, nil)
	acts := []func(inv *inventory.Inventory){
		func(inv *inventory.Inventory) { inv.Configure(inventory.Settings{PollInterval: time.Second}) },
		func(inv *inventory.Inventory) { inv.Connect(c, nil) },
		func(inv *inventory.Inventory) { inv.MarkUnavailable("no") },
		func(inv *inventory.Inventory) { inv.Brake(true); inv.Brake(false) },
		func(inv *inventory.Inventory) {
			inv.Polling()
			snap, err := inventory.List(t.Context(), pages([]cloud.Server{server("a", owned("u", "c"))}), time.Now)
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
			inv.RecordCreated("u", server("a"))
			inv.ForgetServer("a")
		},
		func(inv *inventory.Inventory) {
			inv.Networks.RecordCreated(network("n", 0))
			_, _, _ = inv.Networks.Find(t.Context(), time.Now(), "", "", "")
		},
		func(*inventory.Inventory) {
			dir.Absent("absent").RequestPoll()
			dir.Forget(inventory.Ref{Name: "a"})
			dir.Remove("home")
		},
		func(inv *inventory.Inventory) {
			inv.EnqueueWhenAvailable(inventory.Ref{Name: "a"}, inv.View())
			inv.EnqueueAfterListing(inventory.Ref{Name: "a"}, time.Now())
			inv.RequestPoll()
		},
		func(inv *inventory.Inventory) {
			_, _ = inv.Utilization.Read(t.Context(), "a")
			_ = inv.Utilization.Unreadable()
		},
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
