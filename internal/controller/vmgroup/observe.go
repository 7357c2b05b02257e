package vmgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// observation is what one reconcile reads. Nothing changes it afterwards.
type observation struct {
	// claimed is whether the finalizer is on.
	claimed bool
	// denied is the outcome if the group may not use its Cloud, or not yet; nil if it may.
	denied error
	// closing is whether the Cloud is being deleted: no member is created on it.
	closing bool
	// template is what members are created from, and revision its hash.
	template template
	revision string
	// caps is what the Cloud can do, and step its utilizationStep. reachable is whether it
	// is ready.
	caps cloud.Capabilities
	// flavorRefused is why members may not have the flavor of the template; nil if they may.
	flavorRefused error
	reachable     bool
	step          int32
	// members of the group, by name, including those that are being deleted. They are
	// shared with the cache and must not be changed.
	members []*pcapi.VM
	// planned is what waits for an approval, or has one; nil if the group needs none, or if it
	// is not known.
	planned *plannedChanges
	// patience is the time until failed members may be replaced; 0 if they may be now.
	patience time.Duration
	// recovering is the time for which each member whose server is in error may still recover.
	recovering map[types.UID]time.Duration
}

// until returns the time until a failed member may be replaced; 0 if it may be now.
func (obs *observation) until(vm *pcapi.VM) time.Duration {
	return max(obs.patience, obs.recovering[vm.UID])
}

// Observe reads the members and what their Cloud can do.
func (k *kind) Observe(ctx context.Context, g *pcapi.VmGroup) (*observation, error) {
	obs := &observation{claimed: controllerutil.ContainsFinalizer(g, pcapi.VmGroupFinalizer), patience: k.memory.untilReplaceable(g.UID, k.clock())}
	var err error
	if obs.members, err = k.membersOf(ctx, g); err != nil {
		return obs, err
	}
	k.memory.setSize(g.UID, len(obs.members))
	if g.DeletionTimestamp.IsZero() {
		if err := k.observeCloud(ctx, g, obs); err != nil {
			return obs, err
		}
	}
	if approval.Required(g) && obs.denied == nil {
		err = k.observePlanned(ctx, g, obs)
	}
	return obs, err
}

// membersOf returns the members of a group, by name.
func (k *kind) membersOf(ctx context.Context, g *pcapi.VmGroup) ([]*pcapi.VM, error) {
	var list pcapi.VMList
	err := k.client.List(ctx, &list, client.InNamespace(g.Namespace), client.MatchingFields{memberIndex: string(g.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	members := make([]*pcapi.VM, 0, len(list.Items))
	for i := range list.Items {
		members = append(members, &list.Items[i])
	}
	slices.SortFunc(members, func(a, b *pcapi.VM) int { return strings.Compare(a.Name, b.Name) })
	return members, nil
}

// cloudOf returns the name of the Cloud that members are created on; see cloudFor.
func (k *kind) cloudOf(ctx context.Context, g *pcapi.VmGroup) (string, error) {
	if g.Spec.CloudRef != nil {
		return g.Spec.CloudRef.Name, nil
	}
	members, err := k.membersOf(ctx, g)
	if err != nil {
		return "", err
	}
	return k.cloudFor(ctx, g, members)
}

// cloudFor returns the name of the Cloud that members are created on: the one that
// the spec names, else the one that the oldest member is on, so that a change of the
// namespace's label moves no member. A group that is deleted stays with its last ones.
func (k *kind) cloudFor(ctx context.Context, g *pcapi.VmGroup, members []*pcapi.VM) (string, error) {
	ref := g.Spec.CloudRef
	if ref == nil {
		ref = cloudOfOldest(members, func(vm *pcapi.VM) bool { return alive(vm) || !g.DeletionTimestamp.IsZero() })
	}
	return tenancy.CloudFor(ctx, k.client, g.Namespace, ref)
}

// observeCloud finds the Cloud that members are created on, and what it can do.
func (k *kind) observeCloud(ctx context.Context, g *pcapi.VmGroup, obs *observation) error {
	name, err := k.cloudFor(ctx, g, obs.members)
	if err != nil {
		return controller.AwaitNamespace(err)
	}
	obs.template = templateOf(g, name)
	obs.revision = obs.template.revision()
	c, err := tenancy.Open(ctx, k.client, g.Namespace, name)
	if denied, ok := errors.AsType[*tenancy.AccessError](err); ok {
		obs.denied = controller.Inaccessible(g, k.clock(), denied, tenancy.Elsewhere)
		controller.LogAccess(ctx, g, denied, obs.denied.Error())
		return nil
	}
	if err != nil {
		return controller.AwaitNamespace(err)
	}
	obs.closing = tenancy.Closing(c)
	if !listed(c) {
		obs.denied = reconciler.Blocked("Cloud/"+name, pcapi.CloudUnavailableReason, "waiting for Cloud %q to answer for the first time: see its Ready condition", name)
		return nil
	}
	obs.caps = controller.Capabilities(c)
	if flavor := string(obs.template.Flavor); flavor != "" && obs.caps.Has(cloud.Flavors) {
		obs.flavorRefused = tenancy.MayHaveFlavor(&c.Spec, flavor)
	}
	obs.reachable = meta.IsStatusConditionTrue(c.Status.Conditions, pcapi.ReadyCondition)
	obs.step = max(1, c.Spec.UtilizationStep)
	obs.recovering = k.memory.observeErrors(g.UID, obs, k.clock(), graceOn(c, obs.caps))
	return nil
}

// graceOn returns for how long a server must be in error before it is replaced, since it may
// recover, and its disks are lost when it is replaced. Where no event reports that it has
// recovered, a listing that begins later does.
func graceOn(c *pcapi.Cloud, caps cloud.Capabilities) time.Duration {
	if caps.Has(cloud.Events) {
		return firstBackoff
	}
	return firstBackoff + c.Spec.PollInterval.Duration
}

// cloudOfOldest returns the Cloud that the oldest member that counts was created on;
// nil if there is none.
func cloudOfOldest(members []*pcapi.VM, counts func(*pcapi.VM) bool) *pcapi.CloudReference {
	var oldest *pcapi.VM
	for _, vm := range members {
		if counts(vm) && (oldest == nil || vm.CreationTimestamp.Before(&oldest.CreationTimestamp)) {
			oldest = vm
		}
	}
	if oldest == nil {
		return nil
	}
	return oldest.Spec.CloudRef
}

// listed reports whether a Cloud was listed once.
func listed(c *pcapi.Cloud) bool { return c.Status.Servers != nil }

// orphaned reports whether the deletion of the group leaves the members.
func orphaned(g *pcapi.VmGroup) bool {
	return slices.Contains(g.Finalizers, metav1.FinalizerOrphanDependents)
}

// foreground reports whether the deletion of the group waits for that of the members.
func foreground(g *pcapi.VmGroup) bool {
	return slices.Contains(g.Finalizers, metav1.FinalizerDeleteDependents)
}
