package simulation

import (
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// The invariants of servers that are not the operator's, or another VM's.
const (
	foreignStays = "a server of somebody else is never changed or deleted"
	notTaken     = "a VM has no server of somebody else, unless it may import it"
	oneOwner     = "two VMs never have the same server"
)

// contender is the VM of a user who wants a server that is somebody else's: by its name, by a claim, or by
// an import. foreignID is the id of a server with its name.
const contender, foreignID = "c", "f"

// contenderName is its name in the cloud, which some clouds change.
func (w *world) contenderName() string {
	if w.profile.normalizing {
		return strings.ToUpper(contender)
	}
	return contender
}

// servers returns the servers of the cloud but those of somebody else.
func (w *world) servers() []cloud.Server {
	return slices.DeleteFunc(w.cloud.Servers(), func(s cloud.Server) bool { return w.isForeign(s.ID) })
}

func (w *world) isForeign(id string) bool {
	_, foreign := w.foreign[id]
	return foreign
}

// checkForeign checks the servers of somebody else after each step.
func (w *world) checkForeign() {
	for id, made := range w.foreign {
		w.checked[foreignStays]++
		if is := w.cloud.Server(id); !reflect.DeepEqual(is, made) {
			w.violate(foreignStays, "server %s was %+v and is %+v", id, made, is)
		}
	}
}

// checkOwner checks that nobody else has the server that a VM records.
func (w *world) checkOwner(vm *pcapi.VM) {
	if !vm.DeletionTimestamp.IsZero() && w.had[vm.UID] == vm.Status.VMID {
		return // it records the id after the DELETE was sent, and the cloud has given it again
	}
	w.checked[notTaken]++
	w.checked[oneOwner]++
	if w.isForeign(vm.Status.VMID) {
		w.violate(notTaken, "VM %s has server %s", vm.Name, vm.Status.VMID)
	}
	if w.owners[vm.Status.VMID] != "" && !w.ownedBy(vm.Status.VMID, vm) {
		w.violate(oneOwner, "VM %s has server %s of another VM", vm.Name, vm.Status.VMID)
	}
	for _, o := range w.api.all(vmKind) {
		if other := o.(*pcapi.VM); other.UID != vm.UID && other.Status.VMID == vm.Status.VMID && !w.released(other) {
			w.violate(oneOwner, "VMs %s and %s have server %s", other.Name, vm.Name, vm.Status.VMID)
		}
	}
}

// sharedChoices returns what happens on a cloud that others use, too.
func (w *world) sharedChoices() []choice {
	if !w.profile.shared {
		return nil
	}
	return slices.Concat(w.foreignChoices(), w.contenderChoices(), w.administratorChoices())
}

// addForeign has somebody else create a server.
func (w *world) addForeign(id, name string, labels map[string]string) {
	now := time.Now()
	w.cloud.AddServers(cloud.Server{ID: id, Name: name, Labels: labels, State: cloud.StateActive, CPU: 8, MemoryMiB: 1 << 10, CreatedAt: now, UpdatedAt: now})
	w.foreign[id] = w.cloud.Server(id)
}

// foreignChoices returns which servers others create: one with the name of a VM, and one with the owner
// labels of a VM and of another cluster. Of a server that is deleted, others may get the id.
func (w *world) foreignChoices() []choice {
	var all []choice
	if w.mayUseName() {
		all = append(all, choice{class: byHand, name: "somebody else: create server " + contender, do: func() { w.addForeign(foreignID, contender, nil) }})
	}
	for _, o := range w.api.all(vmKind) {
		vm := o.(*pcapi.VM)
		if twin := foreignID + "-" + vm.Name; w.profile.capabilities.Has(cloud.Labels) && slices.Contains(names, vm.Name) && !w.isForeign(twin) {
			all = append(all, choice{class: byHand, name: "somebody else: create a server with the labels of VM " + vm.Name, do: func() {
				w.addForeign(twin, twin, map[string]string{
					inventory.UIDLabel: string(vm.UID), inventory.ClusterLabel: "another", inventory.NamespaceLabel: vm.Namespace, inventory.NameLabel: vm.Name,
				})
			}})
		}
		if id := vm.Status.VMID; id != "" && metav1.GetControllerOf(vm) == nil && w.cloud.Server(id).State == cloud.StateActive && !w.isForeign(id) {
			all = append(all, choice{class: deleteByHand, name: "by hand: delete " + id + ", whose id is used again", do: func() {
				w.cloud.RemoveServers(id)
				w.deletedByHand[id], w.reused[id] = true, time.Now()
			}})
		}
	}
	return all
}

// reuseChoices returns to which servers of others the cloud gives an id that a VM has on record. It does so
// long after the server is gone: all processes have listed the servers since, and no change is on its way.
func (w *world) reuseChoices() []choice {
	var all []choice
	for _, o := range w.api.all(vmKind) {
		vm := o.(*pcapi.VM)
		id := vm.Status.VMID
		since, reused := w.reused[id]
		shown := since.Add(settleTime) // until then, the answer to its create may count more than a listing
		if !reused || w.working || w.calls.about(id) || slices.ContainsFunc(w.processes, func(p *process) bool {
			return w.calls.changing(p) || p.listedSince(shown) < len(w.api.all(cloudKind))
		}) {
			continue
		}
		name := "another-" + vm.Name
		if w.profile.capabilities.Has(cloud.Labels) && w.nameFree(vm.Spec.VMName) {
			name = vm.Spec.VMName
		}
		all = append(all, choice{class: finish, name: "the cloud uses the id " + id + " again", do: func() {
			delete(w.reused, id)
			w.addForeign(id, name, nil)
		}})
	}
	return all
}

// nameFree reports whether another server may have a name.
func (w *world) nameFree(name string) bool {
	return !w.profile.capabilities.Has(cloud.UniqueNames) ||
		!slices.ContainsFunc(w.cloud.Servers(), func(s cloud.Server) bool { return cloud.AlikeNames(s.Name, name) })
}

// mayUseName reports whether somebody else may create a server with the name of the contender: once, and
// where names prove ownership only before a VM may claim the name, as its administrator has stated. A process
// may still work for a VM that was removed without its finalizer.
func (w *world) mayUseName() bool {
	exists := w.api.find(vmKind, client.ObjectKey{Namespace: "default", Name: contender}) != nil
	_, removed := w.removedBare[w.claimed[w.contenderName()]]
	exclusive := w.profile.capabilities.Has(cloud.ExclusiveNames)
	return !w.isForeign(foreignID) && !w.imported[foreignID] && w.nameFree(contender) && (!exclusive || !exists && !removed)
}

// contenderChoices returns what a user does who wants a server of somebody else.
func (w *world) contenderChoices() []choice {
	var all []choice
	user := func(name string, do func() error) {
		all = append(all, choice{class: act, name: "user: " + name, do: func() { _ = do() }})
	}
	if a, exists := w.api.find(vmKind, client.ObjectKey{Namespace: "default", Name: names[0]}).(*pcapi.VM); exists && a.DeletionTimestamp == nil && !w.forged[a.UID] {
		user("write a claim on "+w.contenderName()+" into VM "+a.Name, func() error {
			next := a.DeepCopy()
			forge(next, w.contenderName())
			w.forged[a.UID] = true
			return w.api.update(next)
		})
		user("write the claim of another object into VM "+a.Name, func() error {
			next := a.DeepCopy()
			copyClaim(next, w.contenderName())
			w.forged[a.UID] = true
			return w.api.update(next)
		})
	}
	key := client.ObjectKey{Namespace: "default", Name: contender}
	vm, exists := w.api.find(vmKind, key).(*pcapi.VM)
	switch {
	case exists && vm.DeletionTimestamp != nil:
		return all
	case exists:
		user("delete VM "+contender, func() error { return w.api.remove(vmKind, key, nil) })
		return all
	}
	create := func(name string, change func(*pcapi.VM)) {
		user("create VM "+contender+name, func() error {
			vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
				Spec: pcapi.VMSpec{VMName: w.contenderName(), CPU: pcapi.Cores(1), Memory: pcapi.GiB(1)}}
			change(vm)
			err := w.api.create(vm)
			w.forged[vm.UID] = len(vm.Finalizers) > 0
			w.handOver()
			return err
		})
	}
	create("", func(*pcapi.VM) {})
	for _, claimed := range []string{w.contenderName(), names[0]} {
		create(" with a claim on "+claimed, func(vm *pcapi.VM) { forge(vm, claimed) })
	}
	create(" with the claim of another object", func(vm *pcapi.VM) { copyClaim(vm, w.contenderName()) })
	for _, s := range w.importable() {
		for _, o := range w.api.all(cloudKind) {
			create(" that imports "+s.ID+" through Cloud "+o.GetName(), func(vm *pcapi.VM) {
				vm.Spec.VMName, vm.Spec.Import, vm.Spec.CloudRef = s.Name, &pcapi.VMImport{VMID: s.ID}, &pcapi.CloudReference{Name: o.GetName()}
			})
		}
	}
	return all
}

// forge writes a claim into a VM, as a user can.
func forge(vm *pcapi.VM, name string) {
	metav1.SetMetaDataAnnotation(&vm.ObjectMeta, pcapi.ClaimedNameAnnotation, name)
	metav1.SetMetaDataAnnotation(&vm.ObjectMeta, pcapi.ClaimedCloudAnnotation, pcapi.DefaultCloudName)
	if !slices.Contains(vm.Finalizers, pcapi.VMFinalizer) {
		vm.Finalizers = append(vm.Finalizers, pcapi.VMFinalizer)
	}
}

// copyClaim writes a claim into a VM that the operator wrote for another object, as a user does who copies that one.
func copyClaim(vm *pcapi.VM, name string) {
	forge(vm, name)
	metav1.SetMetaDataAnnotation(&vm.ObjectMeta, pcapi.ClaimedUIDAnnotation, "another")
}

// importable returns the servers that the contender may name: those of somebody else, and those that a VM
// has on record.
func (w *world) importable() []cloud.Server {
	recorded := map[string]bool{}
	for _, o := range w.api.all(vmKind) {
		recorded[o.(*pcapi.VM).Status.VMID] = true
	}
	return slices.DeleteFunc(w.cloud.Servers(), func(s cloud.Server) bool { return w.isForeign(s.ID) == recorded[s.ID] })
}

// takenOver reports whether another VM has imported a server that its name says may be that of a VM.
func (w *world) takenOver(id string, vm *pcapi.VM) bool {
	return slices.ContainsFunc(w.api.all(vmKind), func(o client.Object) bool {
		other := o.(*pcapi.VM)
		return other.UID != vm.UID && other.Spec.Import != nil && other.Status.VMID == id
	})
}

// handOver makes servers of somebody else those of the VMs that import them, where that is allowed. Those of
// another cluster stay its own, as do those whose name the VM does not have: the id was given again.
func (w *world) handOver() {
	for _, o := range w.api.all(vmKind) {
		vm := o.(*pcapi.VM)
		if vm.Spec.Import == nil || vm.Status.VMID != "" || len(w.foreign[vm.Spec.Import.VMID].Labels) > 0 {
			continue
		}
		c := w.api.find(cloudKind, client.ObjectKey{Name: vm.Spec.CloudRef.Name}).(*pcapi.Cloud)
		if id := vm.Spec.Import.VMID; w.isForeign(id) && w.foreign[id].Name == vm.Spec.VMName && c.Spec.Imports == pcapi.ImportPolicyAny {
			delete(w.foreign, id)
			w.imported[id] = true
		}
	}
}

// secondCloud is another Cloud for the same cloud.
const secondCloud = "second"

// administratorChoices returns what an administrator changes: imports, orphans, and another Cloud for the
// same cloud.
func (w *world) administratorChoices() []choice {
	var all []choice
	administrator := func(name string, do func()) {
		all = append(all, choice{class: act, name: "user: " + name, do: do})
	}
	c := w.api.find(cloudKind, client.ObjectKey{Name: pcapi.DefaultCloudName}).(*pcapi.Cloud)
	if c.Spec.Imports != pcapi.ImportPolicyAny {
		administrator("allow imports", func() {
			next := c.DeepCopy()
			next.Spec.Imports = pcapi.ImportPolicyAny
			_ = w.api.update(next)
			w.handOver()
		})
	}
	if c.Spec.OrphanPolicy != pcapi.OrphanPolicyDelete && w.profile.capabilities.Has(cloud.Labels) {
		administrator("have orphans deleted", func() {
			next := c.DeepCopy()
			next.Spec.OrphanPolicy = pcapi.OrphanPolicyDelete
			_ = w.api.update(next)
		})
	}
	if w.api.find(cloudKind, client.ObjectKey{Name: secondCloud}) == nil {
		administrator("create Cloud "+secondCloud+" for the same cloud", func() {
			second := w.newCloud(secondCloud)
			second.Spec.Imports = pcapi.ImportPolicyAny
			_ = w.api.create(second)
		})
	}
	return all
}

// awaitsDeletion reports whether another VM that is being deleted, and waits for a person itself, has the name or the
// server that a VM wants.
func (w *world) awaitsDeletion(vm *pcapi.VM) bool {
	return slices.ContainsFunc(w.api.all(vmKind), func(o client.Object) bool {
		other := o.(*pcapi.VM)
		has := cloud.AlikeNames(other.Spec.VMName, vm.Spec.VMName)
		if vm.Spec.Import != nil {
			has = other.Status.VMID == vm.Spec.Import.VMID
		}
		return has && other.UID != vm.UID && !other.DeletionTimestamp.IsZero()
	})
}

// removedBlocked reports whether the deletion of an object that is gone is blocked, for 15 minutes, because somebody
// else's server got the id of its server before the deletion.
func (w *world) removedBlocked() bool {
	for id := range w.foreign {
		if w.removedIDs[id] && w.deletedByHand[id] {
			return true
		}
	}
	return false
}

// hindered reports whether a VM waits for a person because of a server of somebody else or of an object that
// nobody remembers, or of a claim that a user wrote.
func (w *world) hindered(vm *pcapi.VM) bool {
	reason := readyReason(vm)
	switch {
	case w.reusedEarly(vm):
		return reason == pcapi.BlockedReason
	case w.isForeign(vm.Status.VMID) && w.deletedByHand[vm.Status.VMID], w.imported[vm.Status.VMID] && vm.Spec.Import == nil: // the id is another server's now
		return reason == pcapi.BlockedReason || reason == pcapi.DriftReason || reason == pcapi.LabelsMissingReason
	case vm.Spec.Import != nil && vm.Status.VMID != "" && !w.cloud.HasServer(vm.Status.VMID):
		return reason == pcapi.LostReason // the VM that had the server is deleted, and a listing has not shown that yet
	case vm.Status.VMID != "":
		return false
	case reason == pcapi.ProgressingReason && (w.awaitsDeletion(vm) || w.removedBlocked()):
		return true
	case vm.Spec.Import != nil:
		id := vm.Spec.Import.VMID
		onRecord := slices.ContainsFunc(w.api.all(vmKind), func(o client.Object) bool { return o.(*pcapi.VM).Status.VMID == id })
		return (!w.imported[id] || !w.cloud.HasServer(id) || onRecord) && (reason == pcapi.RejectedReason || reason == pcapi.AmbiguousReason)
	case w.forged[vm.UID] && (reason == pcapi.AmbiguousReason || reason == pcapi.BlockedReason):
		return true
	}
	waits := slices.Contains([]string{pcapi.TakenReason, pcapi.AmbiguousReason, pcapi.BlockedReason}, reason)
	return slices.ContainsFunc(w.cloud.Servers(), func(s cloud.Server) bool {
		forgotten := w.forgotten(w.ownerOf(s)) // a VM may wait for the one that had its name before
		another := waits && (w.isForeign(s.ID) || w.imported[s.ID])
		return (another || forgotten && (waits || reason == pcapi.ProgressingReason)) && cloud.AlikeNames(s.Name, vm.Spec.VMName)
	})
}
