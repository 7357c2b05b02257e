package vmgroup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// change is what a step does with members.
type change struct{ reason, action, verb string }

// The changes of members of which a group records an event.
var (
	creation = change{"MembersCreated", "Create", "created"}
	deletion = change{"MembersDeleted", "Delete", "deleted"}
	update   = change{"MembersUpdated", "Update", "updated"}
)

// changeMembers changes n members with do. It records one event for all of them, also if
// that takes several reconciles.
func (k *kind) changeMembers(g *pcapi.VmGroup, n int, c change, do func(i int) error) error {
	changed, err := k.forEach(g, n, do)
	continued := reconciler.Reason(err) == pcapi.ScalingReason
	switch total := k.memory.count(g.UID, c, changed, !continued); {
	case continued, total == 0:
	case total == 1:
		k.recorder.Eventf(g, nil, corev1.EventTypeNormal, c.reason, c.action, "%s 1 member", c.verb)
	default:
		k.recorder.Eventf(g, nil, corev1.EventTypeNormal, c.reason, c.action, "%s %d members", c.verb, total)
	}
	return err
}

// claim adds the finalizer.
func (k *kind) claim() step {
	return step{Name: "Claim", Needs: reconciler.Mutates, Run: func(ctx context.Context, g *pcapi.VmGroup, _ *observation) error {
		return reconciler.Claim(ctx, k.client, g, pcapi.VmGroupFinalizer, nil)
	}}
}

// release removes the finalizer.
func (k *kind) release() step {
	return step{Name: "Release", Needs: reconciler.Mutates, Run: func(ctx context.Context, g *pcapi.VmGroup, _ *observation) error {
		k.memory.forget(g.UID)
		return reconciler.Release(ctx, k.client, g, pcapi.VmGroupFinalizer)
	}}
}

// remove deletes members as they were observed: not another VM of the same
// name, and not one that has left the group since.
func (k *kind) remove(m moves) step {
	return step{Name: "Remove", Needs: reconciler.Mutates, Run: func(ctx context.Context, g *pcapi.VmGroup, obs *observation) error {
		if m.replaces {
			k.memory.replaced(g.UID, k.clock())
		}
		return k.changeMembers(g, len(m.remove), deletion, func(i int) error {
			vm := m.remove[i]
			if nameless(vm) {
				k.refused.add(g, vm.Name)
			}
			vm, err := k.setPolicies(ctx, obs, vm)
			if err != nil {
				return err
			}
			err = k.client.Delete(ctx, &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: vm.Namespace, Name: vm.Name, UID: vm.UID}},
				client.Preconditions{UID: &vm.UID, ResourceVersion: &vm.ResourceVersion})
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete VM %s: %w", vm.Name, err)
			}
			return nil
		})
	}}
}

// setPolicies gives a member, before its deletion, the deletion policies that the template has for its disks. It returns the updated
// member.
func (k *kind) setPolicies(ctx context.Context, obs *observation, vm *pcapi.VM) (*pcapi.VM, error) {
	disks := obs.template.withPolicies(vm.Spec.Disks)
	if obs.lacking() != "" || slices.Equal(disks, vm.Spec.Disks) {
		return vm, nil
	}
	changed := vm.DeepCopy()
	changed.Spec.Disks = disks
	if err := k.client.Patch(ctx, changed, client.MergeFromWithOptions(vm, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("set what happens to the disks of VM %s: %w", vm.Name, err)
	}
	return changed, nil
}

// disown removes the group from the members' owner references. Kubernetes'
// garbage collector does the same, but not within half a minute after the CRDs
// were installed; then it would delete members whose owner is gone.
func (k *kind) disown() step {
	return step{Name: "Disown", Needs: reconciler.Mutates, Run: func(ctx context.Context, g *pcapi.VmGroup, obs *observation) error {
		_, err := k.forEach(g, len(obs.members), func(i int) error {
			return k.patch(ctx, obs.members[i], "disown", func(vm *pcapi.VM) {
				vm.OwnerReferences = slices.DeleteFunc(vm.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == g.UID })
			})
		})
		return err
	}}
}

// align brings members in line with the template, and powers on members of older revisions and
// gives them what it shares with them.
func (k *kind) align(m moves) step {
	return step{Name: "Align", Needs: reconciler.Mutates, Run: func(ctx context.Context, g *pcapi.VmGroup, obs *observation) error {
		changed := slices.Concat(m.align, m.keep)
		return k.changeMembers(g, len(changed), update, func(i int) error {
			return k.patch(ctx, changed[i], "update", func(vm *pcapi.VM) { alignMember(g, obs, vm, i < len(m.align)) })
		})
	}}
}

// alignMember powers a member on and gives it what the template shares with all members and, if it is to be of
// the current revision, all that can be changed in place.
func alignMember(g *pcapi.VmGroup, obs *observation, vm *pcapi.VM, current bool) {
	vm.Spec.PowerState = pcapi.PowerOn
	if obs.lacking() == "" {
		obs.template.share(vm)
	}
	if !current {
		return
	}
	if vm.Labels[pcapi.RevisionLabel] != obs.revision { // it may be replaced, so it may be restarted
		vm.Spec.UpdatePolicy = pcapi.UpdatePolicyRestartAllowed
		vm.Spec.Disks = obs.template.withDisks(vm.Spec.Disks)
		vm.Spec.RootDisk = obs.template.RootDisk.DeepCopy()
	}
	obs.template.apply(vm)
	vm.Labels = labelled(vm.Labels, g, obs)
}

// patch changes a member as it was observed.
func (k *kind) patch(ctx context.Context, observed *pcapi.VM, what string, change func(*pcapi.VM)) error {
	vm := observed.DeepCopy()
	change(vm)
	err := k.client.Patch(ctx, vm, client.MergeFromWithOptions(observed, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("%s VM %s: %w", what, vm.Name, err)
	}
	return nil
}

// create creates members under the first names that are free.
func (k *kind) create(m moves) step {
	return step{Name: "Create", Needs: reconciler.Mutates, Run: func(ctx context.Context, g *pcapi.VmGroup, obs *observation) error {
		names := k.freeNames(g, obs, min(m.create, maxChanges))
		return k.changeMembers(g, m.create, creation, func(i int) error {
			vm, err := k.member(g, obs, names[i])
			if err != nil {
				return err
			}
			err = k.client.Create(ctx, vm)
			if apierrors.IsAlreadyExists(err) {
				return k.alreadyExists(ctx, g, names[i], err)
			}
			if err != nil {
				return fmt.Errorf("create VM %s: %w", vm.Name, err)
			}
			return nil
		})
	}}
}

// alreadyExists returns the outcome of a create whose name is taken. The name is
// not used again if the VM that has it is not a member that another manager
// created meanwhile.
func (k *kind) alreadyExists(ctx context.Context, g *pcapi.VmGroup, name string, cause error) error {
	var existing pcapi.VM
	err := k.client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, &existing)
	if err == nil && !metav1.IsControlledBy(&existing, g) {
		k.refused.add(g, name)
	}
	return reconciler.Wait(time.Second, pcapi.ScalingReason, "create VM %s: %v", name, cause)
}

// freeNames returns the first n names of the group that are not known to be taken.
func (k *kind) freeNames(g *pcapi.VmGroup, obs *observation, n int) []string {
	return memberNamesOf(g).free(obs.members, n, func(name string) bool { return k.refused.has(g, name) })
}

// member returns a new member of the group.
func (k *kind) member(g *pcapi.VmGroup, obs *observation, name string) (*pcapi.VM, error) {
	vm := &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace, Name: name, Labels: labelled(nil, g, obs),
		},
		Spec: *obs.template.DeepCopy(),
	}
	vm.Spec.VMName = name
	if obs.caps.Has(cloud.Folders) {
		vm.Spec.Folder = folderOf(g)
	}
	if obs.claimsMembers() && !approval.Required(g) {
		vm.Finalizers, vm.Annotations = []string{pcapi.VMFinalizer}, external.ClaimAnnotations(name, obs.template.cloudName())
	}
	return vm, controllerutil.SetControllerReference(g, vm, k.client.Scheme())
}

// claimsMembers reports whether members are created with their claim, which saves the
// write of it. Keys and labels make that safe. A member without a server could otherwise
// not be deleted while the Cloud is away or the member waits for its Network, class or Secret, or for a flavor to be allowed.
func (obs *observation) claimsMembers() bool {
	t := obs.template
	waits := t.NetworkRef != nil || t.Network != nil || t.ClassName != "" || t.Flavor != "" || t.Bootstrap != nil && t.Bootstrap.CloudInit.UserDataSecretRef != nil
	return obs.reachable && !waits && obs.caps.Has(cloud.Idempotency) && obs.caps.Has(cloud.Labels)
}

// labelled returns labels with those of a member of the current revision.
func labelled(labels map[string]string, g *pcapi.VmGroup, obs *observation) map[string]string {
	set := map[string]string{}
	maps.Copy(set, labels)
	set[pcapi.GroupLabel], set[pcapi.RevisionLabel] = labelOf(g), obs.revision
	return set
}
