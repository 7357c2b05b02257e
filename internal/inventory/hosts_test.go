package inventory_test

import (
	"errors"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

// newHosts returns a cloud with hosts.
func newHosts(hosts ...cloud.Host) *fake.Cloud {
	return fake.New(fake.Options{Capabilities: cloud.NewCapabilities(cloud.Hosts), Hosts: hosts})
}

func TestHostsAreAskedForOnceAnInterval(t *testing.T) {
	h := polling(t)
	if _, err := h.inv.Hosts(t.Context(), dawn); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("got %v, want Unavailable before the first connection", err)
	}
	hosts := []cloud.Host{{Name: "esxi-1", GPU: true, AvailableHours: 399}}
	from := newHosts(hosts...)
	h.inv.Connect(from, nil)
	for range 10 {
		got, err := h.inv.Hosts(t.Context(), h.clock.Now().Add(-interval))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "hosts", hosts, got)
		h.clock.advance(interval / 4)
	}
	equal(t, "calls in two and a quarter intervals", 2, from.Sent(fake.ListHosts))

	h.inv.Disconnect()
	if _, err := h.inv.Hosts(t.Context(), dawn); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("got %v, want Unavailable after the end of the connection", err)
	}
	h.inv.Connect(from, nil)
	if _, err := h.inv.Hosts(t.Context(), dawn); err != nil {
		t.Fatal(err)
	}
	equal(t, "calls after another connection, to which nothing is known", 3, from.Sent(fake.ListHosts))
}

func TestAFailureToListHostsIsNotRemembered(t *testing.T) {
	h := polling(t)
	from, away := newHosts(), errors.New("away")
	from.FailAlways(fake.ListHosts, away, false)
	h.inv.Connect(from, nil)
	for range 2 {
		if _, err := h.inv.Hosts(t.Context(), dawn); !errors.Is(err, away) {
			t.Errorf("got %v, want %v", err, away)
		}
	}
	equal(t, "calls", 2, from.Sent(fake.ListHosts))
}

func TestWhatAServerUsesOfItsHostIsListedAndWakesNobody(t *testing.T) {
	h := newHouse(t)
	using := func(mhz, mb int) func(*cloud.Server) {
		return func(s *cloud.Server) { s.CPUUsageMHz, s.MemoryUsageMB = mhz, mb }
	}
	h.publish(server("a", using(100, 10)))
	h.told()
	h.publish(server("a", using(900, 90)))
	h.wantTold(inventory.Event{Cloud: "home"})
	got, _ := h.inv.Server("a")
	equal(t, "the server", server("a", using(900, 90)), got)
}
