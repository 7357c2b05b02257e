package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

const (
	vsphereCloud = "vsphere"
	// mostSOAPCalls is the budget of calls in a VM's life, and aimedSOAPCalls the goal.
	mostSOAPCalls  = 8
	aimedSOAPCalls = 4
	// mostRestCalls is the budget of calls a minute at rest: two listings of 1000 VMs.
	// aimedRestCalls is the goal with change notification.
	mostRestCalls  = 4
	aimedRestCalls = 2
	// aimedHeapRatio is the goal for the heap of a VM on a vCenter, against REST.
	aimedHeapRatio = 1.1
)

// onVSphere measures VMs on a vCenter: calls in a VM's life and at rest, and the heap
// against REST.
func onVSphere(ctx context.Context, s *stage) ([]row, error) {
	if err := s.configure(ctx, lifePoll, lifeSettle); err != nil {
		return nil, err
	}
	at, err := startVCenter(ctx, s.options, s.folder, "vcsim")
	if err != nil {
		return nil, err
	}
	m, err := s.startManager(ctx)
	if err != nil {
		return nil, errors.Join(err, at.stop())
	}
	var rows []row
	err = s.connect(ctx, vsphereCloud, at)
	for _, measure := range []func(context.Context, *vcenter, *manager) ([]row, error){s.soapLife, s.heapOnVSphere, s.vsphereAtRest} {
		if err != nil {
			break
		}
		var more []row
		more, err = measure(ctx, at, m)
		rows = append(rows, more...)
	}
	if err == nil {
		err = errors.Join(s.remove(ctx, "heapv", s.options.vms), s.disconnect(ctx, vsphereCloud))
	}
	return rows, errors.Join(err, m.stop(), at.stop())
}

// tune sets the poll interval and the settle time of a Cloud, and waits until it is
// Ready and was listed.
func (s *stage) tune(ctx context.Context, name string, interval time.Duration) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"pollInterval":%q,"settleTime":%q}}`, interval, lifeSettle))
	c := &pcapi.Cloud{}
	c.Name = name
	if err := s.client.Patch(ctx, c, patch); err != nil {
		return fmt.Errorf("configuring Cloud %s: %w", name, err)
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(c), c)
		ready := meta.FindStatusCondition(c.Status.Conditions, pcapi.ReadyCondition)
		return ready != nil && ready.Status == "True" && ready.ObservedGeneration == c.Generation && c.Status.Servers != nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting for Cloud %s to be Ready: %w; its status is %+v", name, err, c.Status)
	}
	return nil
}

func (s *stage) disconnect(ctx context.Context, name string) error {
	c := &pcapi.Cloud{}
	c.Name = name
	if err := s.client.Delete(ctx, c); err != nil {
		return fmt.Errorf("deleting Cloud %s: %w", name, err)
	}
	return nil
}

// soapLife counts writes and calls in the life of ten VMs.
func (s *stage) soapLife(ctx context.Context, at *vcenter, _ *manager) ([]row, error) {
	say("counting writes and calls: vSphere")
	if err := s.tune(ctx, vsphereCloud, lifePoll); err != nil {
		return nil, err
	}
	// The first VM makes the client read what it remembers.
	if err := errors.Join(s.create(ctx, "firstv", 1, vsphereCloud), s.remove(ctx, "firstv", 1)); err != nil {
		return nil, err
	}
	if _, err := s.audit.untilQuiet(ctx, operator, 2*lifePoll); err != nil {
		return nil, err
	}
	steps := []struct {
		name string
		do   func() error
	}{
		{"until Ready", func() error { return s.create(ctx, "lifev", lifeVMs, vsphereCloud) }},
		{"for two polls", func() error { _, err := s.audit.untilQuiet(ctx, operator, 2*lifePoll); return err }},
		{"until deleted", func() error { return s.remove(ctx, "lifev", lifeVMs) }},
	}
	var all soapCalls
	since := s.audit
	rows := []row{heading("A VM's life on vSphere")}
	for _, step := range steps {
		calls, err := at.during(ctx, step.do)
		if err != nil {
			return nil, err
		}
		own, _ := calls.split()
		rows = append(rows, info("calls "+step.name, ratio(own.total(), lifeVMs), perEach(own, lifeVMs)))
		all = all.plus(own)
	}
	if _, err := s.audit.untilQuiet(ctx, operator, 2*time.Second); err != nil {
		return nil, err
	}
	entries, err := since.next()
	if err != nil {
		return nil, err
	}
	each := func(n int) int { return (n + lifeVMs - 1) / lifeVMs }
	looks := all[vcsim.TaskCall]
	most := each(all.total())
	return append(rows,
		count("SOAP calls, except polls and looks at tasks", each(all.total()-looks), mostSOAPCalls, perEach(all, lifeVMs)),
		aim("with looks at tasks", fmt.Sprint(most), fmt.Sprintf("≤ %d", aimedSOAPCalls), most <= aimedSOAPCalls, "their number depends on how long tasks take"),
		lifeWrites(life{name: "Kubernetes writes by the operator", writes: mostWrites}, "lifev", writesOf(entries, operator)),
	), nil
}

// heapOnVSphere measures the heap of VMs on REST, and of as many on vSphere.
func (s *stage) heapOnVSphere(ctx context.Context, _ *vcenter, m *manager) ([]row, error) {
	n := s.options.vms
	resting := func() (int64, error) {
		if _, err := s.audit.untilQuiet(ctx, operator, 2*lifePoll); err != nil {
			return 0, err
		}
		return m.heap(ctx)
	}
	grow := func(prefix, cloud string) (int64, error) {
		say("measuring the heap with %d VMs on Cloud %s", n, cloud)
		// The first VMs open connections and fill pools, which are kept.
		if err := errors.Join(s.create(ctx, "first"+prefix, creators, cloud), s.remove(ctx, "first"+prefix, creators)); err != nil {
			return 0, err
		}
		before, err := resting()
		if err != nil {
			return 0, err
		}
		if err := s.create(ctx, prefix, n, cloud); err != nil {
			return 0, err
		}
		after, err := resting()
		return after - before, err
	}
	onREST, err := grow("heapr", pcapi.DefaultCloudName)
	if err != nil {
		return nil, err
	}
	if err := s.remove(ctx, "heapr", n); err != nil {
		return nil, err
	}
	own, err := grow("heapv", vsphereCloud)
	if err != nil {
		return nil, err
	}
	if s.options.profile != "" {
		if err := m.save(ctx, "heap?gc=1", s.options.profile, "heap-vsphere.pprof"); err != nil {
			return nil, err
		}
	}
	ratio := float64(own) / float64(onREST)
	kib := func(bytes int64) string { return fmt.Sprintf("%.1f KiB", float64(bytes)/float64(n)/1024) }
	return []row{
		heading(fmt.Sprintf("Heap of a VM, from 0 to %d", n)),
		info("on REST", kib(onREST), ""),
		info("on vSphere", kib(own), ""),
		aim("vSphere against REST", percent(ratio), "≤ "+percent(aimedHeapRatio), ratio <= aimedHeapRatio, ""),
	}, nil
}

// vsphereAtRest counts calls while nothing changes, with the VMs of heapOnVSphere.
func (s *stage) vsphereAtRest(ctx context.Context, at *vcenter, m *manager) ([]row, error) {
	if err := s.tune(ctx, vsphereCloud, ratePoll); err != nil {
		return nil, err
	}
	if _, err := s.audit.untilQuiet(ctx, operator, 2*time.Second); err != nil {
		return nil, err
	}
	during := 2 * max(s.options.rest, ratePoll)
	say("counting calls at rest on vSphere for %s", during)
	before, err := m.reconciles(ctx)
	if err != nil {
		return nil, err
	}
	calls, err := at.during(ctx, func() error {
		select {
		case <-time.After(during):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return nil, err
	}
	after, err := m.reconciles(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := s.audit.next()
	if err != nil {
		return nil, err
	}
	writes := map[string]int{}
	for _, e := range writesOf(entries, operator) {
		writes[e.what()]++
	}
	total := soapCalls(writes).total()
	minutes := during.Minutes()
	aMinute := int(float64(calls.total())/minutes + 0.999)
	watched := "no watch"
	if calls["WaitForUpdatesEx"] > 0 {
		watched = "with a watch"
	}
	return []row{
		heading(fmt.Sprintf("%s at rest with %d VMs on vSphere, pollInterval %s", during, s.options.vms, ratePoll)),
		count("SOAP calls a minute", aMinute, mostRestCalls, fmt.Sprintf("%s; in all: %s", watched, perEach(calls, 1))),
		aim("the same, the goal with a watch", fmt.Sprint(aMinute), fmt.Sprintf("≤ %d", aimedRestCalls), aMinute <= aimedRestCalls, ""),
		count("Kubernetes writes, except the lease", total, 0, perEach(writes, 1)),
		info("reconciles of VMs", fmt.Sprintf("%.0f", after-before), ""),
	}, nil
}
