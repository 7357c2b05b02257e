package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// aimedShare is the goal for the ratio of the operator's rate to that of the bare
// loop.
const aimedShare = 0.7

// ratePoll is the poll interval, the default of Clouds.
const ratePoll = 30 * time.Second

// round has the measurements of many VMs that were created at once.
type round struct {
	took time.Duration
	// removed is the time until all were deleted.
	removed time.Duration
	// writes is the number of writes of the operator or the bare loop, including
	// events.
	writes int
	// server, operator and here are the CPU times of the API server, the operator and
	// this process, which creates the objects and runs the bare loop.
	server, operator, here time.Duration
}

func (r round) rate(n int) float64 { return float64(n) / r.took.Seconds() }

func (r round) cpu() time.Duration { return r.server + r.operator + r.here }

// rates measures creating many VMs, alternating between operator and bare loop.
func rates(ctx context.Context, s *stage) ([]row, error) {
	if err := s.pollEvery(ctx, ratePoll); err != nil {
		return nil, err
	}
	var ours, theirs []round
	n := s.options.vms
	if err := s.cloud.behave(ctx, 0, 0); err != nil {
		return nil, err
	}
	loop, err := s.warmUp(ctx)
	if err != nil {
		return nil, fmt.Errorf("warming up: %w", err)
	}
	for i := range s.options.rounds {
		say("round %d of %d: %d VMs at once, by the operator and by the bare loop", i+1, s.options.rounds, n)
		last := i == s.options.rounds-1
		r, err := s.operatorRound(ctx, fmt.Sprintf("ours%d", i), n, last)
		if err != nil {
			return nil, fmt.Errorf("operator, round %d: %w", i+1, err)
		}
		ours = append(ours, r)
		if r, err = s.bareRound(ctx, loop, fmt.Sprintf("bare%d", i), n); err != nil {
			return nil, fmt.Errorf("bare loop, round %d: %w", i+1, err)
		}
		theirs = append(theirs, r)
		say("  operator %.0f VM/s, bare loop %.0f VM/s", ours[i].rate(n), theirs[i].rate(n))
	}
	return rateRows(n, ours, theirs), nil
}

// warmUp creates a few VMs with the operator and with the bare loop, and returns
// the bare loop.
func (s *stage) warmUp(ctx context.Context) (*bareLoop, error) {
	const few = 50
	m, err := s.startManager(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.create(ctx, "warm", few, pcapi.DefaultCloudName); err != nil {
		return nil, stopAfter(err, m)
	}
	if _, err := s.audit.untilQuiet(ctx, operator, time.Second); err != nil {
		return nil, stopAfter(err, m)
	}
	loop, err := newBareLoop(ctx, s, newVM("warm", 0, "").Name)
	if err != nil {
		return nil, stopAfter(err, m)
	}
	if err := s.remove(ctx, "warm", few); err != nil {
		return nil, stopAfter(err, m)
	}
	if err := m.stop(); err != nil {
		return nil, err
	}
	_, err = s.bareRound(ctx, loop, "warmbare", few)
	return loop, err
}

func stopAfter(err error, m *manager) error { return errors.Join(err, m.stop()) }

func (s *stage) operatorRound(ctx context.Context, prefix string, n int, last bool) (round, error) {
	m, err := s.startManager(ctx)
	if err != nil {
		return round{}, err
	}
	if last && s.options.profile != "" {
		saved := make(chan error, 1)
		go func() { saved <- m.save(ctx, "profile?seconds=5", s.options.profile, "cpu.pprof") }()
		defer func() {
			if err := <-saved; err != nil {
				say("no CPU profile: %v", err)
			}
		}()
	}
	before, err := m.cpu(ctx)
	if err != nil {
		return round{}, stopAfter(err, m)
	}
	r, err := s.wave(ctx, prefix, n, operator)
	if err != nil {
		return round{}, stopAfter(err, m)
	}
	after, err := m.cpu(ctx)
	if err != nil {
		return round{}, stopAfter(err, m)
	}
	r.operator = after - before
	begun := time.Now()
	if err := s.remove(ctx, prefix, n); err != nil {
		return round{}, stopAfter(err, m)
	}
	r.removed = time.Since(begun)
	return r, m.stop()
}

func (s *stage) bareRound(ctx context.Context, loop *bareLoop, prefix string, n int) (round, error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	done, err := loop.start(working)
	if err != nil {
		return round{}, err
	}
	r, err := s.wave(ctx, prefix, n, bare)
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return round{}, err
	}
	removed := make(chan error, 1)
	go func() { removed <- s.remove(ctx, prefix, n) }()
	if err := errors.Join(loop.release(ctx, prefix, n), <-removed); err != nil {
		return round{}, err
	}
	entries, err := s.audit.next()
	r.removed = span(entries, func(e entry) bool { return e.by(bench) && e.Verb == "delete" }, func(e entry) bool { return e.by(bare) })
	return r, err
}

// wave creates n VMs at once and waits until the agent who has made all of them
// Ready. It measures the time from the first create to the last status by the
// audit log.
func (s *stage) wave(ctx context.Context, prefix string, n int, who agent) (round, error) {
	before, err := s.serverCPU(ctx)
	if err != nil {
		return round{}, err
	}
	hereBefore := ownCPU()
	f, err := s.follow(ctx, prefix)
	if err != nil {
		return round{}, err
	}
	defer f.stop()
	if _, err := s.audit.next(); err != nil {
		return round{}, err
	}
	created := make(chan error, 1)
	go func() { created <- s.put(ctx, prefix, n, pcapi.DefaultCloudName) }()
	if err := errors.Join(f.ready(ctx, n), <-created); err != nil {
		return round{}, err
	}
	// Events are written concurrently and can be later.
	entries, err := s.audit.untilQuiet(ctx, who, time.Second)
	if err != nil {
		return round{}, err
	}
	after, err := s.serverCPU(ctx)
	if err != nil {
		return round{}, err
	}
	r := waveOf(entries, prefix, who)
	r.server, r.here = after-before, ownCPU()-hereBefore
	return r, nil
}

// waveOf returns the measurements of a wave from the audit log.
func waveOf(entries []entry, prefix string, who agent) round {
	of := func(e entry) bool { return strings.HasPrefix(e.ObjectRef.Name, prefix+"-") }
	r := round{took: span(entries,
		func(e entry) bool { return of(e) && !e.by(who) && e.Verb == "create" },
		func(e entry) bool { return of(e) && e.by(who) && e.ObjectRef.Subresource == "status" })}
	for _, e := range entries {
		if of(e) && e.by(who) {
			r.writes++
		}
	}
	return r
}

func rateRows(n int, ours, theirs []round) []row {
	shares, byCPU := make([]float64, len(ours)), make([]float64, len(ours))
	var ourRates, theirRates, removals []float64
	for i := range ours {
		shares[i] = ours[i].rate(n) / theirs[i].rate(n)
		byCPU[i] = theirs[i].cpu().Seconds() / ours[i].cpu().Seconds()
		ourRates, theirRates = append(ourRates, ours[i].rate(n)), append(theirRates, theirs[i].rate(n))
		removals = append(removals, float64(n)/ours[i].removed.Seconds())
	}
	share, cpu := spread(shares), spread(byCPU)
	return []row{
		heading(fmt.Sprintf("%d VMs created at once, until all are Ready", n)),
		info("operator", rateText(ourRates), roundText(n, ours)),
		info("bare client-go loop, the same writes", rateText(theirRates), roundText(n, theirs)),
		aim("operator's share of the bare loop's rate", percent(share.median), "≥ "+percent(aimedShare), share.median >= aimedShare,
			fmt.Sprintf("%s to %s, each round against the one after it", percent(share.least), percent(share.most))),
		info("the same by CPU time", percent(cpu.median),
			fmt.Sprintf("%s to %s; also valid on a machine with other load", percent(cpu.least), percent(cpu.most))),
		info("operator, all deleted at once", rateText(removals), ""),
	}
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

type spreading struct{ least, median, most float64 }

func spread(values []float64) spreading {
	sorted := slices.Sorted(slices.Values(values))
	return spreading{sorted[0], (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2, sorted[len(sorted)-1]}
}

func rateText(rates []float64) string {
	r := spread(rates)
	return fmt.Sprintf("%.0f VM/s (%.0f-%.0f)", r.median, r.least, r.most)
}

// roundText returns the cost of one VM, the mean of all rounds.
func roundText(n int, rounds []round) string {
	var total round
	for _, r := range rounds {
		total.writes += r.writes
		total.server += r.server
		total.operator += r.operator
		total.here += r.here
	}
	vms := n * len(rounds)
	each := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(vms) }
	return fmt.Sprintf("a VM: %s writes with its event; CPU of API server %.1f ms, operator %.1f ms, bench %.1f ms",
		ratio(total.writes, vms), each(total.server), each(total.operator), each(total.here))
}
