package inventory_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// wantFastPolling checks whether NextPoll is sooner than the interval although
// a listing was just published.
func (h *harness) wantFastPolling(when string, want bool) {
	h.t.Helper()
	if want {
		h.wantNext(when, time.Second, 2*time.Second)
	} else {
		h.wantNext(when, interval*9/10, interval*11/10)
	}
}

func TestTransitionalServerWarrantsFastPollingForTenMinutes(t *testing.T) {
	labelled, building, deleting := owned("u", "c"), in(cloud.StateBuilding), in(cloud.StateDeleting)
	tests := []struct {
		name string
		// listed is server a in each listing; nil if it is not listed.
		listed []func(*cloud.Server)
		// recorded is recorded before each listing; nil if nothing is.
		recorded []func(*cloud.Server)
	}{
		{name: "listed with owner labels", listed: []func(*cloud.Server){labelled, building}},
		{name: "recorded again before each listing", listed: []func(*cloud.Server){building}, recorded: []func(*cloud.Server){building}},
		{name: "recorded as deleting, listed with owner labels", listed: []func(*cloud.Server){labelled, deleting}, recorded: []func(*cloud.Server){deleting}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := polling(t)
			pollWithOtherChange := func() {
				if tc.recorded != nil {
					h.inv.RecordServer("u", server("a", tc.recorded...))
				}
				h.inv.RequestPoll() // ends the back-off, as another object does that waits for a listing
				h.clock.advance(time.Second)
				h.poll(0, server("a", tc.listed...), server("b", named(h.clock.Now().String())))
			}
			start := h.clock.Now()
			pollWithOtherChange()
			first := h.clock.Now()
			if tc.recorded != nil {
				first = start
			}
			for h.clock.Now().Before(first.Add(10*time.Minute - time.Second)) {
				h.wantFastPolling("before the deadline", true)
				pollWithOtherChange()
			}
			h.clock.advance(first.Add(10*time.Minute - 1).Sub(h.clock.Now()))
			h.wantNext("just before the deadline, part of the time is over", 1, 2*time.Second)
			pollWithOtherChange()
			h.wantFastPolling("after the deadline", false)
			h.pollRequests = nil
			pollWithOtherChange()
			h.wantFastPolling("well after the deadline", false)
			equal(t, "requested polls: only that of the other object", []string{"home 1s"}, h.pollRequests)
		})
	}
}

func TestFastPollingBacksOffUntilTheDeadline(t *testing.T) {
	h := polling(t)
	building := server("a", owned("u", "c"), in(cloud.StateBuilding))
	h.inv.Configure(inventory.Settings{PollInterval: time.Hour})
	h.poll(0, building)
	for range 3 {
		h.poll(0, building)
	}
	h.wantNext("three listings without changes", 8*time.Second, 8*time.Second)
	h.clock.advance(10 * time.Minute)
	h.poll(0, building)
	h.wantNext("after the deadline", 54*time.Minute, 66*time.Minute)
}

// A cloud can list any number of servers with the labels of this cluster.
func TestFewOfManyTransitionalServersAreTracked(t *testing.T) {
	const servers = 60_000
	h := polling(t)
	h.inv.Configure(inventory.Settings{PollInterval: time.Hour})
	building := make([]cloud.Server, servers)
	for i := range building {
		building[i] = server(strconv.Itoa(i), owned("u"+strconv.Itoa(i), "c"))
	}
	h.poll(0, building...)
	before := heap()
	for i := range building {
		building[i].State = cloud.StateBuilding
	}
	h.poll(0, building...)
	if grown := (heap() - before) >> 20; grown > 4 {
		t.Errorf("the heap grew by %d MiB when %d servers began to be built, want at most 4", grown, servers)
	}
	h.wantNext("servers are being built", time.Second, time.Second)
	for range 3 {
		h.poll(0, building...)
	}
	h.wantNext("three listings without changes", 8*time.Second, 8*time.Second)
	for i := range building {
		building[i].State = cloud.StateActive
	}
	h.poll(0, building...)
	h.wantNext("all were built", 54*time.Minute, 66*time.Minute)
}

func TestAnotherTransitionalStateStartsAnotherDeadline(t *testing.T) {
	h := polling(t)
	h.poll(0, server("a", owned("u", "c"), in(cloud.StateBuilding)))
	h.clock.advance(time.Hour)
	h.poll(0, server("a", owned("u", "c"), in(cloud.StateBuilding)), server("b"))
	h.wantFastPolling("it is stuck", false)

	h.inv.RecordServer("u", server("a", in(cloud.StateDeleting)))
	h.poll(0, server("a", owned("u", "c"), in(cloud.StateBuilding)), server("b"), server("c"))
	h.wantFastPolling("it is recorded as deleting", true)
	h.clock.advance(time.Hour)
	h.poll(0, server("a", owned("u", "c"), in(cloud.StateDeleting)))
	h.wantFastPolling("it is stuck again", false)

	h.poll(0, server("a", owned("u", "c")))
	h.poll(0, server("a", owned("u", "c"), in(cloud.StateBuilding)))
	h.wantFastPolling("it is building after it was active", true)
	h.poll(0)
	h.wantFastPolling("it is gone", false)
}

func TestForgottenServerIsPolledFastWhileItIsListedAsDeleting(t *testing.T) {
	h := polling(t)
	deleting := server("a", owned("u", "c"), in(cloud.StateDeleting))
	h.poll(0, deleting)
	h.inv.RecordServer("u", deleting)
	h.inv.ForgetServer("a")
	h.wantFastPolling("the listing shows it still", true)
	h.poll(0)
	h.wantFastPolling("the listing shows it no more", false)
}

func TestRecordedServerBelongsToTheOwnerItWasRecordedForLast(t *testing.T) {
	h := newHarness(t)
	h.inv.RecordServer("u", server("a"))
	h.inv.RecordServer("u", server("b"))
	h.inv.RecordServer("v", server("a", named("other")))
	equal(t, "servers of u", []cloud.Server{server("b")}, h.inv.Owned("u", "c"))
	equal(t, "servers of v", []cloud.Server{server("a", named("other"))}, h.inv.Owned("v", "c"))
	h.inv.ForgetServer("a")
	equal(t, "servers of v after it was forgotten", []cloud.Server(nil), h.inv.Owned("v", "c"))
	h.clock.advance(time.Second)
	h.publish(server("b"))
	equal(t, "servers of u after a later listing", []cloud.Server(nil), h.inv.Owned("u", "c"))
}
