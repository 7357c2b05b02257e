package simulation

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/test/corpus"
)

const (
	// quiet is for how long nothing may change at the end.
	quiet = time.Minute
	// maxSteps bounds the decisions of a second in which nothing fails.
	maxSteps = 2000
)

// converge lets time run on without faults, until everything should be as specified.
func (w *world) converge() {
	w.outage = ""
	w.showAll()
	for _, c := range w.calls.changes() {
		if w.arriveLate(c) {
			w.trace = append(w.trace, "late "+c.String())
		}
	}
	for _, p := range slices.Clone(w.processes) {
		// A process exits if it cannot renew the lease. Without leader election, only a process that starts
		// after the last other one has ended corrects a status that the other one wrote late.
		if p != w.lease.holder || w.profile.unled {
			w.kill(p)
		}
		p.paused = false
	}
	for _, c := range w.calls.slow() {
		c.slow = false
	}
	w.drain(leaseDuration + 4*settleTime)
	if w.profile.shared {
		w.drain(2 * external.RecheckSoon) // what a person must correct is looked at again
	}
	if s := w.snapshot(); s != nil && w.deletedByHand[s.Status.SnapshotID] {
		w.drain(snapshotLooks)
	}
	if w.waitsForUser() {
		w.drain(reconciler.Patience + quiet)
	}
	if len(w.violations) > 0 {
		return
	}
	w.checkConverged()
	w.ending = corpus.Ending(slices.Concat(w.api.all(vmKind), w.api.all(groupKind), w.api.all(networkKind), w.api.all(snapshotKind)), len(w.cloud.Servers()), len(w.cloud.Networks()))
	writes, changes := w.api.version, w.changes
	w.drain(quiet)
	w.checked[atRest]++
	if written, changed := w.api.version-writes, w.changes-changes; max(written, changed) > w.refusedChanges() {
		w.violate(atRest, "%d writes and %d changes of the cloud in %s", w.api.version-writes, w.changes-changes, quiet)
	}
	if len(w.violations) == 0 {
		w.correct()
	}
}

// waitsForUser reports whether an object waits for an earlier one of its name that was removed without its finalizer,
// and that cannot be released without a person's decision. The operator gives such an object up after a while. A Network
// that VMs use waits for these.
func (w *world) waitsForUser() bool {
	return slices.ContainsFunc(slices.Concat(w.api.all(vmKind), w.api.all(networkKind), w.api.all(snapshotKind)), func(o client.Object) bool {
		ready := meta.FindStatusCondition(o.(reconciler.Object).GetConditions(), pcapi.ReadyCondition)
		return ready != nil && strings.Contains(ready.Message, "The operator tries until") && !strings.Contains(ready.Message, "VMs on this network")
	})
}

// refusedChanges returns how many changes the cloud refuses until a person acts, and that are sent again, at most once while the
// world is at rest: deletions of Networks to which a server is attached that belongs to no VM, since the finalizer of its VM
// was removed while no process ran; and reverts whose answer was lost and whose snapshot somebody deleted.
func (w *world) refusedChanges() (n int) {
	for _, o := range w.api.all(networkKind) {
		ready := meta.FindStatusCondition(o.(reconciler.Object).GetConditions(), pcapi.ReadyCondition)
		if o.GetDeletionTimestamp() != nil && ready != nil && ready.Reason == pcapi.BlockedReason && strings.Contains(ready.Message, "detach in the cloud") {
			n++
		}
	}
	if vm := w.snapshottedVM(); vm != nil && w.profile.capabilities.Has(cloud.Idempotency) && readyReason(vm) == pcapi.OutcomeUnknownReason && w.revertUnknown(vm) {
		n++
	}
	return n
}

// correct has a person change a server by hand, which is corrected.
func (w *world) correct() {
	servers := w.servers()
	i := slices.IndexFunc(servers, func(s cloud.Server) bool { return s.State == cloud.StateActive })
	if i < 0 {
		return
	}
	w.trace = append(w.trace, "by hand: resize "+servers[i].ID)
	w.modify(servers[i].ID, func(s *cloud.Server) { s.CPU = 7 })
	w.drain(quiet + 2*w.profile.pollEvery()) // one listing shows the change and, if no watch runs, the next one its correction
	w.checkConverged()
}

// drain lets all happen that can, without faults, for a time.
func (w *world) drain(d time.Duration) {
	steps := 0
	for end := time.Now().Add(d); len(w.violations) == 0; steps++ {
		w.step()
		if len(w.processes) == 0 && w.leaseFree() {
			w.start()
			continue
		}
		choices := w.progress()
		switch {
		case len(choices) > 0 && steps > maxSteps:
			w.violate(atRest, "%d steps in a second, such as %q", steps, choices[0].name)
		case len(choices) > 0:
			w.do(choices[0])
		case !time.Now().Before(end):
			return
		default:
			w.advance(min(time.Second, time.Until(end)))
			steps = 0
		}
	}
}

// advance lets time pass, at most a second at a time, so that the lease is renewed. A request arrives
// before it is older than half of the settle time, except for creates on a cloud where they may be tardy.
func (w *world) advance(d time.Duration) {
	for d > 0 {
		slice := min(d, time.Second)
		for _, p := range w.processes {
			p.note("wait", slice)
		}
		sleep(slice)
		d -= slice
		w.wait()
		w.keepLease()
		w.wait()
		for _, c := range w.calls.changes() {
			if time.Since(c.sentAt) < settleTime/2 {
				break
			}
			if w.profile.tardy() && c.creates() {
				continue
			}
			if !w.arriveLate(c) {
				w.arrive(c)
			}
		}
	}
}

// sleep moves the clock of the bubble.
func sleep(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // nothing waits in real time
