package vsphere

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

const hostPath = "runtime.host"

// errNoDRS refuses a create in a cluster that cannot keep VMs apart, and errDRSGone the start of
// a VM that is in one, by now. errRuleDisabled refuses a start because of a rule of somebody else:
// of two rules that conflict, the vCenter disables the newer one.
var (
	errNoDRS = &cloud.Error{
		Kind:   cloud.Unsupported,
		Detail: "the cluster of the VM has no DRS, which keeps VMs on different hosts: remove antiAffinity, choose another zone, or have the administrator enable DRS",
	}
	errDRSGone = &cloud.Error{
		Kind:   cloud.NoHost,
		Detail: "the cluster of the VM has no DRS any more, which keeps VMs on different hosts: the VM is started once the administrator has enabled DRS",
	}
	errRuleDisabled = &cloud.Error{
		Kind:   cloud.NoHost,
		Detail: "the vCenter keeps the DRS rule of the VM's anti-affinity disabled, because it conflicts with another rule of the cluster: the VM is started once the administrator has changed that rule",
	}
)

// rules puts VMs into DRS rules, and takes them out.
type rules struct {
	calls   *calls
	faults  *faults
	session *session
	sites   *sites
	tasks   *tasks
	log     logr.Logger
	// cloudName begins the names of the rules.
	cloudName string
	turns     ruleTurns
	leaving   leaving
}

// clusterOf reads the cluster that a VM is in. It fails with errDRSGone if that has no DRS.
func (r *rules) clusterOf(ctx context.Context, at *site, vm types.ManagedObjectReference) (cluster, error) {
	var found []entity
	err := r.session.sure(ctx, func() (empty bool, err error) {
		found, err = clustersOf(ctx, at, vm)
		return err == nil && len(found) == 0, err
	})
	if err != nil {
		return cluster{}, err
	}
	for _, object := range found {
		if in := object.cluster(); in.drs {
			return in, nil
		}
	}
	return cluster{}, errDRSGone
}

// keepApart puts a VM with an anti-affinity into the rule of its group. A VM that is alone has
// no rule: the next one makes it. Each VM looks for the others after it was cloned with its
// mark, so that of any two one finds the other. A VM that is to be kept apart only if possible
// is started all the same if it cannot be in an enabled rule. Only changes of rules wait for
// each other.
func (r *rules) keepApart(ctx context.Context, at *site, vm entity) error {
	a := vm.antiAffinity()
	if a == (cloud.AntiAffinity{}) {
		return nil
	}
	err := r.join(ctx, at, vm.ref, a)
	if !a.Required && cloud.Is(err, cloud.NoHost) {
		return nil
	}
	return err
}

func (r *rules) join(ctx context.Context, at *site, vm types.ManagedObjectReference, a cloud.AntiAffinity) error {
	names := ruleNamesOf(r.cloudName, a)
	if _, specs, err := r.planJoin(ctx, at, vm, names, a); err != nil || len(specs) == 0 {
		return err
	}
	release, err := r.takeTurn(ctx, at, vm)
	if err != nil {
		return err
	}
	defer release()
	var refusal error
	changed := false
	for range ruleTries { // the rules have no version: others may have changed them back
		in, specs, err := r.planJoin(ctx, at, vm, names, a)
		switch {
		case err != nil || len(specs) == 0:
			return err
		case changed && in.disabled(names, vm):
			return errRuleDisabled
		}
		if refusal, err = r.change(ctx, at, in.ref, specs, vm); err != nil {
			return err
		}
		changed = refusal == nil
	}
	if refusal == nil {
		return errRulesContended
	}
	return refusal
}

// planJoin reads the cluster of a VM, and returns the changes after which the rule has the VM.
func (r *rules) planJoin(ctx context.Context, at *site, vm types.ManagedObjectReference, names ruleNames, a cloud.AntiAffinity) (cluster, []types.ClusterRuleSpec, error) {
	in, err := r.clusterOf(ctx, at, vm)
	if err != nil {
		return in, nil, err
	}
	others := in.others(names, vm)
	if len(others) == 0 {
		if others, err = r.peers(ctx, at, in, vm, a); err != nil {
			return in, nil, r.sites.misplaced(ctx, at, err)
		}
	}
	return in, in.join(names, a.Required, vm, others), nil
}

// peers returns the other VMs with an anti-affinity that are in a cluster.
func (r *rules) peers(ctx context.Context, at *site, in cluster, vm types.ManagedObjectReference, a cloud.AntiAffinity) (others []types.ManagedObjectReference, err error) {
	var found []entity
	err = r.session.sure(ctx, func() (bool, error) {
		found, err = collect(ctx, at.vim, types.PropertyFilterSpec{
			PropSet:   []types.PropertySpec{{Type: "VirtualMachine", PathSet: []string{uuidPath, templatePath, hostPath, extraPath(labelsKey), extraPath(originKey)}}},
			ObjectSet: []types.ObjectSpec{children(at.root, true)},
		})
		return err == nil && len(found) == 0, err
	})
	for _, other := range found {
		if other.ref != vm && other.created() && !other.flag(templatePath) && other.antiAffinity() == a && slices.Contains(in.hosts, other.reference(hostPath)) {
			others = append(others, other.ref)
		}
	}
	return others, err
}

// start powers a VM on, once the rule of its anti-affinity has it.
func (r *rules) start(ctx context.Context, at *site, vm entity) (types.ManagedObjectReference, error) {
	if err := r.keepApart(ctx, at, vm); err != nil {
		return types.ManagedObjectReference{}, err
	}
	return switchPower(ctx, at, vm, cloud.PowerOn)
}
