package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
)

const (
	// aimedHeap is the goal for the heap of one VM, in bytes.
	aimedHeap = 6 << 10
	// foreignServers is the number of servers that belong to no VM.
	foreignServers = 1500
	// restPoll is the poll interval.
	restPoll = 5 * time.Second
)

// atRest measures the heap with increasing numbers of VMs, and counts writes and
// calls at rest and after a restart of the operator.
func atRest(ctx context.Context, s *stage) ([]row, error) {
	if err := s.pollEvery(ctx, restPoll); err != nil {
		return nil, err
	}
	err := each(foreignServers, func(i int) error {
		return s.cloud.ask(ctx, "POST", "/admin/servers", map[string]any{"name": fmt.Sprintf("foreign-%d", i)}, nil)
	})
	if err != nil {
		return nil, fmt.Errorf("adding servers that belong to no VM: %w", err)
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

// growing measures with increasing numbers of VMs. empty is the heap without VMs.
func (s *stage) growing(ctx context.Context, m *manager) (counts, heaps []row, empty int64, err error) {
	say("measuring the heap")
	// The first VMs open connections and fill pools, which are kept.
	if err := s.create(ctx, "first", creators, pcapi.DefaultCloudName); err != nil {
		return nil, nil, 0, err
	}
	if err := s.remove(ctx, "first", creators); err != nil {
		return nil, nil, 0, err
	}
	if empty, err = s.restingHeap(ctx, m); err != nil {
		return nil, nil, 0, err
	}
	heaps = []row{heading("Heap of the operator, at rest"),
		info("without VMs", mebibytes(empty), fmt.Sprintf("%d servers that belong to no VM in the cloud", foreignServers))}
	had, last := 0, empty
	for _, n := range s.options.populations() {
		say("measuring the heap with %d VMs", n)
		if err := s.create(ctx, fmt.Sprintf("rest%d", n), n-had, pcapi.DefaultCloudName); err != nil {
			return nil, nil, 0, err
		}
		heap, err := s.restingHeap(ctx, m)
		if err != nil {
			return nil, nil, 0, err
		}
		heaps = append(heaps, heapRow(fmt.Sprintf("a VM, from %d to %d", had, n), heap-last, n-had, mebibytes(heap)+" in total"))
		if had == 0 {
			c, err := s.countAtRest(ctx, m, s.options.rest)
			if err != nil {
				return nil, nil, 0, err
			}
			counts = append(c.rows(n, n+foreignServers, restPoll),
				info("reconciles of VMs", fmt.Sprintf("%.0f", c.reconciles), fmt.Sprintf("CPU: %.1f %% of one", 100*c.cpu)))
		}
		had, last = n, heap
	}
	if s.options.profile != "" {
		err = m.save(ctx, "heap?gc=1", s.options.profile, "heap.pprof")
	}
	return counts, heaps, empty, err
}

// populations returns the numbers of VMs with which the heap is measured.
func (o options) populations() []int {
	if o.most <= o.vms {
		return []int{o.vms}
	}
	return []int{o.vms, o.most}
}

// restarted measures a new process of the operator with the existing VMs.
func (s *stage) restarted(ctx context.Context, empty int64) (counts []row, heap row, err error) {
	n := slices.Max(s.options.populations())
	say("restarting the operator with %d VMs", n)
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
	counts = append([]row{heading(fmt.Sprintf("The operator restarted with %d VMs", n))}, idleRows(entries, calls)...)
	heap = heapRow(fmt.Sprintf("a VM, %d after a restart", n), bytes-empty, n, mebibytes(bytes)+" in total; without the events that the recorder caches for some minutes")
	return counts, heap, m.stop()
}

// restingHeap returns the heap after two listings, when nothing is written.
func (s *stage) restingHeap(ctx context.Context, m *manager) (int64, error) {
	if err := s.polled(ctx, s.cloud); err != nil {
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

// restCounts is what the operator did while nothing changed.
type restCounts struct {
	during     time.Duration
	entries    []entry
	calls      []call
	reconciles float64
	// cpu is the share of one CPU.
	cpu float64
}

// countAtRest counts what the operator does during a time in which nothing changes.
func (s *stage) countAtRest(ctx context.Context, m *manager, during time.Duration) (restCounts, error) {
	say("counting writes and calls at rest for %s", during)
	if _, err := s.audit.next(); err != nil {
		return restCounts{}, err
	}
	if err := s.cloud.forget(ctx); err != nil {
		return restCounts{}, err
	}
	before, err := m.reconciles(ctx)
	if err != nil {
		return restCounts{}, err
	}
	cpu, err := m.cpu(ctx)
	if err != nil {
		return restCounts{}, err
	}
	select {
	case <-time.After(during):
	case <-ctx.Done():
		return restCounts{}, ctx.Err()
	}
	c := restCounts{during: during}
	if c.entries, err = s.audit.next(); err != nil {
		return c, err
	}
	if c.calls, err = s.cloud.calls(ctx); err != nil {
		return c, err
	}
	after, err := m.reconciles(ctx)
	if err != nil {
		return c, err
	}
	cpuAfter, err := m.cpu(ctx)
	c.reconciles, c.cpu = after-before, (cpuAfter-cpu).Seconds()/during.Seconds()
	return c, err
}

// rows compares the counts to the budgets. servers is the number of servers in the cloud.
func (c restCounts) rows(vms, servers int, poll time.Duration) []row {
	rows := append([]row{heading(fmt.Sprintf("%s at rest with %d VMs, a listing every %s", c.during, vms, poll))}, idleRows(c.entries, c.calls)...)
	return append(rows, listingRow(c.calls, servers))
}

// idleRows compares the writes and calls to a budget of 0.
func idleRows(entries []entry, calls []call) []row {
	writes, leases, others := map[string]int{}, 0, map[string]int{}
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
			others[c.what()]++
		}
	}
	total := func(of map[string]int) (n int) {
		for _, count := range of {
			n += count
		}
		return n
	}
	return []row{
		count("Kubernetes writes, except the lease", total(writes), 0, fmt.Sprintf("%s; writes of the lease: %d", perEach(writes, 1), leases)),
		count("cloud calls, except polls", total(others), 0, perEach(others, 1)),
	}
}

func listingRow(calls []call, servers int) row {
	// The last listing may be incomplete.
	pages := listings(calls)
	pages = pages[:max(0, len(pages)-1)]
	most := 0
	if len(pages) > 0 {
		most = slices.Max(pages)
	}
	return count(fmt.Sprintf("cloud calls for a listing of %d servers", servers), most, (servers+inventory.PageSize-1)/inventory.PageSize,
		fmt.Sprintf("the maximum of %d listings, pages of %d", len(pages), inventory.PageSize))
}
