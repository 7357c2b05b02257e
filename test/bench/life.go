package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// lifeVMs is the number of VMs of each case.
	lifeVMs = 10
	// mostWrites and mostCalls are the budgets from the create to the end of a VM. On
	// a core cloud, which has no labels, the status holds the claim: one write more. A deletion of
	// more than five seconds takes one write more, too, since the status reports it.
	mostWrites = 4
	mostCalls  = 4
	// claimedWrites is the budget of VMs that are created with their claim.
	claimedWrites = 2
	// lifePoll is the poll interval.
	lifePoll = 2 * time.Second
	// lifeSettle is the settle time, which VMs outlive: within it, the proof of a deletion
	// takes a read more.
	lifeSettle = time.Second
)

// life is one kind of cloud, with its build and delete times.
type life struct {
	name  string
	cloud string
	// build and remove are the build and delete times; with 0, the cloud is
	// synchronous.
	build, remove time.Duration
	// writes is the budget of writes.
	writes int
	// claimed: the VMs are created with their claim.
	claimed bool
}

var allLives = []life{
	{name: "cloud answers when done", cloud: pcapi.DefaultCloudName, writes: mostWrites},
	{name: "cloud takes 1 s for each", cloud: pcapi.DefaultCloudName, build: time.Second, remove: time.Second, writes: mostWrites},
	{name: "cloud takes 10 s for each", cloud: pcapi.DefaultCloudName, build: 10 * time.Second, remove: 10 * time.Second, writes: mostWrites + 1},
	{name: "cloud answers when done, VMs created with their claim", cloud: pcapi.DefaultCloudName, writes: claimedWrites, claimed: true},
	{name: "core cloud, done when it answers", cloud: coreCloud, writes: mostWrites + 1},
}

// lives counts the operator's writes and calls from the create of a VM, over at
// least two polls, to its deletion.
func lives(ctx context.Context, s *stage) ([]row, error) {
	if err := s.configure(ctx, lifePoll, lifeSettle); err != nil {
		return nil, err
	}
	m, err := s.startManager(ctx)
	if err != nil {
		return nil, err
	}
	writes, calls := []row{heading("Kubernetes writes by the operator in a VM's life")}, []row{heading("Cloud calls in a VM's life, except polls")}
	for i, l := range allLives {
		say("counting writes and calls: %s", l.name)
		var w, c row
		live := func() (err error) {
			w, c, err = s.live(ctx, fmt.Sprintf("life%d", i), l)
			return err
		}
		if l.claimed {
			err = s.withClaims(ctx, live)
		} else {
			err = live()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, stopAfter(err, m))
		}
		writes, calls = append(writes, w), append(calls, c)
	}
	return append(writes, calls...), m.stop()
}

func (s *stage) live(ctx context.Context, prefix string, l life) (writes, calls row, err error) {
	at := s.cloud
	if l.cloud == coreCloud {
		at = s.core
	} else if err := at.behave(ctx, l.build, l.remove); err != nil {
		return row{}, row{}, err
	}
	if err := at.forget(ctx); err != nil {
		return row{}, row{}, err
	}
	if _, err := s.audit.next(); err != nil {
		return row{}, row{}, err
	}
	for _, step := range []func() error{
		func() error { return s.create(ctx, prefix, lifeVMs, l.cloud) },
		func() error { return s.polled(ctx, at) },
		func() error { return s.remove(ctx, prefix, lifeVMs) },
	} {
		if err := step(); err != nil {
			return row{}, row{}, err
		}
	}
	entries, err := s.audit.untilQuiet(ctx, operator, 2*time.Second)
	if err != nil {
		return row{}, row{}, err
	}
	called, err := at.calls(ctx)
	if err != nil {
		return row{}, row{}, err
	}
	return lifeWrites(l, prefix, writesOf(entries, operator)), lifeCalls(l.name, called), nil
}

// lifeWrites compares the writes of the VM with the most writes to the budget.
// Events are reported separately and do not count.
func lifeWrites(l life, prefix string, entries []entry) row {
	perVM, kinds, events := map[string]int{}, map[string]int{}, 0
	for _, e := range entries {
		switch {
		case !strings.HasPrefix(e.ObjectRef.Name, prefix+"-"):
		case e.event():
			events++
		default:
			perVM[e.ObjectRef.Name]++
			kinds[e.what()]++
		}
	}
	most := 0
	for _, n := range perVM {
		most = max(most, n)
	}
	detail := perEach(kinds, lifeVMs) + "; events: " + ratio(events, lifeVMs)
	return count(l.name, most, l.writes, detail)
}

func lifeCalls(name string, calls []call) row {
	kinds, total := map[string]int{}, 0
	for _, c := range calls {
		if !c.poll() {
			kinds[c.what()]++
			total++
		}
	}
	most := (total + lifeVMs - 1) / lifeVMs
	return count(name, most, mostCalls, perEach(kinds, lifeVMs))
}

// perEach formats counts divided by n, such as "patch vms 2, patch vms/status 1".
func perEach(kinds map[string]int, n int) string {
	parts := make([]string, 0, len(kinds))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		parts = append(parts, kind+" "+ratio(kinds[kind], n))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// ratio formats a/b, without decimals if it is an integer.
func ratio(a, b int) string {
	if a%b == 0 {
		return fmt.Sprint(a / b)
	}
	return fmt.Sprintf("%.2f", float64(a)/float64(b))
}
