package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestUtilizationCallsTheCloudOncePerInterval(t *testing.T) {
	h := polling(t)
	c := newCloud()
	c.AddServers(server("a"))
	c.SetUtilization(40)
	h.inv.Connect(c, nil)
	want := func(utilization, calls int) {
		t.Helper()
		got, err := h.inv.Utilization.Read(t.Context(), "a")
		if err != nil {
			t.Fatalf("Utilization: %v", err)
		}
		equal(t, "CPU utilization", &utilization, got.CPUUtilization)
		equal(t, "calls so far", calls, c.Sent(fake.ServerStatus))
	}
	h.publish(server("a"))
	want(40, 1)
	c.SetUtilization(50)
	h.clock.advance(interval * 8 / 10)
	h.publish(server("a"))
	want(40, 1)
	h.clock.advance(interval / 10)
	want(50, 2)

	h.publish()
	h.publish(server("a"))
	want(50, 3)
	h.inv.ForgetServer("a")
	want(50, 4)
	h.inv.Disconnect()
	h.inv.Connect(c, nil)
	want(50, 5)
}

func TestUtilizationReturnsTheLastKnownOnAnError(t *testing.T) {
	h := polling(t)
	c := newCloud()
	c.AddServers(server("a"))
	c.SetUtilization(40)
	h.inv.Connect(c, nil)
	if _, err := h.inv.Utilization.Read(t.Context(), "a"); err != nil {
		t.Fatalf("Utilization: %v", err)
	}
	h.clock.advance(interval)
	no := errors.New("no")
	c.FailAlways(fake.ServerStatus, no, false)
	for _, known := range []bool{true, true, false} {
		got, err := h.inv.Utilization.Read(t.Context(), "a")
		if !errors.Is(err, no) {
			t.Errorf("Utilization failed with %v, want %v", err, no)
		}
		equal(t, "CPU utilization", new(40), got.CPUUtilization)
		equal(t, "known", known, got.Known)
		h.clock.advance(interval)
	}
}

func TestUtilizationFailsWithoutAConnection(t *testing.T) {
	h := polling(t)
	want := func(when string) {
		t.Helper()
		if _, err := h.inv.Utilization.Read(t.Context(), "a"); !cloud.Is(err, cloud.Unavailable) {
			t.Errorf("%s: %v, want Unavailable", when, err)
		}
	}
	want("before the first connection")
	h.inv.Connect(newCloud(), nil)
	h.inv.Disconnect()
	want("after a disconnect")
}

func TestUnreadableUtilizationIsKeptForAnInterval(t *testing.T) {
	h := polling(t)
	c := newCloud()
	c.AddServers(server("a"), server("b"))
	h.inv.Connect(c, nil)
	unreadable := func(detail string) error {
		return &cloud.Error{Kind: cloud.Unreadable, Op: "read status", Detail: detail}
	}
	errB, errA := unreadable("12% is no number, of b"), unreadable("12% is no number, of a")
	equal(t, "at first", error(nil), h.inv.Utilization.Unreadable())
	ask := func(id string, answer, want error) {
		t.Helper()
		c.FailAlways(fake.ServerStatus, answer, false)
		if answer == nil {
			c.Heal(fake.ServerStatus)
		}
		if _, err := h.inv.Utilization.Read(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("Utilization of %s failed with %v, want %v", id, err, want)
		}
	}
	unknown := &cloud.Error{Kind: cloud.Unavailable, Op: "read status"}
	ask("a", unknown, unknown)
	if err := h.inv.Utilization.Unreadable(); err != nil {
		t.Errorf("another failure than an unreadable answer is reported: %v", err)
	}
	ask("b", errB, errB)
	ask("a", errA, errA)
	calls := c.Sent(fake.ServerStatus)
	ask("a", nil, errA)
	equal(t, "calls within the interval", calls, c.Sent(fake.ServerStatus))
	if err := h.inv.Utilization.Unreadable(); !errors.Is(err, errA) {
		t.Errorf("reported %v, want that of the first server", err)
	}
	h.clock.advance(interval)
	ask("a", nil, nil)
	if err := h.inv.Utilization.Unreadable(); !errors.Is(err, errB) {
		t.Errorf("reported %v, want that of the server which is still unreadable", err)
	}
	h.clock.advance(time.Second)
	h.publish(server("a"))
	if err := h.inv.Utilization.Unreadable(); err != nil {
		t.Errorf("that of a server that is gone is reported: %v", err)
	}
}

func TestUtilizationIsReadAtHalfTheRateOfTheCloud(t *testing.T) {
	h := polling(t)
	c := newCloud()
	c.SetUtilization(40)
	servers := serversNamed("s", 200)
	c.AddServers(servers...)
	h.inv.Configure(inventory.Settings{PollInterval: interval, RequestsPerSecond: 2})
	h.inv.Connect(c, nil)
	h.publish(servers...)
	read := func() (again time.Duration) {
		for _, s := range servers {
			use, err := h.inv.Utilization.Read(t.Context(), s.ID)
			if err != nil || !use.Known {
				t.Fatalf("Utilization: %v, %+v", err, use)
			}
			again = use.Again
		}
		h.publish(servers...)
		return again
	}
	read()
	stretched := 200 * time.Second // a read each second
	h.clock.advance(stretched / 2)
	equal(t, "to be asked again after", stretched/2, read())
	equal(t, "calls before all can be read at half the rate", len(servers), c.Sent(fake.ServerStatus))
	h.clock.advance(stretched / 2)
	equal(t, "to be asked again after", stretched, read())
	equal(t, "calls after that", 2*len(servers), c.Sent(fake.ServerStatus))
}

func serversNamed(prefix string, n int) []cloud.Server {
	servers := make([]cloud.Server, n)
	for i := range servers {
		servers[i] = server(fmt.Sprintf("%s-%d", prefix, i))
	}
	return servers
}

func TestUtilizationIsReadAtTheEvenPartOfTheNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		// servers are those of each namespace, and again is after how long to ask for one of
		// them again.
		servers map[string]int
		again   map[string]time.Duration
	}{
		"few beside many: few are read each poll interval, and many with what they leave": {
			servers: map[string]int{"few": 20, "many": 400},
			again:   map[string]time.Duration{"few": interval, "many": 500 * time.Second},
		},
		"many in each: each gets the same part": {
			servers: map[string]int{"a": 200, "b": 400},
			again:   map[string]time.Duration{"a": 400 * time.Second, "b": 800 * time.Second},
		},
		"few in each: all are read each poll interval": {
			servers: map[string]int{"a": 10, "b": 20, "c": 70},
			again:   map[string]time.Duration{"a": interval, "b": interval, "c": interval},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := polling(t)
			c := newCloud()
			h.inv.Configure(inventory.Settings{PollInterval: interval, RequestsPerSecond: 2})
			h.inv.Connect(c, nil)
			var all []cloud.Server
			for namespace, n := range test.servers {
				servers := serversNamed(namespace, n)
				c.AddServers(servers...)
				all = append(all, servers...)
				for _, s := range servers {
					if _, err := h.inv.Utilization.Read(cloud.WithFlow(t.Context(), namespace), s.ID); err != nil {
						t.Fatalf("Utilization: %v", err)
					}
				}
			}
			h.publish(all...)
			again := map[string]time.Duration{}
			for namespace := range test.servers {
				use, err := h.inv.Utilization.Read(cloud.WithFlow(t.Context(), namespace), namespace+"-0")
				if err != nil {
					t.Fatalf("Utilization: %v", err)
				}
				again[namespace] = use.Again
			}
			equal(t, "to be asked again after", test.again, again)
		})
	}
}

func TestUtilizationThatTheLimitsRefuseStaysKnown(t *testing.T) {
	h := polling(t)
	c := newCloud()
	c.AddServers(server("a"), server("new"))
	c.SetUtilization(40)
	h.inv.Connect(c, nil)
	h.publish(server("a"), server("new"))
	if _, err := h.inv.Utilization.Read(t.Context(), "a"); err != nil {
		t.Fatalf("Utilization: %v", err)
	}
	refused, lost := &cloud.Error{Kind: cloud.Throttled}, &cloud.Error{Kind: cloud.Unavailable}
	type reading struct{ Known, Pending bool }
	read := func(id string, err error) reading {
		c.FailAlways(fake.ServerStatus, err, false)
		use, _ := h.inv.Utilization.Read(t.Context(), id)
		return reading{Known: use.Known, Pending: use.Pending}
	}
	equal(t, "one that was never read, refused", reading{Pending: true}, read("new", refused))
	equal(t, "one that was never read, after another failure", reading{}, read("new", lost))
	h.clock.advance(9 * interval)
	equal(t, "after nine intervals, refused", reading{Known: true}, read("a", refused))
	equal(t, "after nine intervals, after another failure", reading{}, read("a", lost))
	equal(t, "one that was never read, after nine intervals", reading{Pending: true}, read("new", refused))
	h.clock.advance(interval)
	equal(t, "after ten intervals, refused", reading{}, read("a", refused))
	equal(t, "one that was never read, after ten intervals", reading{}, read("new", refused))

	h.inv.Configure(inventory.Settings{PollInterval: time.Second})
	c.Heal(fake.ServerStatus)
	if _, err := h.inv.Utilization.Read(t.Context(), "a"); err != nil {
		t.Fatalf("Utilization: %v", err)
	}
	h.clock.advance(9 * time.Minute)
	equal(t, "after nine minutes of short intervals", reading{Known: true}, read("a", refused))
	h.clock.advance(time.Minute)
	equal(t, "after ten minutes of short intervals", reading{}, read("a", refused))
}

func TestUtilizationThatTheLimitsRefuseIsAskedForInItsTurn(t *testing.T) {
	h := polling(t)
	c := newCloud()
	c.AddServers(server("a"))
	h.inv.Connect(c, nil)
	h.publish(server("a"))
	c.FailAlways(fake.ServerStatus, &cloud.Error{Kind: cloud.Throttled, RetryAfter: 7 * time.Second}, false)
	use, err := h.inv.Utilization.Read(t.Context(), "a")
	if !cloud.Is(err, cloud.Throttled) {
		t.Errorf("Utilization failed with %v, want Throttled", err)
	}
	equal(t, "to be asked again after", 7*time.Second, use.Again)
}

// flows records the flows of the reads of a utilization.
type flows struct {
	cloud.Client
	seen []cloud.Flow
}

func (f *flows) ServerStatus(ctx context.Context, id string) (cloud.Status, error) {
	f.seen = append(f.seen, cloud.FlowOf(ctx))
	return f.Client.ServerStatus(ctx, id)
}

func TestUtilizationReadLongestAgoGoesFirst(t *testing.T) {
	h := polling(t)
	c := newCloud()
	c.AddServers(server("a"))
	f := &flows{Client: c}
	h.inv.Connect(f, nil)
	h.publish(server("a"))
	want := []time.Time{h.clock.Now().Add(-interval)} // one that was never read is due now
	for range 3 {
		if _, err := h.inv.Utilization.Read(t.Context(), "a"); err != nil {
			t.Fatalf("Utilization: %v", err)
		}
		want = append(want, h.clock.Now())
		h.clock.advance(3 * interval)
	}
	equal(t, "reads", len(want)-1, len(f.seen))
	for i, flow := range f.seen {
		if flow.Class != cloud.Refreshes || !flow.Since.Equal(want[i]) {
			t.Errorf("read %d: %+v, want a refresh of what was read at %s", i, flow, want[i])
		}
	}
}
