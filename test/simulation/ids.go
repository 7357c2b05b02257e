package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// keptServer is the invariant of deletions: an id that is used again leads to the server of another VM.
const keptServer = "a server is deleted only for its own VM"

// stranger stands for the owner of a server of somebody else.
const stranger = types.UID("somebody else")

// born records whose create made a server. What was known of its id is of another one.
func (w *world) born(id string, owner types.UID) {
	w.had[w.owners[id]] = id
	w.owners[id] = owner
	for _, known := range []map[string]bool{w.shown, w.tardy, w.imported} {
		delete(known, id)
	}
}

// ownerOf returns the UID of the VM that a server was made for: the create
// of an operation does not know its id.
func (w *world) ownerOf(s cloud.Server) types.UID {
	return cmp.Or(w.owners[s.ID], types.UID(s.Labels[inventory.UIDLabel]))
}

// ownedBy reports whether a server is that of a VM, as far as its id says: that of another one may have the id.
func (w *world) ownedBy(id string, vm *pcapi.VM) bool {
	owner := w.owners[id]
	return id == vm.Status.VMID && (owner == "" || owner == vm.UID || vm.Spec.Import != nil)
}

// mayReuse reports whether the cloud may give an id again. It does not while the operator cannot know that:
// while another request about the server is on its way, or an answer that shows it, and if somebody deleted
// the server by hand, or a request whose sender does not wait for it.
func (w *world) mayReuse(id string) bool {
	return id != w.hidden && !w.deletedByHand[id] && !w.freedLate[id] && !w.calls.hold(id)
}

// checkDeletion checks the deletion of a server that takes effect.
func (w *world) checkDeletion(c *cloudClient, id string) {
	if c.process != w.lease.holder && !w.profile.unled || w.arrivesLate {
		w.freedLate[id] = true
	}
	w.checked[keptServer]++
	for _, o := range w.api.all(vmKind) {
		vm := o.(*pcapi.VM)
		if vm.UID == w.owners[id] && vm.Status.VMID == id && vm.DeletionTimestamp == nil && w.cloud.HasServer(id) {
			w.violate(keptServer, "server %s of VM %s is deleted", id, vm.Name)
		}
	}
}

// strangerChoices returns which server somebody else creates that gets an id of one that was deleted.
func (w *world) strangerChoices() []choice {
	if !w.profile.recycling {
		return nil
	}
	id := w.freedID()
	if id == "" {
		return nil
	}
	return []choice{{class: takeID, name: "somebody else: create a server, which gets the id " + id, changing: true, do: func() {
		w.born(id, stranger)
		w.addForeign(id, "another-"+id, nil)
	}}}
}

// freedID returns the lowest id that the cloud gave before and may give again, empty if there is none.
func (w *world) freedID() string {
	highest := 0
	for id := range w.owners {
		var n int
		if _, err := fmt.Sscanf(id, "s%d", &n); err == nil {
			highest = max(highest, n)
		}
	}
	for n := 1; n <= highest; n++ {
		if id := fmt.Sprintf("s%d", n); !w.cloud.HasServer(id) && w.mayReuse(id) {
			return id
		}
	}
	return ""
}

// hold reports whether a call about a server has not ended, or has no effect yet, but for a deletion that has.
func (s *calls) hold(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(slices.Concat(s.open, s.late), func(c *call) bool {
		return strings.HasSuffix(c.name, " "+id) && (c.stage != answered || !strings.HasPrefix(c.name, "cloud delete "))
	})
}

// reusedEarly reports whether the id of a VM that is being deleted is that of another server, which the cloud
// created so soon that only the process that saw the deletion knows it, and another process has started since. On a
// cloud with labels, they show that the server is another VM's.
func (w *world) reusedEarly(vm *pcapi.VM) bool {
	if vm.DeletionTimestamp == nil || vm.Status.CreatedTime == nil || w.started < 2 || w.ownedBy(vm.Status.VMID, vm) {
		return false
	}
	labelled := w.profile.capabilities.Has(cloud.Labels)
	if labelled && slices.ContainsFunc(w.api.all(vmKind), func(o client.Object) bool { return w.ownedBy(vm.Status.VMID, o.(*pcapi.VM)) }) {
		return false
	}
	return !w.cloud.Server(vm.Status.VMID).CreatedAt.After(vm.Status.CreatedTime.Add(time.Second + settleTime))
}

// serverExists reports whether a server exists and is that of a VM.
func (w *world) serverExists(vm *pcapi.VM) bool {
	return slices.ContainsFunc(w.servers(), func(s cloud.Server) bool { return w.ownedBy(s.ID, vm) })
}

// released reports whether the server of a VM that is being deleted is gone.
func (w *world) released(vm *pcapi.VM) bool {
	return vm.DeletionTimestamp != nil && w.owners[vm.Status.VMID] != vm.UID
}
