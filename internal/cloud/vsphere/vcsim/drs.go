package vcsim

import (
	"context"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// place starts a VM that an anti-affinity rule has, on a host without another VM of the rule.
// If there is none, the task fails if the rule is mandatory.
func (s *Server) place(method, body string) (status int, answer string) {
	if method != "PowerOnVM_Task" {
		return 0, ""
	}
	vm, ok := s.subject(body).(*simulator.VirtualMachine)
	if !ok {
		return 0, ""
	}
	s.measure(vm.Self)
	s.placing.Lock()
	defer s.placing.Unlock()
	rule, hosts := s.ruleOf(vm.Self)
	if rule == nil || Running(vm) {
		return 0, ""
	}
	for _, other := range s.VMs() {
		if other.Self != vm.Self && slices.Contains(rule.Vm, other.Self) && Running(other) {
			hosts = slices.DeleteFunc(hosts, func(host types.ManagedObjectReference) bool { return host == *other.Runtime.Host })
		}
	}
	switch {
	case len(hosts) > 0:
		s.Change(vm.Self, types.PropertyChange{Name: "runtime.host", Val: &hosts[0]})
	case rule.Mandatory != nil && *rule.Mandatory:
		return taskAnswer(method, s.failed(vm, method, &types.NoCompatibleHost{Error: []types.LocalizedMethodFault{{Fault: &types.RuleViolation{Rule: &rule.ClusterRuleInfo}}}}))
	}
	started, err := object.NewVirtualMachine(s.Admin.Client, vm.Self).PowerOn(context.Background())
	if err != nil {
		return 0, ""
	}
	s.wait(started.Reference())
	return taskAnswer(method, started.Reference())
}

// ruleOf returns the enabled anti-affinity rule that has a VM, nil if there is none, and the
// hosts of its cluster.
func (s *Server) ruleOf(vm types.ManagedObjectReference) (*types.ClusterAntiAffinityRuleSpec, []types.ManagedObjectReference) {
	for _, entity := range s.Model.Map().All("ClusterComputeResource") {
		cluster, ok := entity.(*simulator.ClusterComputeResource)
		if !ok {
			continue
		}
		for _, rule := range s.rulesOf(cluster) {
			if rule.Enabled != nil && *rule.Enabled && slices.Contains(rule.Vm, vm) {
				return rule, slices.Clone(cluster.Host)
			}
		}
	}
	return nil, nil
}

// Rules returns the anti-affinity rules of the cluster.
func (s *Server) Rules() []*types.ClusterAntiAffinityRuleSpec {
	cluster, _ := s.Model.Map().Any("ClusterComputeResource").(*simulator.ClusterComputeResource)
	return s.rulesOf(cluster)
}

func (s *Server) rulesOf(cluster *simulator.ClusterComputeResource) (rules []*types.ClusterAntiAffinityRuleSpec) {
	ctx := *s.Model.Service.Context // a lock belongs to one Context
	ctx.WithLock(cluster, func() {
		config, _ := cluster.ConfigurationEx.(*types.ClusterConfigInfoEx)
		for _, info := range config.Rule {
			if rule, ok := info.(*types.ClusterAntiAffinityRuleSpec); ok {
				rules = append(rules, rule)
			}
		}
	})
	return rules
}

// SetDRS enables or disables DRS in the cluster.
func (s *Server) SetDRS(ctx context.Context, on bool) error {
	return s.reconfigure(ctx, &types.ClusterConfigSpecEx{DrsConfig: &types.ClusterDrsConfigInfo{Enabled: &on}})
}

// PutRule adds an anti-affinity rule to the cluster.
func (s *Server) PutRule(ctx context.Context, name string, vms ...types.ManagedObjectReference) error {
	return s.reconfigure(ctx, &types.ClusterConfigSpecEx{RulesSpec: []types.ClusterRuleSpec{{
		ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd},
		Info:            &types.ClusterAntiAffinityRuleSpec{ClusterRuleInfo: types.ClusterRuleInfo{Name: name, Enabled: new(true)}, Vm: vms},
	}}})
}

func (s *Server) reconfigure(ctx context.Context, spec *types.ClusterConfigSpecEx) error {
	task, err := object.NewClusterComputeResource(s.Admin.Client, s.Model.Map().Any("ClusterComputeResource").Reference()).Reconfigure(ctx, spec, true)
	if err != nil {
		return err
	}
	return task.Wait(ctx)
}

// KeptApart returns the anti-affinity group of a VM of the operator, which has one rule with the
// others of the group and runs on a host without any of them; empty for any other VM.
func (s *Server) KeptApart(vm *simulator.VirtualMachine) string {
	group := groupOf(vm)
	for _, other := range s.VMs() {
		if other.Self == vm.Self || groupOf(other) != group {
			continue
		}
		rule, _ := s.ruleOf(vm.Self)
		if rule == nil || !slices.Contains(rule.Vm, other.Self) || *other.Runtime.Host == *vm.Runtime.Host {
			return ""
		}
	}
	return group
}

// groupOf returns the anti-affinity group of a VM of the operator, empty for none.
func groupOf(vm *simulator.VirtualMachine) string {
	var from struct{ AntiAffinity struct{ Group string } }
	decode(vm, "privatecloud.origin", &from)
	return from.AntiAffinity.Group
}
