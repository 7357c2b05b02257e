package vmgroup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

const (
	// atOnce is how many writes of a pass are under way at a time.
	atOnce = 16
	// perPass bounds the members made or deleted in one pass, so that the status
	// shows progress.
	perPass = 500
	// soon is when a pass goes on with what it left.
	soon = 100 * time.Millisecond
)

// Act takes one step.
func (k *kind) Act(ctx context.Context, g *v1alpha1.VmGroup, obs *scope, step string) error {
	switch step {
	case stepClaim:
		return reconciler.Claim(ctx, k.client, g, Finalizer, nil)
	case stepRemove:
		return k.remove(ctx, g, obs)
	case stepAlign:
		return k.align(ctx, g, obs)
	case stepCreate:
		return k.create(ctx, g, obs)
	case stepDisown:
		return k.disown(ctx, g, obs)
	case stepRelease:
		k.failures.forget(g.UID)
		return reconciler.Release(ctx, k.client, g, Finalizer)
	default:
		return fmt.Errorf("no such step: %s", step)
	}
}

// remove deletes members as they were read: not what took the name of one, nor
// one that was let go meanwhile.
func (k *kind) remove(ctx context.Context, g *v1alpha1.VmGroup, obs *scope) error {
	if obs.moves.replaces {
		k.failures.replaced(g.UID, k.clock())
	}
	gone := obs.moves.remove
	return inBatches(min(len(gone), perPass), func(i int) error {
		vm := gone[i]
		if nameless(vm) {
			k.refused.add(g, vm.Name)
		}
		err := k.client.Delete(ctx, &v1alpha1.VM{ObjectMeta: metav1.ObjectMeta{Namespace: vm.Namespace, Name: vm.Name, UID: vm.UID}},
			client.Preconditions{UID: &vm.UID, ResourceVersion: &vm.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete VM %s: %w", vm.Name, err)
		}
		return nil
	}, len(gone))
}

// disown makes the members nobody's. So does Kubernetes' garbage collector, but
// not in the first half minute after the CRDs were installed, and it would then
// delete what names an owner that is gone.
func (k *kind) disown(ctx context.Context, g *v1alpha1.VmGroup, obs *scope) error {
	return inBatches(min(len(obs.members), perPass), func(i int) error {
		vm := obs.members[i].DeepCopy()
		base := vm.DeepCopy()
		vm.OwnerReferences = slices.DeleteFunc(vm.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == g.UID })
		err := k.client.Patch(ctx, vm, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("let go of VM %s: %w", vm.Name, err)
		}
		return nil
	}, len(obs.members))
}

// align brings members in line with the template, and switches others on that
// are of an older revision still.
func (k *kind) align(ctx context.Context, g *v1alpha1.VmGroup, obs *scope) error {
	changed := slices.Concat(obs.moves.align, obs.moves.start)
	return inBatches(min(len(changed), perPass), func(i int) error {
		vm := changed[i].DeepCopy()
		base := vm.DeepCopy()
		vm.Spec.PowerState = v1alpha1.PowerOn
		if i < len(obs.moves.align) {
			vm.Spec.CPU, vm.Spec.Memory = clone(obs.template.CPU), clone(obs.template.Memory)
			vm.Labels = labelled(vm.Labels, g, obs)
		}
		err := k.client.Patch(ctx, vm, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("update VM %s: %w", vm.Name, err)
		}
		return nil
	}, len(changed))
}

// create makes members under the first names that are free.
func (k *kind) create(ctx context.Context, g *v1alpha1.VmGroup, obs *scope) error {
	names := k.freeNames(g, obs, min(obs.moves.create, perPass))
	return inBatches(len(names), func(i int) error {
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
	}, obs.moves.create)
}

// alreadyExists tells a member that another manager made meanwhile from a VM
// that is not the group's.
func (k *kind) alreadyExists(ctx context.Context, g *v1alpha1.VmGroup, name string, cause error) error {
	var there v1alpha1.VM
	err := k.client.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, &there)
	if err == nil && !metav1.IsControlledBy(&there, g) {
		k.refused.add(g, name)
	}
	return reconciler.Wait(time.Second, v1alpha1.ScalingReason, "create VM %s: %v", name, cause)
}

// freeNames are the group's first n names that no member has and nobody else.
func (k *kind) freeNames(g *v1alpha1.VmGroup, obs *scope, n int) []string {
	used := make(map[string]bool, len(obs.members))
	for _, vm := range obs.members {
		used[vm.Name] = true
	}
	free := make([]string, 0, n)
	for i := 0; len(free) < n; i++ {
		if name := memberName(g, i); !used[name] && !k.refused.has(g, name) {
			free = append(free, name)
		}
	}
	return free
}

// member is a new member of the group.
func (k *kind) member(g *v1alpha1.VmGroup, obs *scope, name string) (*v1alpha1.VM, error) {
	vm := &v1alpha1.VM{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace, Name: name, Labels: labelled(nil, g, obs),
		},
		Spec: v1alpha1.VMSpec{
			VMName: name, CPU: clone(obs.template.CPU), Memory: clone(obs.template.Memory), Template: obs.template.Template,
			CloudRef: &v1alpha1.CloudReference{Name: obs.template.Cloud}, NetworkRef: clone(g.Spec.NetworkRef),
		},
	}
	if obs.caps.Has(cloud.Folders) {
		vm.Spec.Folder = folderOf(g)
	}
	return vm, controllerutil.SetControllerReference(g, vm, k.client.Scheme())
}

// clone copies what the answer to a write is read into: members share nothing.
func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// labelled returns labels with those of a member of the current revision.
func labelled(labels map[string]string, g *v1alpha1.VmGroup, obs *scope) map[string]string {
	set := map[string]string{}
	maps.Copy(set, labels)
	set[v1alpha1.GroupLabel], set[v1alpha1.RevisionLabel] = labelOf(g), obs.revision
	return set
}

// inBatches does n things in batches of 1, 2, 4, … up to atOnce, and stops after
// a batch with a failure: what cannot be done is not tried a thousand times.
// Where n is not all, the rest is left to a pass to come.
func inBatches(n int, do func(i int) error, all int) error {
	for begin, size := 0, 1; begin < n; begin, size = begin+size, min(2*size, atOnce) {
		batch := min(size, n-begin)
		failures := make([]error, batch)
		var running sync.WaitGroup
		for i := range batch {
			running.Go(func() { failures[i] = do(begin + i) })
		}
		running.Wait()
		for _, err := range failures {
			if err != nil {
				return err
			}
		}
	}
	if n < all {
		return reconciler.Wait(soon, v1alpha1.ScalingReason, "going on with the members")
	}
	return nil
}
