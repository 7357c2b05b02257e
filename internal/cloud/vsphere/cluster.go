package vsphere

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

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
	return cluster{ref: s.ref, drs: set(config.DrsConfig.Enabled), hosts: hosts.ManagedObjectReference, rules: config.Rule}
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

// disabled reports whether the rule has a VM and is without effect.
func (c cluster) disabled(names ruleNames, vm types.ManagedObjectReference) bool {
	rule := c.rule(names.rule)
	return rule != nil && slices.Contains(rule.Vm, vm) && !set(rule.Enabled)
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
	return append(c.leave(names.owner, names.rule), ruleSpec(rule, names.rule, required, append(slices.Clone(others), vm)))
}

// leave returns the changes after which no rule of an owner has one of the VMs, and none has too
// few. The rule that is called except stays as it is.
func (c cluster) leave(owner, except string, vms ...types.ManagedObjectReference) (specs []types.ClusterRuleSpec) {
	for _, info := range c.rules {
		rule, ok := info.(*types.ClusterAntiAffinityRuleSpec)
		if !ok || !strings.HasPrefix(rule.Name, owner) || rule.Name == except {
			continue
		}
		switch staying := without(rule.Vm, vms...); {
		case len(staying) < leastInRule:
			specs = append(specs, removal(rule.Key))
		case len(staying) < len(rule.Vm):
			specs = append(specs, ruleSpec(rule, rule.Name, set(rule.Mandatory), staying))
		}
	}
	return specs
}

// applies reports whether a rule is as the policy has it. Somebody may have disabled it.
func applies(rule *types.ClusterAntiAffinityRuleSpec, required bool) bool {
	return rule != nil && set(rule.Enabled) && set(rule.Mandatory) == required
}

func set(flag *bool) bool { return flag != nil && *flag }

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

func without(all []types.ManagedObjectReference, some ...types.ManagedObjectReference) []types.ManagedObjectReference {
	return slices.DeleteFunc(slices.Clone(all), func(ref types.ManagedObjectReference) bool { return slices.Contains(some, ref) })
}
