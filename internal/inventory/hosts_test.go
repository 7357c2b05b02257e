package inventory_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestHostsCallsTheCloudOncePerInterval(t *testing.T) {
	h := polling(t)
	if _, err := h.inv.Hosts.List(t.Context(), dawn); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("got %v, want Unavailable before the first connection", err)
	}
	c, host := newCloud(), cloud.Host{Name: "esxi-1", GPU: true, AvailableHours: 399}
	c.SetHosts(host)
	h.inv.Connect(c, nil)
	for range 10 {
		got, err := h.inv.Hosts.List(t.Context(), h.clock.Now().Add(-interval))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "hosts", []cloud.Host{host}, got)
		h.clock.advance(interval / 4)
	}
	equal(t, "calls in two and a quarter intervals", 2, c.Sent(fake.ListHosts))

	h.inv.Disconnect()
	if _, err := h.inv.Hosts.List(t.Context(), dawn); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("got %v, want Unavailable after the end of the connection", err)
	}
	h.inv.Connect(c, nil)
	if _, err := h.inv.Hosts.List(t.Context(), dawn); err != nil {
		t.Fatal(err)
	}
	equal(t, "calls after another connection", 3, c.Sent(fake.ListHosts))
}

func TestHostsDoesNotKeepAnErrorThatIsNoCloudError(t *testing.T) {
	h := polling(t)
	c, failure := newCloud(), errors.New("no cloud error")
	c.FailAlways(fake.ListHosts, failure, false)
	h.inv.Connect(unclassified{c}, nil)
	for range 2 {
		if _, err := h.inv.Hosts.List(t.Context(), dawn); !errors.Is(err, failure) || cloud.KindOf(err) != "" {
			t.Errorf("got %v, want %v", err, failure)
		}
	}
	equal(t, "calls", 2, c.Sent(fake.ListHosts))
}

func TestHostsKeepsACloudErrorForAPollInterval(t *testing.T) {
	h := polling(t)
	c, failure := newCloud(), &cloud.Error{Kind: cloud.Unavailable, Op: "list hosts", Detail: "connection refused"}
	c.FailAlways(fake.ListHosts, failure, false)
	h.inv.Connect(c, nil)
	want := func(calls int) {
		t.Helper()
		if _, err := h.inv.Hosts.List(t.Context(), h.clock.Now()); !errors.Is(err, failure) {
			t.Errorf("got %v, want %v", err, failure)
		}
		equal(t, "calls", calls, c.Sent(fake.ListHosts))
	}
	want(1)
	h.clock.advance(interval - 1)
	want(1)
	h.clock.advance(1)
	want(2)

	h.inv.Disconnect()
	h.inv.Connect(c, nil)
	want(3)
}

func TestDisconnectDropsAHostListingUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := polling(t)
		old, begun := newCloud(), h.clock.Now()
		old.SetHosts(cloud.Host{Name: "old"})
		delay(old, time.Second)
		h.inv.Connect(old, nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = h.inv.Hosts.List(t.Context(), begun)
		}()
		synctest.Wait()
		h.inv.Disconnect()
		c := newCloud()
		c.SetHosts(cloud.Host{Name: "new"})
		h.inv.Connect(c, nil)
		<-done
		got, err := h.inv.Hosts.List(t.Context(), begun)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "hosts of the new connection", []cloud.Host{{Name: "new"}}, got)
	})
}

func TestHostsFailsAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := polling(t)
		c := newCloud()
		c.SetHosts(cloud.Host{Name: "late"})
		delay(c, inventory.HostsTimeout+time.Second)
		h.inv.Connect(c, nil)
		asked := time.Now()
		_, err := h.inv.Hosts.List(t.Context(), h.clock.Now())
		if !errors.Is(err, inventory.ErrNotAnswered) {
			t.Fatalf("got %v, want ErrNotAnswered", err)
		}
		equal(t, "message", "list hosts: the cloud has not answered yet", err.Error())
		equal(t, "waited", inventory.HostsTimeout, time.Since(asked))
		<-time.After(2 * time.Second)
		got, err := h.inv.Hosts.List(t.Context(), h.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "hosts", []cloud.Host{{Name: "late"}}, got)
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
