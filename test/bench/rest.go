package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
)

const (
	// aimedHeap is the memory for a VM, in bytes.
	aimedHeap = 6 << 10
	// strangers are servers in the cloud that belong to no VM here.
	strangers = 1500
	// restPoll is the time between two listings meanwhile.
	restPoll = 5 * time.Second
)

// atRest measures the heap with more and more VMs, and counts what happens
// when nothing does, and when the operator starts anew.
func atRest(ctx context.Context, s *stage) ([]row, error) {
	if err := s.pollEvery(ctx, restPoll); err != nil {
		return nil, err
	}
	err := each(strangers, func(i int) error {
		return s.cloud.ask(ctx, "POST", "/admin/servers", map[string]any{"name": fmt.Sprintf("stranger-%d", i)}, nil)
	})
	if err != nil {
		return nil, fmt.Errorf("putting strangers' servers into the cloud: %w", err)
	}
	m, err := s.startManager(ctx)
	if err != nil {
		return nil, err
	}
	counts, heaps, empty, err := s.growing(ctx, m)
	if err != nil {
		return nil, stopAfter(err, m)
	}
	if err := m.stop(); err != nil {
		return nil, err
	}
	again, heap, err := s.restarted(ctx, empty)
	return slices.Concat(counts, again, heaps, []row{heap}), err
}

// growing measures with more and more VMs. empty is the heap with none.
func (s *stage) growing(ctx context.Context, m *manager) (counts, heaps []row, empty int64, err error) {
	say("measuring the heap")
	// The first VMs open connections and fill pools, which stay.
	if err := s.create(ctx, "first", creators, v1alpha1.DefaultCloudName); err != nil {
		return nil, nil, 0, err
	}
	if err := s.remove(ctx, "first", creators); err != nil {
		return nil, nil, 0, err
	}
	if empty, err = s.restingHeap(ctx, m); err != nil {
		return nil, nil, 0, err
	}
	heaps = []row{heading("Heap of the operator, at rest"),
		info("with no VM", mebibytes(empty), fmt.Sprintf("%d servers of strangers in the cloud", strangers))}
	had, last := 0, empty
	for _, n := range s.options.populations() {
		say("measuring the heap with %d VMs", n)
		if err := s.create(ctx, fmt.Sprintf("rest%d", n), n-had, v1alpha1.DefaultCloudName); err != nil {
			return nil, nil, 0, err
		}
		heap, err := s.restingHeap(ctx, m)
		if err != nil {
			return nil, nil, 0, err
		}
		heaps = append(heaps, heapRow(fmt.Sprintf("a VM, from %d to %d", had, n), heap-last, n-had, mebibytes(heap)+" in all"))
		if had == 0 {
			if counts, err = s.restingCounts(ctx, m, n); err != nil {
				return nil, nil, 0, err
			}
		}
		had, last = n, heap
	}
	if s.options.profile != "" {
		err = m.save(ctx, "heap?gc=1", s.options.profile, "heap.pprof")
	}
	return counts, heaps, empty, err
}

// populations are the numbers of VMs with which the heap is measured.
func (o options) populations() []int {
	if o.most <= o.vms {
		return []int{o.vms}
	}
	return []int{o.vms, o.most}
}

// restarted has a new process find everything as the last one left it.
func (s *stage) restarted(ctx context.Context, empty int64) (counts []row, heap row, err error) {
	n := slices.Max(s.options.populations())
	say("starting the operator anew with %d VMs", n)
	if _, err := s.audit.next(); err != nil {
		return nil, row{}, err
	}
	since := s.audit
	m, err := s.startManager(ctx)
	if err != nil {
		return nil, row{}, err
	}
	bytes, err := s.restingHeap(ctx, m)
	if err != nil {
		return nil, row{}, stopAfter(err, m)
	}
	entries, err := since.next()
	if err != nil {
		return nil, row{}, stopAfter(err, m)
	}
	calls, err := s.cloud.calls(ctx)
	if err != nil {
		return nil, row{}, stopAfter(err, m)
	}
	counts = append([]row{heading(fmt.Sprintf("The operator started anew with %d VMs", n))}, idleRows(entries, calls)...)
	heap = heapRow(fmt.Sprintf("a VM, %d after a restart", n), bytes-empty, n, mebibytes(bytes)+" in all; without the events that the recorder remembers for some minutes")
	return counts, heap, m.stop()
}

// restingHeap is the heap once the cloud was listed and nothing is left to write.
func (s *stage) restingHeap(ctx context.Context, m *manager) (int64, error) {
	if err := s.polled(ctx, s.cloud, 2); err != nil {
		return 0, err
	}
	if _, err := s.audit.untilQuiet(ctx, operator, 2*time.Second); err != nil {
		return 0, err
	}
	return m.heap(ctx)
}

func heapRow(name string, bytes int64, vms int, detail string) row {
	each := float64(bytes) / float64(vms)
	return aim(name, fmt.Sprintf("%.1f KiB", each/1024), fmt.Sprintf("≤ %d KiB", aimedHeap>>10), each <= aimedHeap, detail)
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// restingCounts counts what the operator writes and calls while n VMs rest.
func (s *stage) restingCounts(ctx context.Context, m *manager, n int) ([]row, error) {
	say("counting what is written and called at rest, for %s", s.options.rest)
	if err := s.cloud.forget(ctx); err != nil {
		return nil, err
	}
	passes, err := m.passes(ctx)
	if err != nil {
		return nil, err
	}
	cpu, err := m.cpu(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(s.options.rest):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	entries, err := s.audit.next()
	if err != nil {
		return nil, err
	}
	calls, err := s.cloud.calls(ctx)
	if err != nil {
		return nil, err
	}
	after, err := m.passes(ctx)
	if err != nil {
		return nil, err
	}
	cpuAfter, err := m.cpu(ctx)
	if err != nil {
		return nil, err
	}
	rows := append([]row{heading(fmt.Sprintf("%s at rest with %d VMs, a listing every %s", s.options.rest, n, restPoll))}, idleRows(entries, calls)...)
	return append(rows, listingRow(calls, n+strangers),
		info("passes over VMs", fmt.Sprintf("%.0f", after-passes), fmt.Sprintf("CPU: %.1f %% of one", 100*(cpuAfter-cpu).Seconds()/s.options.rest.Seconds()))), nil
}

// idleRows holds what was written and called to nothing at all.
func idleRows(entries []entry, calls []call) []row {
	writes, leases, aside := map[string]int{}, 0, map[string]int{}
	for _, e := range entries {
		if e.by(operator) && e.lease() {
			leases++
		}
	}
	for _, e := range writesOf(entries, operator) {
		writes[e.what()]++
	}
	for _, c := range calls {
		if !c.poll() {
			aside[c.what()]++
		}
	}
	total := func(of map[string]int) (n int) {
		for _, count := range of {
			n += count
		}
		return n
	}
	return []row{
		count("Kubernetes writes, the lease aside", total(writes), 0, fmt.Sprintf("%s; writes of the lease: %d", perEach(writes, 1), leases)),
		count("cloud calls, polls aside", total(aside), 0, perEach(aside, 1)),
	}
}

func listingRow(calls []call, servers int) row {
	// The last listing may be under way.
	pages := listings(calls)
	pages = pages[:max(0, len(pages)-1)]
	most := 0
	if len(pages) > 0 {
		most = slices.Max(pages)
	}
	return count(fmt.Sprintf("cloud calls for a listing of %d servers", servers), most, (servers+inventory.PageSize-1)/inventory.PageSize,
		fmt.Sprintf("the most of %d listings, pages of %d", len(pages), inventory.PageSize))
}
