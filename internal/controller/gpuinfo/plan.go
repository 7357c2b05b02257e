package gpuinfo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// decision is what follows from what was seen.
type decision struct {
	// expired: the hours are over, and nobody asked for more.
	expired bool
	// stays: the cloud cannot be asked, and what was chosen before stays as it is.
	stays bool
	// current: that was chosen for this spec and Cloud.
	current bool
	// chosen is the candidate that suits best or still suits; nil for none.
	chosen *candidate
	// reservation is what is held of its host.
	reservation *v1alpha1.GPUReservation
	// candidates are all nodes: the chosen one, those that suit, then the others,
	// each by name.
	candidates []candidate
}

// decide is a function of the GPUInfo and of what was seen. The order in which
// nodes, servers, hosts and claims were read does not matter.
func decide(gpu *v1alpha1.GPUInfo, obs *scope) decision {
	held := gpu.Status.Reservation
	over := held != nil && !held.Until.After(obs.now)
	answers := held != nil && held.Generation == gpu.Generation
	current := answers && held.Cloud == obs.cloud
	lapsed := gpu.Status.ExpiredGeneration == gpu.Generation || (answers && over)
	asked := obs.request != gpu.Status.LastHandledReconcileAt
	switch {
	case obs.refused != nil:
		return decision{}
	case lapsed && (!asked || obs.unknown != nil):
		return decision{expired: true}
	case obs.unknown != nil:
		return decision{stays: held != nil && !over, current: current}
	}

	all := reserved(obs.now, obs.claims, func(claim) bool { return true })
	var d decision
	for _, n := range obs.nodes {
		d.candidates = append(d.candidates, obs.look(n, gpu.Spec.GPURequired, gpu.Spec.DesAccTime, all))
	}
	if current && !over {
		d.keep(gpu, obs)
	}
	if d.chosen == nil {
		d.choose(gpu, obs)
	}
	slices.SortFunc(d.candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(d.rank(a), d.rank(b)), cmp.Compare(a.node, b.node))
	})
	return d
}

// keep leaves the choice as it is if it still suits: for the hours that are
// left of it and of earlier claims. They are rounded down, once: a host says
// whole hours, and has 99 as soon as a choice of 100 has begun.
func (d *decision) keep(gpu *v1alpha1.GPUInfo, obs *scope) {
	held, mine := gpu.Status.Reservation, claimOf(gpu)
	at := slices.IndexFunc(obs.nodes, func(n node) bool { return n.name == gpu.Status.SuitableNodeName })
	if at < 0 {
		return
	}
	earlier := reserved(obs.now, obs.claims, func(c claim) bool { return c.before(mine) })
	c := obs.look(obs.nodes[at], gpu.Spec.GPURequired, (earlier[held.Host]+mine.left(obs.now))/hour, nil)
	if c.refusal == "" && c.host == held.Host {
		d.candidates[at], d.chosen, d.reservation = c, &c, held
	}
}

// choose takes the node whose server uses the least CPU.
func (d *decision) choose(gpu *v1alpha1.GPUInfo, obs *scope) {
	for _, c := range d.candidates {
		if c.refusal == "" && (d.chosen == nil || cmp.Or(cmp.Compare(c.mhz, d.chosen.mhz), cmp.Compare(c.node, d.chosen.node)) < 0) {
			d.chosen = &c
		}
	}
	if d.chosen == nil {
		return
	}
	since := obs.now.Truncate(time.Second) // as it is stored
	d.reservation = &v1alpha1.GPUReservation{
		Host: d.chosen.host, Cloud: obs.cloud, Generation: gpu.Generation,
		Since: metav1.NewTime(since), Until: metav1.NewTime(since.Add(time.Duration(gpu.Spec.DesAccTime) * time.Hour)),
	}
}

func (d *decision) rank(c candidate) int {
	switch {
	case d.chosen != nil && c.node == d.chosen.node:
		return 0
	case c.refusal == "":
		return 1
	default:
		return 2
	}
}

// plan is the outcome: nothing is done but to write it down.
func plan(gpu *v1alpha1.GPUInfo, obs *scope) error {
	switch d := decide(gpu, obs); {
	case obs.refused != nil:
		return obs.refused
	case d.expired:
		return reconciler.Stalled(v1alpha1.ExpiredReason, 0, fmt.Errorf(
			"the %d hours that were reserved are over: to ask for a node again, edit the spec or set the annotation %s to another value",
			gpu.Spec.DesAccTime, v1alpha1.ReconcileRequestedAtAnnotation))
	case d.stays && d.current && !obs.cloudless:
		return nil
	case obs.unknown != nil:
		if blocked, ok := errors.AsType[*reconciler.BlockedError](obs.unknown); ok && d.stays {
			until := *blocked
			until.RequeueAfter = gpu.Status.Reservation.Until.Sub(obs.now)
			return &until
		}
		return obs.unknown
	case d.chosen == nil:
		return reconciler.Wait(obs.interval, v1alpha1.NoneAvailableReason,
			"no node suits now: status.candidates says why of each; asked again when nodes, servers, hosts or reservations change")
	}
	return nil
}
