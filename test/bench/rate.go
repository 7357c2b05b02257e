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

// claimedShare is the same for VMs that are created with their claim: the operator
// writes a third less than the bare loop.
const claimedShare = 1.3

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
	usage
	// removal has the CPU times until all were deleted, of the bare loop only.
	removal usage
}

func (r round) rate(n int) float64 { return float64(n) / r.took.Seconds() }

// rates measures creating many VMs, alternating between operator and bare loop.
func rates(ctx context.Context, s *stage) ([]row, error) {
	if err := s.pollEvery(ctx, ratePoll); err != nil {
		return nil, err
	}
	var ours, theirs, claimed []round
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
		if r, err = s.claimedRound(ctx, fmt.Sprintf("claimed%d", i), n); err != nil {
			return nil, fmt.Errorf("operator with the admission policy, round %d: %w", i+1, err)
		}
		claimed = append(claimed, r)
		say("  operator %.0f VM/s, bare loop %.0f VM/s, operator with the admission policy %.0f VM/s", ours[i].rate(n), theirs[i].rate(n), r.rate(n))
	}
	return slices.Concat(rateRows(n, ours, theirs), claimedRows(n, claimed, theirs)), nil
}

// claimedRound is operatorRound with VMs that are created with their claim.
func (s *stage) claimedRound(ctx context.Context, prefix string, n int) (r round, err error) {
	err = s.withClaims(ctx, func() error {
		r, err = s.operatorRound(ctx, prefix, n, false)
		return err
	})
	return r, err
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
	if _, err := s.audit.untilQuiet(ctx, operator, time.Second); err != nil {
		return nil, stopAfter(err, m)
	}
	if loop.deleted, err = loop.eventOf(ctx, "Deleted"); err != nil {
		return nil, stopAfter(err, m)
	}
	if err := m.stop(); err != nil {
		return nil, err
	}
	_, err = s.bareRound(ctx, loop, "warmbare", few)
	return loop, err
}

// stopAfter stops managers after an error, which it returns.
func stopAfter(err error, managers ...*manager) error {
	errs := []error{err}
	for _, m := range managers {
		errs = append(errs, m.stop())
	}
	return errors.Join(errs...)
}

func (s *stage) operatorRound(ctx context.Context, prefix string, n int, last bool) (round, error) {
	m, err := s.startManager(ctx)
	if err != nil {
		return round{}, err
	}
	if last {
		defer s.profile(ctx, m, "cpu.pprof")()
	}
	return s.managersRound(ctx, []*manager{m}, prefix, n, pcapi.DefaultCloudName)
}

// managersRound lets managers create n VMs, with the clouds in turn, and delete them. It
// stops the managers.
func (s *stage) managersRound(ctx context.Context, managers []*manager, prefix string, n int, clouds ...string) (round, error) {
	r, err := s.wave(ctx, prefix, n, operator, managers, clouds...)
	if err != nil {
		return round{}, stopAfter(err, managers...)
	}
	begun := time.Now()
	if err := s.remove(ctx, prefix, n); err != nil {
		return round{}, stopAfter(err, managers...)
	}
	r.removed = time.Since(begun)
	return r, stopAfter(nil, managers...)
}

// bareRound measures how the bare loop makes VMs Ready that the benchmark creates, and
// how it releases them when the benchmark deletes them.
func (s *stage) bareRound(ctx context.Context, loop *bareLoop, prefix string, n int) (r round, err error) {
	err = loop.during(ctx, loop.making(), func() error {
		r, err = s.wave(ctx, prefix, n, bare, nil, pcapi.DefaultCloudName)
		return err
	})
	if err != nil {
		return round{}, err
	}
	err = loop.during(ctx, loop.releasing(), func() error { return s.removal(ctx, prefix, n, &r) })
	return r, err
}

// removal deletes the VMs of a round, and measures how the bare loop releases them.
func (s *stage) removal(ctx context.Context, prefix string, n int, r *round) error {
	if _, err := s.audit.next(); err != nil {
		return err
	}
	before, err := s.usage(ctx)
	if err != nil {
		return err
	}
	if err := s.remove(ctx, prefix, n); err != nil {
		return err
	}
	entries, err := s.audit.untilQuiet(ctx, bare, time.Second)
	if err != nil {
		return err
	}
	after, err := s.usage(ctx)
	r.removed, r.removal = removalOf(entries, prefix), after.less(before)
	return err
}

// removalOf returns the time from the first delete of VMs to their last release by the
// bare loop.
func removalOf(entries []entry, prefix string) time.Duration {
	of := func(e entry) bool {
		return e.ObjectRef.Resource == "vms" && strings.HasPrefix(e.ObjectRef.Name, prefix+"-")
	}
	return span(entries,
		func(e entry) bool { return of(e) && e.by(bench) && e.Verb == "delete" },
		func(e entry) bool { return of(e) && e.by(bare) })
}

// wave creates n VMs at once, with the clouds in turn, and waits until the agent who has
// made all of them Ready. It measures the time from the first create to the last status by
// the audit log. managers are those of the operator that run.
func (s *stage) wave(ctx context.Context, prefix string, n int, who agent, managers []*manager, clouds ...string) (round, error) {
	before, err := s.usage(ctx, managers...)
	if err != nil {
		return round{}, err
	}
	f, err := s.follow(ctx, prefix)
	if err != nil {
		return round{}, err
	}
	defer f.stop()
	if _, err := s.audit.next(); err != nil {
		return round{}, err
	}
	created := make(chan error, 1)
	go func() { created <- s.put(ctx, prefix, n, clouds...) }()
	if err := errors.Join(f.ready(ctx, n), <-created); err != nil {
		return round{}, err
	}
	// Events are written concurrently and can be later.
	entries, err := s.audit.untilQuiet(ctx, who, time.Second)
	if err != nil {
		return round{}, err
	}
	after, err := s.usage(ctx, managers...)
	r := waveOf(entries, prefix, who)
	r.usage = after.less(before)
	return r, err
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
		byCPU[i] = theirs[i].total().Seconds() / ours[i].total().Seconds()
		ourRates, theirRates = append(ourRates, ours[i].rate(n)), append(theirRates, theirs[i].rate(n))
		removals = append(removals, float64(n)/ours[i].removed.Seconds())
	}
	return []row{
		heading(fmt.Sprintf("%d VMs created at once, until all are Ready", n)),
		info("operator", rateText(ourRates), roundText(n, ours)),
		info("bare client-go loop, the same writes", rateText(theirRates), roundText(n, theirs)),
		shareRow("operator's share of the bare loop's rate", aimedShare, shares),
		byCPURow(byCPU),
		info("operator, all deleted at once", rateText(removals), ""),
	}
}

func claimedRows(n int, ours, theirs []round) []row {
	var rates, shares, byCPU []float64
	for i := range ours {
		rates, shares = append(rates, ours[i].rate(n)), append(shares, ours[i].rate(n)/theirs[i].rate(n))
		byCPU = append(byCPU, theirs[i].total().Seconds()/ours[i].total().Seconds())
	}
	return []row{
		info("operator, VMs created with their claim", rateText(rates), roundText(n, ours)),
		shareRow("their share of the bare loop's rate", claimedShare, shares),
		byCPURow(byCPU),
	}
}

// shareRow returns the row of the ratios of the operator's rate to the bare loop's.
func shareRow(name string, aimed float64, shares []float64) row {
	all := spread(shares)
	return aim(name, percent(all.median), "≥ "+percent(aimed), all.median >= aimed,
		fmt.Sprintf("%s to %s, each round against the one after it", percent(all.least), percent(all.most)))
}

// byCPURow returns the row of the ratios of the bare loop's CPU time to the operator's.
func byCPURow(ratios []float64) row {
	all := spread(ratios)
	return info("the same by CPU time", percent(all.median),
		fmt.Sprintf("%s to %s; also valid on a machine with other load", percent(all.least), percent(all.most)))
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
	var writes int
	var cpu usage
	for _, r := range rounds {
		writes += r.writes
		cpu = cpu.plus(r.usage)
	}
	vms := n * len(rounds)
	return fmt.Sprintf("a VM: %s writes with its event; %s", ratio(writes, vms), cpu.each(vms))
}
