package simulation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// The invariants of VMSnapshots.
const (
	oneSnapshot       = "a VMSnapshot never has two snapshots"
	sameSnapshotID    = "status.snapshotId never changes"
	snapshotGoneLast  = "a VMSnapshot is removed only after its snapshot"
	noSnapshotLeak    = "no snapshot is left without a VMSnapshot"
	snapshotConverged = "every VMSnapshot whose VM has a server is Ready, with one snapshot"
	revertedOnce      = "a VM is reverted once at most for each request"
)

// snapshotKey is the VMSnapshot that users create, and snapshotted is its VM.
var snapshotKey = client.ObjectKey{Namespace: "default", Name: "s"}

var snapshotted = names[0]

// snapshotLooks is longer than the time between two looks at a snapshot that is as it should be.
const snapshotLooks = 11 * time.Minute

// snapshot returns the VMSnapshot, nil if there is none.
func (w *world) snapshot() *pcapi.VMSnapshot {
	s, _ := w.api.find(snapshotKind, snapshotKey).(*pcapi.VMSnapshot)
	return s
}

// snapshottedVM returns the VM of the VMSnapshot, nil if there is none.
func (w *world) snapshottedVM() *pcapi.VM {
	vm, _ := w.api.find(vmKind, client.ObjectKey{Namespace: "default", Name: snapshotted}).(*pcapi.VM)
	return vm
}

// snapshotChoices returns what users may do with the VMSnapshot, and what people may do with its snapshot.
func (w *world) snapshotChoices() []choice {
	if !w.profile.capabilities.Has(cloud.Snapshots) {
		return nil
	}
	var all []choice
	switch s := w.snapshot(); {
	case s == nil:
		all = append(all, choice{class: act, name: "user: create VMSnapshot s of VM " + snapshotted, do: func() {
			_ = w.api.create(&pcapi.VMSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: snapshotKey.Namespace, Name: snapshotKey.Name},
				Spec: pcapi.VMSnapshotSpec{VMName: snapshotted}})
		}})
	case s.DeletionTimestamp == nil:
		all = append(all, choice{class: act, name: "user: delete VMSnapshot s", do: func() { _ = w.api.remove(snapshotKind, snapshotKey, nil) }})
	}
	if vm := w.snapshottedVM(); vm != nil && vm.DeletionTimestamp == nil {
		name, revert := "user: revert VM "+snapshotted+" to VMSnapshot s", vm.Spec.CurrentSnapshotName == ""
		if !revert {
			name = "user: revert VM " + snapshotted + " to no VMSnapshot"
		}
		all = append(all, choice{class: act, name: name, do: func() {
			next := vm.DeepCopy()
			if next.Spec.CurrentSnapshotName = ""; revert {
				next.Spec.CurrentSnapshotName = snapshotKey.Name
				w.reverts++
			}
			_ = w.api.update(next)
		}})
	}
	for _, server := range w.servers() {
		for _, made := range w.cloud.Snapshots(server.ID) {
			if s := w.snapshot(); s != nil && s.Status.SnapshotID == made.ID {
				all = append(all, choice{class: deleteByHand, name: "by hand: delete snapshot " + made.ID, do: func() {
					w.cloud.SetSnapshots(server.ID)
					w.deletedByHand[made.ID] = true
				}})
			}
		}
	}
	return all
}

// snapshots returns the snapshots of all servers that exist.
func (w *world) snapshots() []cloud.Snapshot {
	var all []cloud.Snapshot
	for _, server := range w.servers() {
		all = append(all, w.cloud.Snapshots(server.ID)...)
	}
	return all
}

// snapshotsOf returns the snapshots of a VMSnapshot: their name proves that.
func (w *world) snapshotsOf(s *pcapi.VMSnapshot) []cloud.Snapshot {
	name := s.Annotations[pcapi.ClaimedNameAnnotation]
	return slices.DeleteFunc(w.snapshots(), func(made cloud.Snapshot) bool { return made.ID != s.Status.SnapshotID && made.Name != name })
}

// checkSnapshotChange checks a change of a VMSnapshot. After is nil if it was removed.
func (w *world) checkSnapshotChange(was, is *pcapi.VMSnapshot) {
	if is != nil {
		w.checked[sameSnapshotID]++
		if was.Status.SnapshotID != "" && was.Status.SnapshotID != is.Status.SnapshotID {
			w.violate(sameSnapshotID, "VMSnapshot %s had %s and has %q", was.Name, was.Status.SnapshotID, is.Status.SnapshotID)
		}
		return
	}
	if w.wasBare(was) {
		return
	}
	w.checked[snapshotGoneLast]++
	for _, made := range w.snapshotsOf(was) {
		w.violate(snapshotGoneLast, "VMSnapshot %s is removed, and snapshot %s exists", was.Name, made.ID)
	}
}

// checkSnapshots checks the snapshots of the cloud after each step.
func (w *world) checkSnapshots() {
	if !w.profile.capabilities.Has(cloud.Snapshots) {
		return
	}
	w.checked[revertedOnce]++
	if n := w.cloud.Reverts(); n > w.reverts {
		w.violate(revertedOnce, "VM %s was reverted %d times, which users requested %d times", snapshotted, n, w.reverts)
	}
	if !w.profile.capabilities.Has(cloud.Idempotency) {
		return
	}
	w.checked[oneSnapshot]++
	ids := map[string]string{}
	for _, made := range w.snapshots() {
		if first := ids[made.Name]; first != "" {
			w.violate(oneSnapshot, "snapshots %s and %s are of the VMSnapshot with the name %s", first, made.ID, made.Name)
		}
		ids[made.Name] = made.ID
	}
}

// checkSnapshotsConverged checks that the VMSnapshot is as specified once nothing fails any more.
func (w *world) checkSnapshotsConverged() {
	s := w.snapshot()
	w.checked[noSnapshotLeak]++
	for _, made := range w.snapshots() {
		if (s == nil || made.ID != s.Status.SnapshotID) && !w.forgotten(w.claimed[made.Name]) {
			w.violate(noSnapshotLeak, "snapshot %s (%s)", made.ID, made.Name)
		}
	}
	switch {
	case s == nil:
	case s.DeletionTimestamp != nil:
		if vm := w.snapshottedVM(); vm != nil && w.unreverted(vm) {
			return // the VM may be reverted to it at any time
		}
		w.violate(deletedGone, "VMSnapshot %s is being deleted: %s", s.Name, readyOf(s))
	default:
		w.checked[snapshotConverged]++
		w.checkSnapshot(s, len(w.snapshotsOf(s)))
	}
}

// checkSnapshot checks a VMSnapshot that has this many snapshots.
func (w *world) checkSnapshot(s *pcapi.VMSnapshot, count int) {
	vm := w.snapshottedVM()
	served := vm != nil && vm.Status.VMID != "" && w.cloud.HasServer(vm.Status.VMID) && (s.Status.VMID == "" || s.Status.VMID == vm.Status.VMID)
	if s.Status.SnapshotID != "" { // a snapshot stays when its VM was removed without its server
		served = w.cloud.HasServer(s.Status.VMID)
	}
	gone := s.Status.SnapshotID != "" && (w.deletedByHand[s.Status.SnapshotID] || !served)
	ready := meta.IsStatusConditionTrue(s.Status.Conditions, pcapi.ReadyCondition)
	switch reason := readyReason(s); {
	case gone && count == 0 && reason == pcapi.LostReason:
	case !served && s.Status.SnapshotID == "" && count == 0 && reason == pcapi.VMNotReadyReason:
	case !gone && served && count == 1 && ready:
	default:
		w.violate(snapshotConverged, "VMSnapshot %s has %d snapshots: %s", s.Name, count, readyOf(s))
	}
}

// unreverted reports whether a VM waits for somebody who makes its revert possible: there is no snapshot, or
// nobody knows whether the revert took effect.
func (w *world) unreverted(vm *pcapi.VM) bool {
	switch readyReason(vm) {
	case pcapi.SnapshotUnavailableReason:
		s := w.snapshot()
		return s == nil || s.DeletionTimestamp != nil || !meta.IsStatusConditionTrue(s.Status.Conditions, pcapi.ReadyCondition)
	case pcapi.OutcomeUnknownReason:
		return w.revertUnknown(vm)
	}
	return false
}

// revertUnknown reports whether a person has to find out whether a VM was reverted: the answer was lost, and a repetition
// with its key is not possible, or is refused because the snapshot is gone.
func (w *world) revertUnknown(vm *pcapi.VM) bool {
	r := vm.Status.Revert
	return r != nil && (!w.profile.capabilities.Has(cloud.Idempotency) || w.deletedByHand[r.SnapshotID])
}
