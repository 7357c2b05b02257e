package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

const (
	// pendingBuild is how long the cloud takes to build a server, and to delete one. It is
	// longer than it takes to create all VM objects, so that none is Ready before the leader
	// ends.
	pendingBuild = 20 * time.Second
	// pendingLatency delays each call, so that calls are in flight when the leader ends.
	pendingLatency = 50 * time.Millisecond
	// pendingDeleted is the share of the VMs in flight that are being deleted.
	pendingDeleted = 5
	// aimedTakeover is the goal for the time from the end of the leader, and of its lease if
	// it was killed, until the standby sends something.
	aimedTakeover = 3 * time.Second
	// standbyLine is in the log of a manager when its caches have synced and another one leads.
	standbyLine = "attempting to acquire leader lease"
)

// ending is how the leader ends.
type ending struct {
	title  string
	signal syscall.Signal
	// leaseEnds is whether the standby waits until the lease has ended.
	leaseEnds bool
}

var endings = []ending{{"SIGTERM", syscall.SIGTERM, false}, {"SIGKILL", syscall.SIGKILL, true}}

// takeover is what happened after the leader ended.
type takeover struct {
	// lease is the duration of the lease.
	lease time.Duration
	// exited, acquired, call, create and write are the times from the signal until the
	// leader exited, the standby had the lease, and sent its first call, create and write.
	exited, acquired, call, create, write time.Duration
	// done is the time until all VMs were Ready or deleted.
	done time.Duration
	// claimed is the number of VMs whose create was sent before the signal, deleting that of
	// those being deleted.
	claimed, deleting int
	// created, alive and left are the numbers of servers: of one VM, of one VM at the same
	// time, and of all at the end.
	created, alive, left int
}

// failovers lets a standby take over from a leader with many VMs in flight.
func failovers(ctx context.Context, s *stage) ([]row, error) {
	leader, err := s.startManager(ctx)
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, e := range endings {
		say("%s to the leader, with %d VMs in flight", e.title, s.options.vms)
		standby, err := s.startStandby(ctx)
		if err != nil {
			return nil, stopAfter(err, leader)
		}
		t, err := s.failover(ctx, fmt.Sprintf("pending%d", i), e, leader)
		if err != nil {
			return nil, stopAfter(fmt.Errorf("%s: %w; last lines of the log of the standby:\n%s", e.title, err, standby.tail()), leader, standby)
		}
		say("  first call or write of the standby after %s, all done after %s", inSeconds(min(t.call, t.write)), inSeconds(t.done))
		rows = append(rows, t.rows(e, s.options.vms)...)
		leader = standby
	}
	return rows, leader.stop()
}

// startStandby starts a manager and waits until its caches have synced.
func (s *stage) startStandby(ctx context.Context) (*manager, error) {
	m, err := s.launchManager(ctx)
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, waitTimeout, true, func(context.Context) (bool, error) {
		log, err := os.ReadFile(m.log)
		return strings.Contains(strings.ToLower(string(log)), standbyLine), err
	})
	if err != nil {
		return nil, stopAfter(fmt.Errorf("waiting for the caches of the standby: %w", err), m)
	}
	return m, nil
}

// failover brings VMs in flight on a cloud of their own, ends the leader, and deletes all at
// the end.
func (s *stage) failover(ctx context.Context, prefix string, e ending, leader *manager) (takeover, error) {
	at, err := startMock(ctx, s.options, s.folder, "mockcloud-"+prefix)
	if err != nil {
		return takeover{}, err
	}
	on := newCloud(busyCloud, at)
	on.Spec.Limits, on.Spec.PollInterval = pcapi.CloudLimits{}, metav1.Duration{Duration: ratePoll}
	if err := s.client.Create(ctx, on); err != nil {
		return takeover{}, errors.Join(fmt.Errorf("creating Cloud %s: %w", on.Name, err), at.stop())
	}
	t, err := s.interrupt(ctx, prefix, e, leader, at)
	if err == nil {
		err = errors.Join(at.behave(ctx, 0, 0), s.clear(ctx, at))
	}
	return t, errors.Join(err, at.stop())
}

// interrupt creates and deletes VMs, ends the leader meanwhile, and waits until all are Ready or
// deleted.
func (s *stage) interrupt(ctx context.Context, prefix string, e ending, leader *manager, at *mock) (takeover, error) {
	deleted := s.options.vms / pendingDeleted
	kept := s.options.vms - deleted
	if err := s.limit(ctx, newCloud(busyCloud, at).Spec.Limits); err != nil {
		return takeover{}, err
	}
	if err := s.create(ctx, prefix+"-deleted", deleted, busyCloud); err != nil {
		return takeover{}, err
	}
	if err := errors.Join(s.limit(ctx, defaultLimits), at.behave(ctx, pendingBuild, pendingBuild), at.delay(ctx, pendingLatency)); err != nil {
		return takeover{}, err
	}
	staying, err := s.follow(ctx, prefix+"-kept")
	if err != nil {
		return takeover{}, err
	}
	defer staying.stop()
	leaving, err := s.follow(ctx, prefix+"-deleted")
	if err != nil {
		return takeover{}, err
	}
	defer leaving.stop()
	err = each(s.options.vms, func(i int) error {
		if i < deleted*pendingDeleted && i%pendingDeleted == 0 {
			return s.client.Delete(ctx, newVM(prefix+"-deleted", i/pendingDeleted, ""))
		}
		return s.client.Create(ctx, newVM(prefix+"-kept", i, busyCloud))
	})
	if err != nil {
		return takeover{}, err
	}
	t, since, err := s.end(ctx, e, leader, at)
	if err != nil {
		return takeover{}, err
	}
	if err := errors.Join(staying.ready(ctx, kept), leaving.gone(ctx, deleted)); err != nil {
		return takeover{}, err
	}
	t.done = time.Since(since)
	ledger, err := at.ledger(ctx)
	if err != nil {
		return takeover{}, err
	}
	t.created, t.alive = most(ledger)
	t.claimed, t.deleting, t.left = inFlight(ledger, since, deleted)
	return t, nil
}

// defaultLimits are those of a Cloud that sets none.
var defaultLimits = pcapi.CloudLimits{RequestsPerSecond: 50, Burst: 100, MaxInFlight: 16}

// end ends the leader and measures what the standby sends first. since is the time of the
// signal.
func (s *stage) end(ctx context.Context, e ending, leader *manager, at *mock) (t takeover, since time.Time, err error) {
	last, err := s.holder(ctx)
	if err != nil {
		return t, since, err
	}
	if _, err := s.audit.next(); err != nil {
		return t, since, err
	}
	since = time.Now()
	if err := leader.cmd.Process.Signal(e.signal); err != nil {
		return t, since, fmt.Errorf("sending %s to the leader: %w", e.title, err)
	}
	exited := make(chan time.Duration, 1)
	go func() {
		<-leader.exited
		exited <- time.Since(since)
	}()
	next, err := s.leads(ctx, last.identity)
	if err != nil {
		return t, since, err
	}
	t.lease, t.acquired = next.duration, next.acquired.Sub(since)
	if err := s.firsts(ctx, &t, since, next.acquired, at); err != nil {
		return t, since, err
	}
	select {
	case t.exited = <-exited:
		return t, since, nil
	case <-time.After(stopTime):
		return t, since, fmt.Errorf("the leader did not exit within %s of %s", stopTime, e.title)
	}
}

// firsts waits until the manager that leads since acquired has sent a call, a create and a
// write.
func (s *stage) firsts(ctx context.Context, t *takeover, since, acquired time.Time, at *mock) error {
	var entries []entry
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		more, err := s.audit.next()
		if err != nil {
			return false, err
		}
		entries = append(entries, more...)
		calls, err := at.calls(ctx)
		if err != nil {
			return false, err
		}
		called, created, written := firstsOf(calls, entries, acquired)
		if called.IsZero() || created.IsZero() || written.IsZero() {
			return false, nil
		}
		t.call, t.create, t.write = called.Sub(since), created.Sub(since), written.Sub(since)
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for what the standby sends: %w", err)
	}
	return nil
}

// firstsOf returns the times of the first call, the first create of a server, and the first
// write from a time on. They are zero where there was none.
func firstsOf(calls []call, entries []entry, from time.Time) (called, created, written time.Time) {
	first := func(of *time.Time, at time.Time) {
		if !at.Before(from) && (of.IsZero() || at.Before(*of)) {
			*of = at
		}
	}
	for _, c := range calls {
		first(&called, c.At)
		if c.what() == "POST /servers" {
			first(&created, c.At)
		}
	}
	for _, e := range writesOf(entries, operator) {
		first(&written, e.Received)
	}
	return called, created, written
}

// inFlight returns how many servers were created before a time, except the given number of
// earlier ones, how many were being deleted then, and how many are left at the end.
func inFlight(ledger []mockcloud.LedgerEntry, at time.Time, earlier int) (creating, deleting, left int) {
	for _, e := range ledger {
		before := e.Time.Before(at)
		switch {
		case e.Op == mockcloud.OpCreate:
			left++
			if before {
				creating++
			}
		case e.Op == mockcloud.OpDelete && before:
			deleting++
		}
		if e.Op == mockcloud.OpGone || e.Op == mockcloud.OpDelete && e.Final {
			left--
		}
	}
	return creating - earlier, deleting, left
}

// delay sets the latency of the cloud.
func (m *mock) delay(ctx context.Context, latency time.Duration) error {
	if err := m.ask(ctx, "PATCH", "/admin/behaviour", map[string]string{"latency": latency.String()}, nil); err != nil {
		return fmt.Errorf("setting the cloud's latency: %w", err)
	}
	return nil
}

func (t takeover) rows(e ending, vms int) []row {
	sent := min(t.call, t.write)
	goal := aimedTakeover
	if e.leaseEnds {
		goal += t.lease
	}
	kept := vms - vms/pendingDeleted
	return slices.Concat([]row{
		heading(fmt.Sprintf("%s to the leader, with %d VMs in flight", e.title, vms)),
		aim("until the standby sends its first call or write", inSeconds(sent), "≤ "+inSeconds(goal), sent <= goal,
			fmt.Sprintf("the leader exited after %s; lease after %s, call %s, write %s, create %s; a lease lasts %s",
				inSeconds(t.exited), inSeconds(t.acquired), inSeconds(t.call), inSeconds(t.write), inSeconds(t.create), inSeconds(t.lease))),
		info("until all VMs are Ready or deleted", inSeconds(t.done),
			fmt.Sprintf("at the signal, %d of %d creates and %d of %d deletions had been sent; 50 calls/s, 20 s for each of them", t.claimed, kept, t.deleting, vms-kept)),
		count("servers created for a VM", t.created, 1, "in the ledger of the mock cloud"),
		count("servers of a VM at the same time", t.alive, 1, "in the ledger of the mock cloud"),
		count("servers that belong to no VM at the end", t.left-kept, 0, fmt.Sprintf("%d servers, %d VMs", t.left, kept)),
	})
}
