package vsphere

import (
	"context"
	"errors"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

var (
	errRulesChanging  = &cloud.Error{Kind: cloud.Busy, Detail: "the DRS rules of the cluster are being changed for other VMs"}
	errRulesSlow      = &cloud.Error{Kind: cloud.Busy, Detail: "the vCenter changes the DRS rules of the cluster, which takes a while"}
	errRulesContended = &cloud.Error{Kind: cloud.Busy, Detail: "others change the DRS rules of the cluster at the same time"}
)

// ruleTurns makes changes of DRS rules follow one another. Rules have no version: a change that is
// planned before an earlier one has taken effect would undo it. The fields but turn belong to
// who has the turn.
type ruleTurns struct {
	// turn is held by the one call that changes rules.
	turn chan struct{}
	// last is a change that has outlasted its call; zero for none.
	last ruleChange
	// until is when a change without an answer counts as over.
	until time.Time
	// hold is how long a change is waited for, and wait how long the changes for other VMs. Then
	// the caller comes back.
	hold, wait time.Duration
}

// ruleChange is a task that changes rules, and the VM for which it does.
type ruleChange struct{ task, vm types.ManagedObjectReference }

func newRuleTurns() ruleTurns {
	return ruleTurns{turn: make(chan struct{}, 1), hold: 5 * time.Second, wait: time.Second}
}

// takeTurn waits for the changes of rules for other VMs, also for one that has outlasted its
// call. release ends the turn. It fails if the last change was for this VM and had no effect.
func (r *rules) takeTurn(ctx context.Context, at *site, vm types.ManagedObjectReference) (release func(), err error) {
	late := time.NewTimer(r.turns.wait)
	defer late.Stop()
	select {
	case r.turns.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, errRulesChanging
	}
	release = func() { <-r.turns.turn }
	if err := r.endLastChange(ctx, at, vm); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// endLastChange waits a short time for the end of a change that has outlasted its call. It
// returns why a change for this VM had no effect.
func (r *rules) endLastChange(ctx context.Context, at *site, vm types.ManagedObjectReference) error {
	last := r.turns.last
	switch {
	case time.Now().Before(r.turns.until):
		return errRulesSlow
	case last == ruleChange{}:
		return nil
	}
	refusal, err := r.outcomeOf(ctx, at, last.task, r.turns.wait)
	if err != nil {
		return err
	}
	r.turns.last = ruleChange{}
	if last.vm != vm {
		return nil
	}
	return refusal
}

// change changes the rules of a cluster for a VM, and waits for it a short time. refusal is
// not nil if it had no effect, which may be because the rules were changed meanwhile: the caller
// reads them again.
func (r *rules) change(ctx context.Context, at *site, in types.ManagedObjectReference, specs []types.ClusterRuleSpec, vm types.ManagedObjectReference) (refusal, err error) {
	res, err := methods.ReconfigureComputeResource_Task(ctx, at.vim, &types.ReconfigureComputeResource_Task{
		This: in, Modify: true, Spec: &types.ClusterConfigSpecEx{RulesSpec: specs},
	})
	if exchange, ok := errors.AsType[*exchangeError](err); ok && exchange.sent {
		r.turns.until = time.Now().Add(r.turns.hold)
		return nil, err
	}
	if fault := faultOf(err); stale(fault) {
		return r.faultOf(fault, err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	r.tasks.started(res.Returnval)
	r.turns.last = ruleChange{res.Returnval, vm}
	if refusal, err = r.outcomeOf(ctx, at, res.Returnval, r.turns.hold); err != nil {
		return nil, err
	}
	r.turns.last = ruleChange{}
	if cloud.Is(refusal, cloud.NoHost, cloud.Busy) {
		return refusal, nil
	}
	return nil, refusal
}

// outcomeOf waits up to a time for the end of a change of rules, and returns why it had no
// effect, nil if it had one.
func (r *rules) outcomeOf(ctx context.Context, at *site, task types.ManagedObjectReference, hold time.Duration) (refusal, err error) {
	info, err := r.tasks.waitFor(ctx, at, task, hold)
	switch {
	case err != nil:
		return nil, err
	case info == nil, info.State == types.TaskInfoStateSuccess:
		return nil, nil
	case info.State != types.TaskInfoStateError || info.Error == nil:
		return nil, errRulesSlow
	}
	return r.faultOf(info.Error.Fault, info.Error.LocalizedMessage), nil
}

// stale reports whether a fault may be because the rules, or VMs of them, were changed since
// they were read.
func stale(fault types.BaseMethodFault) bool {
	switch fault.(type) {
	case *types.InvalidArgument, *types.DuplicateName, *types.AlreadyExists, *types.ManagedObjectNotFound, *types.ConcurrentAccess:
		return true
	}
	return false
}

// faultOf returns the error of a change of rules that had no effect.
func (r *rules) faultOf(fault types.BaseMethodFault, message string) *cloud.Error {
	e := r.faults.ofTask("", fault, message)
	if _, concurrent := fault.(*types.ConcurrentAccess); concurrent {
		return errRulesContended
	}
	if stale(fault) {
		e.Kind = cloud.NoHost
		e.Detail = "the vCenter does not accept the DRS rule of the VM's anti-affinity (" + codeOf(fault) + "), mostly because another rule of the cluster conflicts with it: " +
			"the VM is started once the administrator has changed that rule"
	}
	return e
}
