package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/mockcloud"
)

// groupRound has the measurements of a group that was scaled from 0 and back to 0.
type groupRound struct {
	grown, gone time.Duration
	// writes is the number of the operator's writes to one member, except its create
	// and delete; the maximum of all members.
	writes int
	// kinds counts all writes to members by kind, except events; ofGroup is the number
	// of writes to the group.
	kinds   map[string]int
	ofGroup int
	// created is the number of servers of one member, alive that of servers that
	// existed at the same time; the maximum of all members.
	created, alive int
}

// groups measures scaling a group from 0 to many and back, alternating with the
// bare loop.
func groups(ctx context.Context, s *stage) ([]row, error) {
	if err := s.pollEvery(ctx, ratePoll); err != nil {
		return nil, err
	}
	if err := s.cloud.behave(ctx, 0, 0); err != nil {
		return nil, err
	}
	loop, err := s.warmUp(ctx)
	if err != nil {
		return nil, fmt.Errorf("warming up: %w", err)
	}
	var ours []groupRound
	var theirs []round
	n := s.options.vms
	for i := range s.options.rounds {
		say("round %d of %d: a group of %d by the operator, then as many VMs by the bare loop", i+1, s.options.rounds, n)
		g, err := s.groupRound(ctx, fmt.Sprintf("group%d", i), n)
		if err != nil {
			return nil, fmt.Errorf("group, round %d: %w", i+1, err)
		}
		ours = append(ours, g)
		r, err := s.bareRound(ctx, loop, fmt.Sprintf("loop%d", i), n)
		if err != nil {
			return nil, fmt.Errorf("bare loop, round %d: %w", i+1, err)
		}
		theirs = append(theirs, r)
		say("  up: group %.0f VM/s, bare loop %.0f VM/s; down: %.0f, %.0f", perSecond(n, g.grown), r.rate(n), perSecond(n, g.gone), perSecond(n, r.removed))
	}
	return groupRows(n, ours, theirs), nil
}

func newGroup(name, cloud string) *pcapi.VmGroup {
	return &pcapi.VmGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       pcapi.VmGroupSpec{Replicas: ptr.To[int32](0), CloudRef: &pcapi.CloudReference{Name: cloud}},
	}
}

// scale sets the replicas of a group, as kubectl scale does.
func (s *stage) scale(ctx context.Context, group string, size int) error {
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, size))
	if err := s.client.Patch(ctx, newGroup(group, ""), patch); err != nil {
		return fmt.Errorf("scaling VmGroup %s to %d: %w", group, size, err)
	}
	return nil
}

func (s *stage) groupRound(ctx context.Context, group string, n int) (groupRound, error) {
	m, err := s.startManager(ctx)
	if err != nil {
		return groupRound{}, err
	}
	ledger, err := s.cloud.ledger(ctx)
	if err != nil {
		return groupRound{}, stopAfter(err, m)
	}
	up, down, err := s.upAndDown(ctx, group, n)
	if err != nil {
		return groupRound{}, stopAfter(err, m)
	}
	since := len(ledger)
	if ledger, err = s.cloud.ledger(ctx); err != nil {
		return groupRound{}, stopAfter(err, m)
	}
	r := groupOf(up, down, group)
	r.created, r.alive = most(ledger[since:])
	return r, m.stop()
}

// upAndDown returns the audit log of scaling a group up, and of scaling it down.
func (s *stage) upAndDown(ctx context.Context, group string, n int) (up, down []entry, err error) {
	if err := s.client.Create(ctx, newGroup(group, pcapi.DefaultCloudName)); err != nil {
		return nil, nil, fmt.Errorf("creating VmGroup %s: %w", group, err)
	}
	if _, err := s.audit.untilQuiet(ctx, operator, time.Second); err != nil {
		return nil, nil, err
	}
	f, err := s.follow(ctx, group)
	if err != nil {
		return nil, nil, err
	}
	defer f.stop()
	if err := s.scale(ctx, group, n); err != nil {
		return nil, nil, err
	}
	if err := f.ready(ctx, n); err != nil {
		return nil, nil, err
	}
	if up, err = s.audit.untilQuiet(ctx, operator, time.Second); err != nil {
		return nil, nil, err
	}
	if err := s.scale(ctx, group, 0); err != nil {
		return nil, nil, err
	}
	if err := f.gone(ctx, n); err != nil {
		return nil, nil, err
	}
	if down, err = s.audit.untilQuiet(ctx, operator, time.Second); err != nil {
		return nil, nil, err
	}
	return up, down, s.client.Delete(ctx, newGroup(group, ""))
}

// groupOf returns the measurements of a group from the audit log.
func groupOf(up, down []entry, group string) groupRound {
	scaled := func(e entry) bool { return e.by(bench) && e.ObjectRef.Resource == "vmgroups" }
	ofMember := func(e entry) bool {
		return e.by(operator) && e.ObjectRef.Resource == "vms" && strings.HasPrefix(e.ObjectRef.Name, group+"-")
	}
	r := groupRound{
		grown: span(up, scaled, func(e entry) bool { return ofMember(e) && e.ObjectRef.Subresource == "status" }),
		gone:  span(down, scaled, ofMember),
		kinds: map[string]int{},
	}
	perMember := map[string]int{}
	for _, e := range slices.Concat(up, down) {
		switch {
		case e.by(operator) && e.ObjectRef.Resource == "vmgroups":
			r.ofGroup++
		case ofMember(e):
			r.kinds[e.what()]++
			if e.Verb == "patch" {
				perMember[e.ObjectRef.Name]++
				r.writes = max(r.writes, perMember[e.ObjectRef.Name])
			}
		}
	}
	return r
}

// most returns the number of servers that were created for one VM, and of those
// that existed at the same time; the maximum of all VMs.
func most(ledger []mockcloud.LedgerEntry) (created, alive int) {
	of := map[string]int{}
	for _, e := range ledger {
		if e.Op == mockcloud.OpCreate {
			of[e.Labels[inventory.UIDLabel]]++
			created = max(created, of[e.Labels[inventory.UIDLabel]])
		}
	}
	for _, n := range mockcloud.MostAlive(ledger, inventory.UIDLabel) {
		alive = max(alive, n)
	}
	return created, alive
}

func perSecond(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

func groupRows(n int, ours []groupRound, theirs []round) []row {
	var up, bareUp, down, bareDown, upShares, downShares []float64
	var worst groupRound
	kinds := map[string]int{}
	for i, g := range ours {
		up, bareUp = append(up, perSecond(n, g.grown)), append(bareUp, theirs[i].rate(n))
		down, bareDown = append(down, perSecond(n, g.gone)), append(bareDown, perSecond(n, theirs[i].removed))
		upShares, downShares = append(upShares, up[i]/bareUp[i]), append(downShares, down[i]/bareDown[i])
		worst.writes, worst.ofGroup = max(worst.writes, g.writes), max(worst.ofGroup, g.ofGroup)
		worst.created, worst.alive = max(worst.created, g.created), max(worst.alive, g.alive)
		for kind, count := range g.kinds {
			kinds[kind] += count
		}
	}
	share := func(name string, shares []float64) row {
		all := spread(shares)
		return aim(name, percent(all.median), "≥ "+percent(aimedShare), all.median >= aimedShare,
			fmt.Sprintf("%s to %s, each round against the one after it", percent(all.least), percent(all.most)))
	}
	return []row{
		heading(fmt.Sprintf("A group from 0 to %d, and back to 0", n)),
		info("operator, until all members are Ready", rateText(up), "also creates the VM objects"),
		info("bare client-go loop, VMs that others create", rateText(bareUp), ""),
		share("operator's share of that rate", upShares),
		info("operator, until all members are deleted", rateText(down), "also deletes the VM objects"),
		info("bare client-go loop, VMs that others delete", rateText(bareDown), ""),
		share("operator's share of that rate", downShares),
		count("writes in a member's life, except its create and delete", worst.writes, mostWrites,
			"the member with the most writes; on average: "+perEach(kinds, n*len(ours))),
		info("writes of the group itself", fmt.Sprint(worst.ofGroup), "up and down"),
		count("servers created for a member", worst.created, 1, "in the ledger of the mock cloud"),
		count("servers of a member at the same time", worst.alive, 1, "in the ledger of the mock cloud"),
	}
}
