package inventory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// hostCloud answers ListHosts and counts the calls.
type hostCloud struct {
	cloud.Client
	hosts []cloud.Host
	takes time.Duration
	err   error
	asked int
}

func (l *hostCloud) ListHosts(context.Context) ([]cloud.Host, error) {
	l.asked++
	if l.takes > 0 {
		<-time.After(l.takes)
	}
	return l.hosts, l.err
}

func TestHostsCallsTheCloudOncePerInterval(t *testing.T) {
	h := polling(t)
	if _, err := h.inv.Hosts(t.Context(), dawn); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("got %v, want Unavailable before the first connection", err)
	}
	l := &hostCloud{hosts: []cloud.Host{{Name: "esxi-1", GPU: true, AvailableHours: 399}}}
	h.inv.Connect(l, nil)
	for range 10 {
		got, err := h.inv.Hosts(t.Context(), h.clock.Now().Add(-interval))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "hosts", l.hosts, got)
		h.clock.advance(interval / 4)
	}
	equal(t, "calls in two and a quarter intervals", 2, l.asked)

	h.inv.Disconnect()
	if _, err := h.inv.Hosts(t.Context(), dawn); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("got %v, want Unavailable after the end of the connection", err)
	}
	h.inv.Connect(l, nil)
	if _, err := h.inv.Hosts(t.Context(), dawn); err != nil {
		t.Fatal(err)
	}
	equal(t, "calls after another connection", 3, l.asked)
}

func TestHostsDoesNotKeepAnErrorThatIsNoCloudError(t *testing.T) {
	h := polling(t)
	l := &hostCloud{err: errors.New("no cloud error")}
	h.inv.Connect(l, nil)
	for range 2 {
		if _, err := h.inv.Hosts(t.Context(), dawn); !errors.Is(err, l.err) {
			t.Errorf("got %v, want %v", err, l.err)
		}
	}
	equal(t, "calls", 2, l.asked)
}

func TestHostsKeepsACloudErrorForAPollInterval(t *testing.T) {
	h := polling(t)
	l := &hostCloud{err: &cloud.Error{Kind: cloud.Unavailable, Op: "list hosts", Detail: "connection refused"}}
	h.inv.Connect(l, nil)
	want := func(calls int) {
		t.Helper()
		if _, err := h.inv.Hosts(t.Context(), h.clock.Now()); !errors.Is(err, l.err) {
			t.Errorf("got %v, want %v", err, l.err)
		}
		equal(t, "calls", calls, l.asked)
	}
	want(1)
	h.clock.advance(interval - 1)
	want(1)
	h.clock.advance(1)
	want(2)

	h.inv.Disconnect()
	h.inv.Connect(l, nil)
	want(3)
}

func TestDisconnectDropsAHostListingUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := polling(t)
		old, begun := &hostCloud{hosts: []cloud.Host{{Name: "old"}}, takes: time.Second}, h.clock.Now()
		h.inv.Connect(old, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = h.inv.Hosts(t.Context(), begun)
		}()
		synctest.Wait()
		h.inv.Disconnect()
		l := &hostCloud{hosts: []cloud.Host{{Name: "new"}}}
		h.inv.Connect(l, nil)
		<-done
		got, err := h.inv.Hosts(t.Context(), begun)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "hosts of the new connection", l.hosts, got)
	})
}

func TestHostsFailsAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := polling(t)
		l := &hostCloud{hosts: []cloud.Host{{Name: "late"}}, takes: inventory.HostsTimeout + time.Second}
		h.inv.Connect(l, nil)
		asked := time.Now()
		_, err := h.inv.Hosts(t.Context(), h.clock.Now())
		if !errors.Is(err, inventory.ErrNotAnswered) {
			t.Fatalf("got %v, want ErrNotAnswered", err)
		}
		equal(t, "message", "list hosts: the cloud has not answered yet", err.Error())
		equal(t, "waited", inventory.HostsTimeout, time.Since(asked))
		<-time.After(2 * time.Second)
		got, err := h.inv.Hosts(t.Context(), h.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "hosts", l.hosts, got)
	})
}

func TestUsageOfTheHostIsListedAndEnqueuesNothing(t *testing.T) {
	h := newHarness(t)
	using := func(mhz, mb int) func(*cloud.Server) {
		return func(s *cloud.Server) { s.CPUUsageMHz, s.MemoryUsageMB = mhz, mb }
	}
	h.publish(server("a", using(100, 10)))
	h.takeEvents()
	h.publish(server("a", using(900, 90)))
	h.wantEvents(inventory.Event{Cloud: "home"})
	got, _ := h.inv.Server("a")
	equal(t, "the server", server("a", using(900, 90)), got)
}
