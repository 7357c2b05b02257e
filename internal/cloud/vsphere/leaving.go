package vsphere

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// leaveTries is how often it is tried to take VMs out of their rules. The pauses in between
	// double, from leavePause on, to eight minutes in all.
	leaveTries = 10
	leavePause = time.Second
	// maxLeaving bounds leaving.
	maxLeaving = 10_000
)

// leaving has the VMs that are deleted and are to be taken out of their rules.
type leaving struct {
	mu  sync.Mutex
	vms []leaver
	// more is sent to when there is one more.
	more chan struct{}
}

// leaver is a VM, the cluster that it is in, and what the names of its rules begin with.
type leaver struct {
	vm, cluster types.ManagedObjectReference
	owner       string
	// done is closed when no rule has the VM any more.
	done chan struct{}
}

// leave takes a VM that is deleted out of the rule of its group. The deletion waits a short
// time for that, and then goes on without: the VM is taken out later, together with others.
func (r *rules) leave(ctx context.Context, at *site, vm entity) {
	a := vm.antiAffinity()
	if a == (cloud.AntiAffinity{}) {
		return
	}
	in, err := r.clusterOf(ctx, at, vm.ref)
	if err != nil {
		return // there is no DRS
	}
	one := leaver{vm: vm.ref, cluster: in.ref, owner: ruleNamesOf(r.cloudName, a).owner, done: make(chan struct{})}
	if r.leaving.add(one) {
		go r.takeOut(context.WithoutCancel(ctx), at)
	}
	late := time.NewTimer(r.turns.wait)
	defer late.Stop()
	select {
	case <-one.done:
	case <-late.C:
	case <-ctx.Done():
	}
}

// takeOut takes the VMs that are deleted out of their rules, until there are none left. What
// fails is tried again after a pause, which one more VM ends.
func (r *rules) takeOut(ctx context.Context, at *site) {
	closed, end := r.calls.usage.UntilClosed(ctx)
	defer end()
	vms, failures := r.leaving.all(), 0
	for len(vms) > 0 {
		err := r.removeFromRules(ctx, at, vms)
		if err != nil && failures < leaveTries && temporary(r.faults.fail(ctx, "", err)) {
			failures++
			select {
			case <-time.After(leavePause << (failures - 1)):
			case <-r.leaving.more:
				failures = 0
			case <-closed.Done():
				return // another client removes rules with too few VMs when it changes rules
			}
			vms = r.leaving.all()
			continue
		}
		if err != nil {
			r.log.V(1).Info("deleted VMs were left in their DRS rules", "vms", len(vms), "reason", err.Error())
		}
		vms, failures = r.leaving.remove(len(vms)), 0
	}
}

// temporary reports whether a change of rules that failed so may succeed later.
func temporary(e *cloud.Error) bool {
	return cloud.Is(e, cloud.Busy, cloud.Forbidden, cloud.NoHost, cloud.Unavailable, cloud.Throttled, cloud.Unauthorized)
}

// removeFromRules takes VMs out of their rules, one cluster after the other.
func (r *rules) removeFromRules(ctx context.Context, at *site, vms []leaver) error {
	ctx, end, err := r.calls.begin(cloud.WithFlow(ctx, ""), "change DRS rules")
	if err != nil {
		return err
	}
	defer end()
	release, err := r.takeTurn(ctx, at, types.ManagedObjectReference{})
	if err != nil {
		return err
	}
	defer release()
	clusters := map[types.ManagedObjectReference][]leaver{}
	for _, one := range vms {
		clusters[one.cluster] = append(clusters[one.cluster], one)
	}
	for ref, leavers := range clusters {
		if err := r.leaveCluster(ctx, at, ref, leavers); err != nil {
			return err
		}
	}
	return nil
}

// leaveCluster takes VMs out of the rules of their cluster. The caller has the turn.
func (r *rules) leaveCluster(ctx context.Context, at *site, ref types.ManagedObjectReference, leavers []leaver) error {
	var gone []types.ManagedObjectReference
	owners := map[string]bool{}
	for _, one := range leavers {
		gone = append(gone, one.vm)
		owners[one.owner] = true
	}
	found, err := clustersOf(ctx, at, ref)
	if err != nil || len(found) == 0 {
		return err
	}
	var specs []types.ClusterRuleSpec
	for owner := range owners {
		specs = append(specs, found[0].cluster().leave(owner, "", gone...)...)
	}
	if len(specs) == 0 {
		return nil
	}
	refusal, err := r.change(ctx, at, ref, specs, types.ManagedObjectReference{})
	return cmp.Or(err, refusal)
}

// add adds a VM, and reports whether it is the first one: then the caller begins to take VMs out
// of their rules.
func (l *leaving) add(one leaver) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.vms) == maxLeaving {
		return false
	}
	l.vms = append(l.vms, one)
	select {
	case l.more <- struct{}{}:
	default:
	}
	return len(l.vms) == 1
}

// all returns the VMs.
func (l *leaving) all() []leaver {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.vms)
}

// remove drops the first VMs, and returns the rest.
func (l *leaving) remove(n int) []leaver {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.vms[:n] {
		close(one.done)
	}
	l.vms = slices.Delete(l.vms, 0, n)
	return slices.Clone(l.vms)
}
