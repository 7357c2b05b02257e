package simulation

import (
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// listingChoices returns which server of a VM the listing leaves out, although a GET shows it, or that this ends. One that
// is not on record is left out only where its name, which is unique, shows that it exists.
func (w *world) listingChoices() []choice {
	if w.hidden != "" {
		return []choice{{class: endOutage, name: "the listing shows " + w.hidden + " again", do: w.showAll}}
	}
	if w.outage == gateway {
		return nil
	}
	var all []choice
	for _, s := range w.servers() {
		if s.State == cloud.StateActive && slices.ContainsFunc(w.api.all(vmKind), func(o client.Object) bool {
			vm := o.(*pcapi.VM)
			unrecorded := vm.Status.VMID == "" && w.ownerOf(s) == vm.UID && w.profile.capabilities.Has(cloud.UniqueNames)
			return unrecorded || w.ownedBy(s.ID, vm)
		}) {
			all = append(all, choice{class: hideServer, name: "the listing leaves out " + s.ID, do: func() {
				w.hidden = s.ID
				w.cloud.Hide(s.ID)
			}})
		}
	}
	return all
}

// showAll has the listing show all servers.
func (w *world) showAll() {
	w.cloud.Show()
	w.hidden, w.wasHidden, w.shownAt = "", w.hidden, time.Now()
	for _, p := range w.processes {
		p.found = ""
	}
}

// unknowable reports whether a 404 of a gateway would be about a server that the listing leaves out, and of which the
// process has had no other answer since: it cannot know then that the listing is incomplete.
func (c *call) unknowable() bool {
	w := c.process.world
	if w.hidden == "" {
		return !w.listsAll() && strings.HasSuffix(c.name, " "+w.wasHidden)
	}
	return strings.HasSuffix(c.name, " "+w.hidden) && c.process.found != w.hidden
}

// listsAll reports whether the last listing of every process has all servers.
func (w *world) listsAll() bool {
	return w.hidden == "" && (w.wasHidden == "" || !slices.ContainsFunc(w.processes, func(p *process) bool {
		return p.listedSince(w.shownAt) < len(w.api.all(cloudKind))
	}))
}
