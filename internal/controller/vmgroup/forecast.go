package vmgroup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	vms "github.com/privatecloud/operator/internal/controller/vm"
	"github.com/privatecloud/operator/internal/external"
)

// memberChange is what a group does with one member: a nil before is one that is created, a
// nil after one that is deleted.
type memberChange struct{ before, after *pcapi.VM }

// Forecaster says what the operator is going to do about groups, from what the API server has.
type Forecaster struct{ kind *kind }

// NewForecaster returns a Forecaster that reads objects with c. Cluster is the UID of the
// namespace kube-system, empty if it is not known.
func NewForecaster(c client.Client, cluster string, clock func() time.Time) *Forecaster {
	return &Forecaster{kind: newKind(c, nil, controller.ForecastOptions(c, cluster, clock))}
}

// Forecast returns what the operator does about the members of a group, in its order, until
// all are as the spec says. Members that are not Ready and have not failed are taken to become
// Ready. A Cloud that cannot be read is taken to have the capabilities vms.Assumed.
func (f *Forecaster) Forecast(ctx context.Context, g *pcapi.VmGroup) (forecast external.Forecasted, err error) {
	k, obs := f.kind, &observation{claimed: true}
	if obs.members, err = k.listMembers(ctx, g); err != nil {
		return forecast, err
	}
	if g.DeletionTimestamp.IsZero() {
		if forecast.Unreadable, err = k.observeOrAssume(ctx, g, obs, vms.Assumed); err != nil {
			return forecast, err
		}
	}
	if forecast.Outcome = obs.denied; obs.denied != nil {
		return forecast, err
	}
	changes, err := k.forecast(g, obs)
	if err != nil {
		return forecast, err
	}
	if g.DeletionTimestamp.IsZero() {
		forecast.Outcome = leftOver(g, obs)
	}
	err = k.forecastMembers(ctx, changes, &forecast)
	return forecast, err
}

// forecastMembers adds what the operator does about members that a group changes.
func (k *kind) forecastMembers(ctx context.Context, changes []memberChange, forecast *external.Forecasted) error {
	for _, change := range changes {
		of, err := k.forecastMember(ctx, change)
		if err != nil {
			return err
		}
		forecast.Changes = append(forecast.Changes, of.Changes...)
		forecast.Outcome = cmp.Or(forecast.Outcome, of.Outcome)
		forecast.Unreadable = cmp.Or(forecast.Unreadable, of.Unreadable)
	}
	return nil
}

// forecastMember returns what the operator does about a member that a group changes.
func (k *kind) forecastMember(ctx context.Context, change memberChange) (external.Forecasted, error) {
	next := change.after
	if next == nil {
		next = change.before.DeepCopy()
		next.DeletionTimestamp = new(metav1.Now())
	}
	return k.members.Forecast(ctx, change.before, next)
}

// leftOver returns why a group is not as its spec says after the forecast; nil if it is.
func leftOver(g *pcapi.VmGroup, obs *observation) error {
	m := movesFor(g, obs)
	if obs.closing && !m.none() {
		return closing(obs)
	}
	return outcomeOf(g, obs, m)
}

// observeOrAssume is observeCloud, and takes a Cloud that cannot be read to have the
// capabilities assumed. It returns why it cannot be read.
func (k *kind) observeOrAssume(ctx context.Context, g *pcapi.VmGroup, obs *observation, assumed cloud.Capabilities) (unreadable, err error) {
	if err = k.observeCloud(ctx, g, obs); !apierrors.IsForbidden(err) {
		return nil, err
	}
	obs.caps, obs.reachable = assumed, true
	if obs.revision == "" { // not even the namespace can be read, which may name another Cloud
		obs.template = templateOf(g, pcapi.DefaultCloudName)
		obs.revision = obs.template.revision()
	}
	return err, nil
}

// listMembers is membersOf without the index of the cache.
func (k *kind) listMembers(ctx context.Context, g *pcapi.VmGroup) ([]*pcapi.VM, error) {
	var members []*pcapi.VM
	list := &pcapi.VMList{}
	for {
		err := k.client.List(ctx, list, client.InNamespace(g.Namespace), client.MatchingLabels{pcapi.GroupLabel: labelOf(g)}, client.Limit(pageSize), client.Continue(list.Continue))
		if err != nil {
			return nil, fmt.Errorf("list the members of VmGroup %s: %w", client.ObjectKeyFromObject(g), err)
		}
		for i := range list.Items {
			if vm := list.Items[i].DeepCopy(); metav1.IsControlledBy(vm, g) {
				members = append(members, vm)
			}
		}
		if list.Continue == "" {
			return members, nil
		}
	}
}

// pageSize is how many members one request lists.
const pageSize = 500

// forecast runs the moves of the reconciles that follow one another, with what they lead to.
func (k *kind) forecast(g *pcapi.VmGroup, obs *observation) (changes []memberChange, err error) {
	if !g.DeletionTimestamp.IsZero() {
		for _, vm := range obs.members {
			if alive(vm) && !orphaned(g) {
				changes = append(changes, memberChange{before: vm})
			}
		}
		return changes, nil
	}
	finished := false
	for range 4*(len(obs.members)+int(ptr.Deref(g.Spec.Replicas, 1))) + 8 {
		m := movesFor(g, obs)
		if obs.closing {
			m = shrink(g, obs)
		}
		made, err := k.make(g, obs, m)
		if err != nil {
			return nil, err
		}
		changes = append(changes, made...)
		switch {
		case len(made) > 0:
			finished = false
		case finished:
			return changes, nil
		default:
			finish(obs)
			finished = true
		}
	}
	return changes, nil
}

// make does to the observed members what the steps of a plan do.
func (k *kind) make(g *pcapi.VmGroup, obs *observation, m moves) ([]memberChange, error) {
	var changes []memberChange
	removed := setOf(m.remove)
	for _, vm := range m.remove {
		changes = append(changes, memberChange{before: vm})
	}
	obs.members = slices.DeleteFunc(obs.members, func(vm *pcapi.VM) bool { return removed[vm] })
	for i, vm := range slices.Concat(m.align, m.keep) {
		after := vm.DeepCopy()
		alignMember(g, obs, after, i < len(m.align))
		becomeReady(after)
		changes = append(changes, memberChange{before: vm, after: after})
		obs.members[slices.Index(obs.members, vm)] = after
	}
	for _, name := range memberNamesOf(g).free(obs.members, m.create, func(string) bool { return false }) {
		vm, err := k.member(g, obs, name)
		if err != nil {
			return nil, err
		}
		changes = append(changes, memberChange{after: vm.DeepCopy()})
		becomeReady(vm)
		obs.members = append(obs.members, vm)
	}
	return changes, nil
}

// finish makes the members what they are once the operator has finished what it is doing:
// those that are being deleted are gone, and the others Ready, unless they have failed.
func finish(obs *observation) {
	obs.members = slices.DeleteFunc(obs.members, func(vm *pcapi.VM) bool { return !alive(vm) })
	for _, vm := range obs.members {
		if !failed(vm) && stalled(vm) == nil {
			becomeReady(vm)
		}
	}
}

func becomeReady(vm *pcapi.VM) {
	if vm.Status.VMID == "" {
		vm.Status.VMID = "new"
	}
	vm.Status.State, vm.Status.ObservedGeneration = pcapi.VMStateRunning, vm.Generation
	for _, condition := range []string{pcapi.ReadyCondition, pcapi.GuestReadyCondition} {
		meta.SetStatusCondition(&vm.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: pcapi.RunningReason})
	}
}
