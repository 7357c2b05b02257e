package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/mockcloud"
)

func TestFirstsOfReturnsWhatComesAfterTheLease(t *testing.T) {
	post := func(at int) call { return call{Method: "POST", Route: "/servers", At: second(at)} }
	list := func(at int) call { return call{Method: "GET", Route: "/servers", At: second(at)} }
	write := func(who agent, resource string, at int) entry {
		e := entry{Verb: "patch", UserAgent: string(who), Received: second(at)}
		e.ObjectRef.Resource = resource
		return e
	}
	calls := []call{post(1), list(6), post(9), post(8), list(7)}
	entries := []entry{write(operator, "vms", 2), write(operator, "leases", 5), write(bench, "vms", 6), write(operator, "vms", 9), write(operator, "vms", 8)}
	for name, test := range map[string]struct {
		calls                    []call
		entries                  []entry
		called, created, written time.Time
	}{
		"before and after the lease: those after it": {calls, entries, second(6), second(8), second(8)},
		"nothing after the lease: zero":              {calls[:1], entries[:3], time.Time{}, time.Time{}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			called, created, written := firstsOf(test.calls, test.entries, second(5))
			got, want := []time.Time{called, created, written}, []time.Time{test.called, test.created, test.written}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("call, create, write (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInFlightCountsBeforeTheSignal(t *testing.T) {
	effect := func(op mockcloud.Op, at int) mockcloud.LedgerEntry {
		return mockcloud.LedgerEntry{Op: op, Time: second(at)}
	}
	ledger := []mockcloud.LedgerEntry{
		effect(mockcloud.OpCreate, 1), effect(mockcloud.OpCreate, 1), // earlier
		effect(mockcloud.OpDelete, 2), effect(mockcloud.OpCreate, 3), effect(mockcloud.OpCreate, 6),
		effect(mockcloud.OpDelete, 7), effect(mockcloud.OpGone, 8), effect(mockcloud.OpGone, 9),
	}

	creating, deleting, left := inFlight(ledger, second(5), 2)
	if diff := cmp.Diff([]int{1, 1, 2}, []int{creating, deleting, left}); diff != "" {
		t.Errorf("creating, deleting, left (-want +got):\n%s", diff)
	}
}

func TestTakeoverRowsCompareToTheGoals(t *testing.T) {
	good := takeover{lease: 15 * time.Second, call: 2 * time.Second, write: 9 * time.Second, created: 1, alive: 1, left: 8}
	late := takeover{lease: 15 * time.Second, call: 17 * time.Second, write: 17 * time.Second, created: 2, alive: 1, left: 9}
	tests := []struct {
		name   string
		of     takeover
		ending ending
		want   []outcome
	}{
		{"first call in time: reached", good, ending{"SIGTERM", syscall.SIGTERM, false}, []outcome{none, ok, none, ok, ok, ok}},
		{"after the lease, two servers for a VM: one is left", late, ending{"SIGTERM", syscall.SIGTERM, false}, []outcome{none, missed, none, over, ok, over}},
		{"killed: the lease is part of the goal", late, ending{"SIGKILL", syscall.SIGKILL, true}, []outcome{none, ok, none, over, ok, over}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []outcome
			for _, r := range test.of.rows(test.ending, 10) {
				got = append(got, r.outcome)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
