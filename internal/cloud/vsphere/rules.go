package vsphere

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// rulePrefix begins the names of rules that operators make.
	rulePrefix = "privatecloud."
	// leastInRule is how many VMs a rule needs.
	leastInRule = 2
	// ruleTries is how often a rule is changed that others change at the same time.
	ruleTries = 4
	// ruleHold is how long a change of rules is waited for, and ruleTurn how long the changes
	// for other VMs. Then the caller comes back.
	ruleHold = 5 * time.Second
	ruleTurn = time.Second
)

const hostPath = "runtime.host"

// errNoDRS refuses a create in a cluster that cannot keep VMs apart, and errDRSGone the start of
// a VM that is in one, by now.
var (
	errNoDRS = &cloud.Error{
		Kind:   cloud.Unsupported,
		Detail: "the cluster of the VM has no DRS, which keeps VMs on different hosts: remove antiAffinity, choose another zone, or have the administrator enable DRS",
	}
	errDRSGone = &cloud.Error{
		Kind:   cloud.NoHost,
		Detail: "the cluster of the VM has no DRS any more, which keeps VMs on different hosts: the VM is started once the administrator has enabled DRS",
	}
)

// ruleNames are the names of the rule of an anti-affinity, and what those of all rules of the
// same Kubernetes cluster and Cloud begin with.
type ruleNames struct{ owner, rule string }

func ruleNamesOf(cloudName string, a cloud.AntiAffinity) ruleNames {
	cluster, group, _ := strings.Cut(a.Group, "/")
	owner := rulePrefix + shortDigest(cluster, cloudName) + "."
	policy := "preferred"
	if a.Required {
		policy = "required"
	}
	name := owner + shortDigest(a.Group, policy) + "." + strings.ReplaceAll(group, "/", ".")
	return ruleNames{owner: owner, rule: name[:min(len(name), maxName)]}
}

func shortDigest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return hex.EncodeToString(sum[:])[:digestLength]
}

// cluster is a cluster with its rules; the zero value is none.
type cluster struct {
	ref types.ManagedObjectReference
	// drs is whether DRS is enabled.
	drs   bool
	hosts []types.ManagedObjectReference
	rules []types.BaseClusterRuleInfo
}

// clustersOf reads the clusters of pools and of VMs, and the pools, in one call.
func clustersOf(ctx context.Context, at *site, of ...types.ManagedObjectReference) ([]entity, error) {
	owner := &types.TraversalSpec{SelectionSpec: types.SelectionSpec{Name: "owner"}, Type: "ResourcePool", Path: "owner"}
	spec := types.PropertyFilterSpec{PropSet: []types.PropertySpec{
		{Type: "ClusterComputeResource", PathSet: []string{"configurationEx", "host"}}, {Type: "ResourcePool", PathSet: []string{owner.Path}},
	}}
	for _, ref := range of {
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: ref, SelectSet: []types.BaseSelectionSpec{
			owner, &types.TraversalSpec{Type: "VirtualMachine", Path: poolPath, SelectSet: []types.BaseSelectionSpec{&types.SelectionSpec{Name: owner.Name}}},
		}})
	}
	return collect(ctx, at.vim, spec)
}

// cluster returns what was read of a cluster. One that the account may not read has no DRS.
func (s entity) cluster() cluster {
	config, ok := s.props["configurationEx"].(types.ClusterConfigInfoEx)
	if !ok {
		return cluster{}
	}
	hosts, _ := s.props["host"].(types.ArrayOfManagedObjectReference)
	return cluster{ref: s.ref, drs: config.DrsConfig.Enabled != nil && *config.DrsConfig.Enabled, hosts: hosts.ManagedObjectReference, rules: config.Rule}
}

// clusterOf reads the cluster that a VM is in. It fails with errDRSGone if that has no DRS.
func (c *Client) clusterOf(ctx context.Context, at *site, vm types.ManagedObjectReference) (cluster, error) {
	var found []entity
	err := c.session.sure(ctx, func() (empty bool, err error) {
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

// rule returns the anti-affinity rule of a name, nil if there is none.
func (c cluster) rule(name string) *types.ClusterAntiAffinityRuleSpec {
	for _, info := range c.rules {
		if rule, ok := info.(*types.ClusterAntiAffinityRuleSpec); ok && rule.Name == name {
			return rule
		}
	}
	return nil
}

// others returns the VMs of the rule but one.
func (c cluster) others(names ruleNames, vm types.ManagedObjectReference) []types.ManagedObjectReference {
	rule := c.rule(names.rule)
	if rule == nil {
		return nil
	}
	return without(rule.Vm, vm)
}

// join returns the changes after which the rule keeps a VM apart from the others; none if it
// does so already, or if there are no others.
func (c cluster) join(names ruleNames, required bool, vm types.ManagedObjectReference, others []types.ManagedObjectReference) []types.ClusterRuleSpec {
	rule := c.rule(names.rule)
	if len(others) == 0 || applies(rule, required) && slices.Contains(rule.Vm, vm) {
		return nil
	}
	return append(c.surplus(names), ruleSpec(rule, names.rule, required, append(slices.Clone(others), vm)))
}

// leave returns the changes after which no rule has the VM, and none is without effect.
func (c cluster) leave(names ruleNames, required bool, vm types.ManagedObjectReference) []types.ClusterRuleSpec {
	specs, rule := c.surplus(names), c.rule(names.rule)
	if rule == nil {
		return specs
	}
	others := without(rule.Vm, vm)
	switch {
	case len(others) < leastInRule:
		return append(specs, removal(rule.Key))
	case len(others) < len(rule.Vm):
		return append(specs, ruleSpec(rule, names.rule, required, others))
	}
	return specs
}

// surplus returns the removals of the other rules of the owner that have too few VMs.
func (c cluster) surplus(names ruleNames) (specs []types.ClusterRuleSpec) {
	for _, info := range c.rules {
		rule, ok := info.(*types.ClusterAntiAffinityRuleSpec)
		if ok && rule.Name != names.rule && strings.HasPrefix(rule.Name, names.owner) && len(rule.Vm) < leastInRule {
			specs = append(specs, removal(rule.Key))
		}
	}
	return specs
}

// applies reports whether a rule is as the policy has it. Somebody may have disabled it.
func applies(rule *types.ClusterAntiAffinityRuleSpec, required bool) bool {
	set := func(flag *bool) bool { return flag != nil && *flag }
	return rule != nil && set(rule.Enabled) && set(rule.Mandatory) == required
}

func removal(key int32) types.ClusterRuleSpec {
	return types.ClusterRuleSpec{ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationRemove, RemoveKey: key}}
}

// ruleSpec returns the change that gives a rule these VMs, or makes it if it is nil.
func ruleSpec(rule *types.ClusterAntiAffinityRuleSpec, name string, required bool, vms []types.ManagedObjectReference) types.ClusterRuleSpec {
	info := types.ClusterRuleInfo{Name: name, Enabled: new(true), Mandatory: new(required), UserCreated: new(true)}
	spec := types.ClusterRuleSpec{ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd}}
	if rule != nil {
		spec.Operation = types.ArrayUpdateOperationEdit
		info.Key, info.RuleUuid = rule.Key, rule.RuleUuid
	}
	spec.Info = &types.ClusterAntiAffinityRuleSpec{ClusterRuleInfo: info, Vm: vms}
	return spec
}

func without(all []types.ManagedObjectReference, one types.ManagedObjectReference) []types.ManagedObjectReference {
	return slices.DeleteFunc(slices.Clone(all), func(ref types.ManagedObjectReference) bool { return ref == one })
}

// keepApart puts a VM with an anti-affinity into the rule of its group. A VM that is alone has
// no rule: the next one makes it. Each VM looks for the others after it was cloned with its
// mark, so that of any two one finds the other. Without DRS, a VM that is to be kept apart only
// if possible is started all the same. Only changes of rules wait for each other.
func (c *Client) keepApart(ctx context.Context, at *site, vm entity) error {
	a := vm.antiAffinity()
	if a == (cloud.AntiAffinity{}) {
		return nil
	}
	names := ruleNamesOf(c.cloudName, a)
	in, err := c.clusterOf(ctx, at, vm.ref)
	switch {
	case !a.Required && errors.Is(err, errDRSGone):
		return nil
	case err != nil:
		return err
	}
	others := in.others(names, vm.ref)
	if len(others) == 0 {
		if others, err = c.peers(ctx, at, in, vm.ref, a); err != nil {
			return err
		}
	}
	if len(in.join(names, a.Required, vm.ref, others)) == 0 {
		return nil
	}
	release, err := c.ruleTurn(ctx)
	if err != nil {
		return err
	}
	defer release()
	for range ruleTries { // the rules have no version: others may have changed them back
		if in, err = c.clusterOf(ctx, at, vm.ref); err != nil {
			return err
		}
		if inRule := in.others(names, vm.ref); len(inRule) > 0 {
			others = inRule
		}
		specs := in.join(names, a.Required, vm.ref, others)
		if len(specs) == 0 {
			return nil
		}
		if err := c.changeRules(ctx, at, in, specs); err != nil {
			return err
		}
	}
	return refuse("", cloud.Busy, "others change the DRS rules of the cluster at the same time")
}

// leaveRule takes a VM that is deleted out of the rule of its group. A failure does no harm:
// the vCenter does so too, and the next change removes rules with too few VMs.
func (c *Client) leaveRule(ctx context.Context, at *site, vm entity) {
	a := vm.antiAffinity()
	if a == (cloud.AntiAffinity{}) {
		return
	}
	release, err := c.ruleTurn(ctx)
	if err != nil {
		return
	}
	defer release()
	in, err := c.clusterOf(ctx, at, vm.ref)
	if err != nil {
		return
	}
	if specs := in.leave(ruleNamesOf(c.cloudName, a), a.Required, vm.ref); len(specs) > 0 {
		if err := c.changeRules(ctx, at, in, specs); err != nil {
			c.log.V(1).Info("a deleted VM was left in its DRS rule", "reason", cmp.Or(codeOf(faultOf(err)), err.Error()))
		}
	}
}

// ruleTurn waits for the changes of rules for other VMs. release ends the turn.
func (c *Client) ruleTurn(ctx context.Context) (release func(), err error) {
	late := time.NewTimer(ruleTurn)
	defer late.Stop()
	select {
	case c.changingRules <- struct{}{}:
		return func() { <-c.changingRules }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, refuse("", cloud.Busy, "the DRS rules of the cluster are being changed for other VMs")
	}
}

// peers returns the other VMs with an anti-affinity that are in a cluster.
func (c *Client) peers(ctx context.Context, at *site, in cluster, vm types.ManagedObjectReference, a cloud.AntiAffinity) (others []types.ManagedObjectReference, err error) {
	var found []entity
	err = c.session.sure(ctx, func() (bool, error) {
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

// changeRules changes the rules of a cluster, and waits for it a short time. It does not fail
// if the rules were changed meanwhile: they have to be read again.
func (c *Client) changeRules(ctx context.Context, at *site, in cluster, specs []types.ClusterRuleSpec) error {
	res, err := methods.ReconfigureComputeResource_Task(ctx, at.vim, &types.ReconfigureComputeResource_Task{
		This: in.ref, Modify: true, Spec: &types.ClusterConfigSpecEx{RulesSpec: specs},
	})
	if err != nil {
		return err
	}
	c.started(res.Returnval)
	info, err := c.waitFor(ctx, at, res.Returnval, ruleHold)
	switch {
	case err != nil:
		return err
	case info == nil, info.State == types.TaskInfoStateSuccess:
		return nil
	case info.State != types.TaskInfoStateError || info.Error == nil:
		return refuse("", cloud.Busy, "the vCenter changes the DRS rules of the cluster, which takes a while")
	}
	switch info.Error.Fault.(type) {
	case *types.InvalidArgument, *types.DuplicateName, *types.AlreadyExists, *types.ManagedObjectNotFound, *types.ConcurrentAccess:
		return nil
	}
	return c.faultOfTask("", info.Error.Fault, info.Error.LocalizedMessage)
}
