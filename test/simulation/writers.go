package simulation

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// rewriteChoices returns which objects a user replaces by what a manifest says, as kubectl replace, Argo CD
// with Replace and Helm with --force do. The manifest lacks the finalizer, the annotations, or both.
func (w *world) rewriteChoices() []choice {
	if w.profile.unled {
		return nil
	}
	var all []choice
	for _, gvk := range []schema.GroupVersionKind{vmKind, networkKind, snapshotKind} {
		for _, o := range w.api.all(gvk) {
			if len(o.GetFinalizers()) == 0 || o.GetDeletionTimestamp() != nil || metav1.GetControllerOf(o) != nil {
				continue
			}
			kind := rewrite
			if w.calls.changingObject(o.GetName()) {
				kind = rewriteInFlight
			}
			user := func(name string, do func()) {
				all = append(all, choice{class: kind, name: fmt.Sprintf(name, gvk.Kind+" "+o.GetName()), do: do, changing: true})
			}
			user("user: replace %s", func() { w.rewrite(o, false, false) })
			user("user: replace %s with its finalizer", func() { w.rewrite(o, true, false) })
			user("user: replace %s with its annotations", func() { w.rewrite(o, false, true) })
			if !needsApproval(o) {
				user("user: replace and delete %s", func() {
					w.rewrite(o, false, false)
					_ = w.api.remove(gvk, client.ObjectKeyFromObject(o), nil)
				})
			}
		}
	}
	return all
}

// rewrite stores an object without its finalizers or annotations.
func (w *world) rewrite(o client.Object, finalizers, annotations bool) {
	next := o.DeepCopyObject().(client.Object)
	if !finalizers {
		next.SetFinalizers(nil)
		w.bare[o.GetUID()] = nil
		if p := w.lease.holder; p != nil && p.reconciled[client.ObjectKeyFromObject(o)] {
			w.bare[o.GetUID()] = p
		}
	}
	if !annotations {
		next.SetAnnotations(nil)
	}
	_ = w.api.update(next)
}

// checkBare keeps track of objects whose finalizer a user has removed. One that is removed before the
// operator adds it again leaves something in the cloud only if the process that knew it has ended.
func (w *world) checkBare(before, after client.Object) {
	if before == nil {
		return
	}
	uid := before.GetUID()
	if name := before.GetAnnotations()[pcapi.ClaimedNameAnnotation]; name != "" {
		w.claimed[name] = uid
	}
	knew, bare := w.bare[uid]
	switch {
	case !bare:
	case after == nil && len(before.GetFinalizers()) == 0:
		if vm, ok := before.(*pcapi.VM); ok && vm.Status.VMID != "" {
			knew = w.lease.holder
			w.removedIDs[vm.Status.VMID] = true
		}
		w.removedBare[uid] = knew
		w.unproved[uid] = w.unprovedName(before)
	case after == nil || len(after.GetFinalizers()) > 0:
		delete(w.bare, uid)
	}
}

// needsApproval reports whether an object is a VM of which a person has to approve each change. Once it is
// removed without its finalizer, nobody can approve the deletion of its server.
func needsApproval(o client.Object) bool {
	vm, ok := o.(*pcapi.VM)
	return ok && vm.Spec.Approval == pcapi.ApprovalRequired
}

// forgotten reports whether nobody knows any more that an object existed, or that a server is its own.
func (w *world) forgotten(uid types.UID) bool {
	knew, removed := w.removedBare[uid]
	return removed && (knew != w.lease.holder || w.doubtful[w.unproved[uid]])
}

// unprovedName returns the name of a VM without a server on record if nothing proves that a server with the name
// is its own, else an empty one.
func (w *world) unprovedName(o client.Object) string {
	vm, ok := o.(*pcapi.VM)
	if !ok || vm.Status.VMID != "" || w.profile.exactlyOnce() || w.profile.capabilities.Has(cloud.Labels) {
		return ""
	}
	return vm.Spec.VMName
}

// wasBare reports whether a user had removed the finalizer of an object that was removed.
func (w *world) wasBare(o client.Object) bool {
	_, bare := w.removedBare[o.GetUID()]
	return bare
}
