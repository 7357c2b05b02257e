package simulation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// recorded is the invariant of processes that are asked to stop.
const recorded = "a manager that is asked to stop records what its creates made"

const (
	// stopPatience is how long a manager waits for an answer when it is asked to stop, at least, and
	// createPatience how long a create may take then.
	stopPatience, createPatience = 30 * time.Second, time.Minute
)

// made is a server that a create of a process made for a VM.
type made struct {
	id     string
	owner  types.UID
	sentAt time.Time
}

// checkStopped checks what a process has recorded that has stopped, or is ended because it takes too long. Nothing
// is checked if one of its calls failed meanwhile, if it was paused, or if answers took too long; nor beside a
// manager that acts, too, because what both write may conflict.
func (w *world) checkStopped(p *process) {
	if w.profile.unled || p.running.Load() > 0 || p.paused || !p.leads() || time.Since(p.stopped) > stopPatience {
		return
	}
	for _, m := range p.made {
		if !m.sentAt.After(p.disturbed) || time.Since(m.sentAt) > createPatience {
			continue
		}
		if _, removed := w.removedBare[m.owner]; removed || w.owners[m.id] != m.owner {
			continue // there is no object to record it in, or another server has the id
		}
		w.checked[recorded]++
		if w.cloud.HasServer(m.id) && !slices.ContainsFunc(w.api.all(vmKind), func(o client.Object) bool { return o.(*pcapi.VM).Status.VMID == m.id }) {
			w.violate(recorded, "no VM has server %s, which %s created", m.id, p.name)
		}
	}
}
