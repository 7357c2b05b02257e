package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	// scaleRest is the time at rest, in which each Cloud is listed six times.
	scaleRest = 6 * ratePoll
	// aimedCPU is the goal for the share of one CPU at rest.
	aimedCPU = 0.02
	// aimedMemory is the goal for the resident memory at rest, in bytes.
	aimedMemory = 400 << 20
	// aimedSync is the goal for the time from the start of the process until its caches have
	// synced.
	aimedSync = 20 * time.Second
	// aimedCreate is the goal for the time until the create of a new VM is sent during a start.
	aimedCreate = 2 * time.Second
	// scaleTimeout is the timeout of a start.
	scaleTimeout = 10 * time.Minute
)

// scale measures the operator at rest with many VMs on one Cloud, and its start.
func scale(ctx context.Context, s *stage) ([]row, error) {
	if err := s.pollEvery(ctx, ratePoll); err != nil {
		return nil, err
	}
	if err := s.cloud.behave(ctx, 0, 0); err != nil {
		return nil, err
	}
	empty, err := s.populate(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.findPopulation(ctx)
	if err != nil {
		return nil, err
	}
	resting, err := s.restartAndRest(ctx, empty)
	if err != nil {
		return nil, err
	}
	creates, err := s.createsDuringStart(ctx)
	return slices.Concat(found, resting, creates), err
}

// populate adds the VMs, and returns the heap of the operator without them.
func (s *stage) populate(ctx context.Context) (empty int64, err error) {
	m, err := s.startManager(ctx)
	if err != nil {
		return 0, err
	}
	if err := s.create(ctx, "sample", 1, pcapi.DefaultCloudName); err != nil {
		return 0, stopAfter(err, m)
	}
	if empty, err = s.restingHeap(ctx, m); err != nil {
		return 0, stopAfter(err, m)
	}
	if err := m.stop(); err != nil {
		return 0, err
	}
	p, err := newPopulation(ctx, s, newVM("sample", 0, "").Name)
	if err != nil {
		return 0, err
	}
	say("adding %d VMs", s.options.scaleVMs)
	begun := time.Now()
	if err := p.add(ctx, "scale", s.options.scaleVMs); err != nil {
		return 0, err
	}
	say("  added in %s", inSeconds(time.Since(begun)))
	return empty, s.cloud.forget(ctx)
}

// findPopulation starts the operator for the first time with the VMs. It must write to none
// of them, which shows that they are as the operator leaves them.
func (s *stage) findPopulation(ctx context.Context) ([]row, error) {
	say("starting the operator with %d VMs", s.options.scaleVMs)
	if _, err := s.audit.next(); err != nil {
		return nil, err
	}
	m, err := s.launchManager(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.begun(ctx, m, s.options.scaleVMs+1); err != nil {
		return nil, stopAfter(err, m)
	}
	entries, err := s.audit.untilQuiet(ctx, operator, 2*time.Second)
	if err != nil {
		return nil, stopAfter(err, m)
	}
	kinds, total := map[string]int{}, 0
	for _, e := range writesOf(entries, operator) {
		if e.ObjectRef.Resource == "vms" {
			kinds[e.what()]++
			total++
		}
	}
	return []row{heading(fmt.Sprintf("%d VMs that are added without the operator", s.options.scaleVMs)),
		count("Kubernetes writes to them at the first start", total, 0, perEach(kinds, 1))}, m.stop()
}

// restartAndRest measures a start of the operator, and the time after it.
func (s *stage) restartAndRest(ctx context.Context, empty int64) ([]row, error) {
	vms := s.options.scaleVMs + 1 // with the sample
	say("restarting the operator")
	if _, err := s.audit.next(); err != nil {
		return nil, err
	}
	if err := s.cloud.forget(ctx); err != nil {
		return nil, err
	}
	m, err := s.launchManager(ctx)
	if err != nil {
		return nil, err
	}
	memory := watchMemory(m.pid)
	begin, err := s.begun(ctx, m, vms)
	peak := memory.stop()
	if err != nil {
		return nil, stopAfter(err, m)
	}
	entries, err := s.audit.untilQuiet(ctx, operator, 2*time.Second)
	if err != nil {
		return nil, stopAfter(err, m)
	}
	calls, err := s.cloud.calls(ctx)
	if err != nil {
		return nil, stopAfter(err, m)
	}
	rows := slices.Concat([]row{heading(fmt.Sprintf("The operator restarted with %d VMs", vms))}, idleRows(entries, calls), begin.rows(m),
		[]row{info("resident memory at most", mebibytes(peak), fmt.Sprintf("until all were reconciled; CPU time %s", inSeconds(begin.cpu)))})
	resting, err := s.restAtScale(ctx, m, vms, empty)
	if err != nil {
		return nil, stopAfter(err, m)
	}
	return append(rows, resting...), m.stop()
}

// startTimes is how long a start of the operator took.
type startTimes struct {
	led, reconciled time.Time
	cpu             time.Duration
}

// begun waits until a manager leads and has reconciled all VMs.
func (s *stage) begun(ctx context.Context, m *manager, vms int) (startTimes, error) {
	h, err := s.leads(ctx, "")
	if err != nil {
		return startTimes{}, err
	}
	say("  it leads %s after the start of the process", inSeconds(h.acquired.Sub(m.began)))
	t := startTimes{led: h.acquired}
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, scaleTimeout, true, func(ctx context.Context) (bool, error) {
		n, err := m.reconciles(ctx)
		return err == nil && n >= float64(vms), nil // there is no such metric before the first reconcile
	})
	if err != nil {
		return t, fmt.Errorf("waiting for the reconciles of %d VMs: %w", vms, err)
	}
	t.reconciled = time.Now()
	say("  all VMs were reconciled %s after that", inSeconds(t.reconciled.Sub(t.led)))
	t.cpu, err = m.cpu(ctx)
	return t, err
}

func (t startTimes) rows(m *manager) []row {
	synced := t.led.Sub(m.began)
	return []row{
		aim("from the start of the process until it leads, with synced caches", inSeconds(synced), "≤ "+inSeconds(aimedSync), synced <= aimedSync, ""),
		info("from then until all VMs were reconciled", inSeconds(t.reconciled.Sub(t.led)), ""),
	}
}

// restAtScale measures the operator at rest.
func (s *stage) restAtScale(ctx context.Context, m *manager, vms int, empty int64) ([]row, error) {
	if err := s.polled(ctx, s.cloud); err != nil {
		return nil, err
	}
	memory := watchMemory(m.pid)
	counts, err := s.countAtRest(ctx, m, scaleRest)
	peak := memory.stop()
	if err != nil {
		return nil, err
	}
	heap, err := m.heap(ctx)
	if err != nil {
		return nil, err
	}
	if s.options.profile != "" {
		if err := m.save(ctx, "heap?gc=1", s.options.profile, "scale-heap.pprof"); err != nil {
			return nil, err
		}
	}
	return append(counts.rows(vms, vms, ratePoll),
		aim("CPU", fmt.Sprintf("%.2f %%", 100*counts.cpu), fmt.Sprintf("≤ %.0f %%", 100*aimedCPU), counts.cpu <= aimedCPU,
			fmt.Sprintf("of one CPU; reconciles of VMs: %.0f", counts.reconciles)),
		heapRow(fmt.Sprintf("heap of a VM, from 1 to %d", vms), heap-empty, vms-1, mebibytes(heap)+" in total, after garbage collection"),
		aim("resident memory at most", mebibytes(peak), "≤ "+mebibytes(aimedMemory), peak <= aimedMemory, "with garbage and listings"),
	), nil
}

// createsDuringStart measures when the servers of two new VMs are created: one VM is
// created with the process of the operator, and one when it leads.
func (s *stage) createsDuringStart(ctx context.Context) ([]row, error) {
	say("restarting the operator, with two new VMs")
	ledger, err := s.cloud.ledger(ctx)
	if err != nil {
		return nil, err
	}
	before, during := newVM("before", 0, pcapi.DefaultCloudName), newVM("during", 0, pcapi.DefaultCloudName)
	if err := s.client.Create(ctx, before); err != nil {
		return nil, fmt.Errorf("creating VM %s: %w", before.Name, err)
	}
	m, err := s.launchManager(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := s.createsOf(ctx, m, before, during, len(ledger))
	return rows, errors.Join(err, m.stop())
}

func (s *stage) createsOf(ctx context.Context, m *manager, before, during *pcapi.VM, since int) ([]row, error) {
	h, err := s.leads(ctx, "")
	if err != nil {
		return nil, err
	}
	if err := s.client.Create(ctx, during); err != nil {
		return nil, fmt.Errorf("creating VM %s: %w", during.Name, err)
	}
	created := time.Now()
	begin, err := s.begun(ctx, m, s.options.scaleVMs+3)
	if err != nil {
		return nil, err
	}
	for _, vm := range []*pcapi.VM{before, during} {
		if err := s.isReady(ctx, vm); err != nil {
			return nil, err
		}
	}
	entries, err := s.cloud.ledgerSince(ctx, since)
	if err != nil {
		return nil, err
	}
	rows := append([]row{heading(fmt.Sprintf("New VMs during a start of the operator with %d VMs", s.options.scaleVMs+1))}, begin.rows(m)...)
	for _, of := range []struct {
		title  string
		vm     *pcapi.VM
		exists time.Time
	}{
		{"a VM that is created when the operator leads, until its create is sent", during, created},
		{"a VM that is created before the process, until its create is sent", before, m.began},
	} {
		sent, found := createdAt(entries, of.vm.Spec.VMName)
		if !found {
			return nil, fmt.Errorf("the ledger has no server of VM %s", of.vm.Name)
		}
		took := sent.Sub(h.acquired)
		rows = append(rows, aim(of.title, inSeconds(took), "≤ "+inSeconds(aimedCreate), took <= aimedCreate,
			fmt.Sprintf("from when the operator leads; %s after its create, %s after the start of the process", inSeconds(sent.Sub(of.exists)), inSeconds(sent.Sub(m.began)))))
	}
	return rows, nil
}

// createdAt returns when a server of a name was created first.
func createdAt(ledger []mockcloud.LedgerEntry, name string) (time.Time, bool) {
	i := slices.IndexFunc(ledger, func(e mockcloud.LedgerEntry) bool { return e.Op == mockcloud.OpCreate && e.Name == name })
	if i < 0 {
		return time.Time{}, false
	}
	return ledger[i].Time, true
}

// isReady waits until a VM is Ready, without a watch of all.
func (s *stage) isReady(ctx context.Context, vm *pcapi.VM) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(vm), vm)
		return meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.ReadyCondition), err
	})
	if err != nil {
		return fmt.Errorf("waiting for VM %s to be Ready: %w", vm.Name, err)
	}
	return nil
}
