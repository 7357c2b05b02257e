package gpuinfo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// decision is what follows from the GPUInfo and the observation.
type decision struct {
	// expired is whether the reservation has ended and no other choice was requested.
	expired bool
	// stays is whether the earlier choice is kept unexamined, because the cloud
	// cannot be asked.
	stays bool
	// current is whether the earlier choice was made for this spec and Cloud.
	current bool
	// chosen is the candidate that still suits or suits best; nil if none does.
	chosen *candidate
	// reservation of its host.
	reservation *pcapi.GPUReservation
	// candidates are all nodes: the chosen one, then those that suit, then the
	// others, ordered by name.
	candidates []candidate
}

// decide is pure. The order of nodes, servers, hosts and claims in the
// observation does not matter.
func decide(gpu *pcapi.GPUInfo, obs *observation) decision {
	held := gpu.Status.Reservation
	over := held != nil && !obs.end(held).After(obs.now)
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

	d := decision{candidates: make([]candidate, 0, len(obs.nodes))}
	for _, n := range obs.nodes {
		d.candidates = append(d.candidates, obs.look(n, gpu.Spec.GPURequired, gpu.Spec.DesAccTime, obs.taken))
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

// keep keeps the earlier choice, unexamined, if what the cloud lists contradicts Kubernetes: its listing is not trusted, as
// under the brake. Else it keeps it if it still suits for the hours that are left of
// it and of earlier claims, which it does if all claims fit. Their sum is rounded
// down, because a host reports whole hours: 99 as soon as a reservation of 100 has
// begun.
func (d *decision) keep(gpu *pcapi.GPUInfo, obs *observation) {
	held, mine := gpu.Status.Reservation, claimOf(gpu)
	mine.until = obs.end(held)
	at := slices.IndexFunc(obs.nodes, func(n node) bool { return n.name == gpu.Status.SuitableNodeName })
	if at < 0 {
		return
	}
	if c := d.candidates[at]; c.unclear && (c.host == "" || c.host == held.Host) {
		shown := gpu.Status
		c.host, c.mhz, c.mb, c.hours = held.Host, shown.NodeCPUUsage, shown.NodeMemoryUsage, shown.AvailableAcceleratorTime
		d.candidates[at], d.chosen, d.reservation = c, &c, held
		return
	}
	others := obs.taken[held.Host]
	if !obs.fits(gpu) {
		others = reserved(obs.now, obs.claims, func(c claim) bool { return c.host == held.Host && c.before(mine) })
	}
	c := obs.look(obs.nodes[at], gpu.Spec.GPURequired, (others+mine.left(obs.now))/hour, nil)
	if c.refusal == "" && c.host == held.Host {
		d.candidates[at], d.chosen, d.reservation = c, &c, held
	}
}

// choose chooses the node whose server uses the least CPU.
func (d *decision) choose(gpu *pcapi.GPUInfo, obs *observation) {
	for _, c := range d.candidates {
		if c.refusal == "" && (d.chosen == nil || cmp.Or(cmp.Compare(c.mhz, d.chosen.mhz), cmp.Compare(c.node, d.chosen.node)) < 0) {
			d.chosen = &c
		}
	}
	if d.chosen == nil {
		return
	}
	since := reconciler.StatusTime(obs.now)
	d.reservation = &pcapi.GPUReservation{
		Host: d.chosen.host, Cloud: obs.cloud, Generation: gpu.Generation,
		Since: since, Until: metav1.NewTime(since.Add(time.Duration(gpu.Spec.DesAccTime) * time.Hour)),
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

// Plan decides once, and hands the decision on to Report.
func (k *kind) Plan(gpu *pcapi.GPUInfo, obs *observation) plan {
	d := decide(gpu, obs)
	return reconciler.Do(hold(d)).Then(outcomeOf(gpu, obs, d))
}

// hold keeps the decision for Report.
func hold(d decision) step {
	return step{Name: "Decide", Run: func(_ context.Context, _ *pcapi.GPUInfo, obs *observation) error {
		obs.decision = &d
		return nil
	}}
}

// outcomeOf returns the outcome that follows from a decision.
func outcomeOf(gpu *pcapi.GPUInfo, obs *observation, d decision) error {
	switch {
	case obs.refused != nil:
		return obs.refused
	case d.expired:
		return expired(gpu)
	case d.stays && d.current:
		return nil
	case obs.unknown != nil:
		if blocked, ok := errors.AsType[*reconciler.BlockedError](obs.unknown); ok && d.stays {
			until := *blocked
			until.RequeueAfter = obs.end(gpu.Status.Reservation).Sub(obs.now)
			return &until
		}
		return obs.unknown
	case d.chosen == nil:
		return noneAvailable(obs)
	}
	return nil
}

func expired(gpu *pcapi.GPUInfo) error {
	return reconciler.Stalled(pcapi.ExpiredReason, 0, fmt.Errorf(
		"the %d hours that were reserved are over: to ask for a node again, edit the spec or set the annotation %s to another value",
		gpu.Spec.DesAccTime, pcapi.ReconcileRequestedAtAnnotation))
}

func noneAvailable(obs *observation) error {
	return reconciler.Wait(obs.interval, pcapi.NoneAvailableReason,
		"no node suits now: status.candidates says why of each; asked again when nodes, servers, hosts or reservations change")
}
