package main

import (
	"context"
	"errors"
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

// aimedGroupShare is the goal for the ratio of the rate of a group to that of the bare
// loop.
const aimedGroupShare = 0.85

// groupRound has the measurements of a group that was scaled from 0 and back to 0.
type groupRound struct {
	grown, gone time.Duration
	// up and down are the CPU times of scaling it up and down.
	up, down usage
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
	r, err := s.upAndDown(ctx, m, group, n)
	if err != nil {
		return groupRound{}, stopAfter(err, m)
	}
	since := len(ledger)
	if ledger, err = s.cloud.ledger(ctx); err != nil {
		return groupRound{}, stopAfter(err, m)
	}
	r.created, r.alive = most(ledger[since:])
	return r, m.stop()
}

// upAndDown scales a group up and down.
func (s *stage) upAndDown(ctx context.Context, m *manager, group string, n int) (groupRound, error) {
	if err := s.client.Create(ctx, newGroup(group, pcapi.DefaultCloudName)); err != nil {
		return groupRound{}, fmt.Errorf("creating VmGroup %s: %w", group, err)
	}
	if _, err := s.audit.untilQuiet(ctx, operator, time.Second); err != nil {
		return groupRound{}, err
	}
	f, err := s.follow(ctx, group)
	if err != nil {
		return groupRound{}, err
	}
	defer f.stop()
	up, upCPU, err := s.scaled(ctx, m, group, n, func() error { return f.ready(ctx, n) })
	if err != nil {
		return groupRound{}, err
	}
	down, downCPU, err := s.scaled(ctx, m, group, 0, func() error { return f.gone(ctx, n) })
	if err != nil {
		return groupRound{}, err
	}
	r := groupOf(up, down, group)
	r.up, r.down = upCPU, downCPU
	return r, s.client.Delete(ctx, newGroup(group, ""))
}

// scaled scales a group and returns the audit log and the CPU times until the members
// are as wait waits for, and the operator is quiet.
func (s *stage) scaled(ctx context.Context, m *manager, group string, size int, wait func() error) ([]entry, usage, error) {
	before, err := s.usage(ctx, m)
	if err != nil {
		return nil, usage{}, err
	}
	defer s.profile(ctx, m, fmt.Sprintf("cpu-group-to-%d.pprof", size))()
	if err := errors.Join(s.scale(ctx, group, size), wait()); err != nil {
		return nil, usage{}, err
	}
	entries, err := s.audit.untilQuiet(ctx, operator, time.Second)
	if err != nil {
		return nil, usage{}, err
	}
	after, err := s.usage(ctx, m)
	return entries, after.less(before), err
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
	var up, bareUp, down, bareDown, upShares, downShares, upByCPU, downByCPU []float64
	var worst groupRound
	var upCPU, downCPU, bareDownCPU usage
	kinds := map[string]int{}
	for i, g := range ours {
		up, bareUp = append(up, perSecond(n, g.grown)), append(bareUp, theirs[i].rate(n))
		down, bareDown = append(down, perSecond(n, g.gone)), append(bareDown, perSecond(n, theirs[i].removed))
		upShares, downShares = append(upShares, up[i]/bareUp[i]), append(downShares, down[i]/bareDown[i])
		upByCPU = append(upByCPU, theirs[i].usage.total().Seconds()/g.up.total().Seconds())
		downByCPU = append(downByCPU, theirs[i].removal.total().Seconds()/g.down.total().Seconds())
		upCPU, downCPU, bareDownCPU = upCPU.plus(g.up), downCPU.plus(g.down), bareDownCPU.plus(theirs[i].removal)
		worst.writes, worst.ofGroup = max(worst.writes, g.writes), max(worst.ofGroup, g.ofGroup)
		worst.created, worst.alive = max(worst.created, g.created), max(worst.alive, g.alive)
		for kind, count := range g.kinds {
			kinds[kind] += count
		}
	}
	vms := n * len(ours)
	return []row{
		heading(fmt.Sprintf("A group from 0 to %d, and back to 0", n)),
		info("operator, until all members are Ready", rateText(up), "also creates the VM objects; a VM: "+upCPU.each(vms)),
		info("bare client-go loop, VMs that others create", rateText(bareUp), roundText(n, theirs)),
		shareRow("operator's share of that rate", aimedGroupShare, upShares),
		byCPURow(upByCPU),
		info("operator, until all members are deleted", rateText(down), "also deletes the VM objects; a VM: "+downCPU.each(vms)),
		info("bare client-go loop, VMs that others delete", rateText(bareDown), "the same writes; a VM: "+bareDownCPU.each(vms)),
		shareRow("operator's share of that rate", aimedGroupShare, downShares),
		byCPURow(downByCPU),
		count("writes in a member's life, except its create and delete", worst.writes, mostWrites,
			"the member with the most writes; on average: "+perEach(kinds, vms)),
		info("writes of the group itself", fmt.Sprint(worst.ofGroup), "up and down"),
		count("servers created for a member", worst.created, 1, "in the ledger of the mock cloud"),
		count("servers of a member at the same time", worst.alive, 1, "in the ledger of the mock cloud"),
	}
}
