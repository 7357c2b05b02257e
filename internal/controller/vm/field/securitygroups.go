package field

import (
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
)

// SecurityGroups are the security groups. Without any in the spec, the server keeps those that it has.
var SecurityGroups = Field{
	Lacking: lacksSecurityGroups,
	Create:  func(vm *pcapi.VM, _ Context, req *cloud.CreateServer) { req.SecurityGroups = securityGroupsOf(vm) },
	Change: func(vm *pcapi.VM, server cloud.Server) cloud.Update {
		want := securityGroupsOf(vm)
		if want == "" || want == server.SecurityGroups {
			return nil
		}
		return cloud.Update{cloud.SetSecurityGroups(want)}
	},
	Drift: func(vm *pcapi.VM, _ cloud.Server, caps cloud.Capabilities) error {
		return Lacks(lacksSecurityGroups(vm, caps)...)
	},
	Report: func(vm *pcapi.VM, server cloud.Server, _ cloud.Capabilities) {
		vm.Status.SecurityGroups = server.SecurityGroups.List()
	},
	Hide: func(vm *pcapi.VM) { vm.Status.SecurityGroups = nil },
	Shown: func(vm *pcapi.VM, server *cloud.Server) {
		server.SecurityGroups, _ = cloud.NewSecurityGroups(vm.Status.SecurityGroups)
	},
	DescribeCreate: func(_ *pcapi.VM, req cloud.CreateServer) []string { return describeGroups(req.SecurityGroups) },
	DescribeUpdate: func(_ cloud.Server, update cloud.Update) (parts []string) {
		for _, change := range cloud.Changes[cloud.SetSecurityGroups](update) {
			parts = append(parts, describeGroups(cloud.SecurityGroups(change))...)
		}
		return parts
	},
}

func lacksSecurityGroups(vm *pcapi.VM, caps cloud.Capabilities) []string {
	return when(len(vm.Spec.SecurityGroups) > 0 && !caps.Has(cloud.WithSecurityGroups), "securityGroups")
}

func securityGroupsOf(vm *pcapi.VM) cloud.SecurityGroups {
	names := make([]string, 0, len(vm.Spec.SecurityGroups))
	for _, name := range vm.Spec.SecurityGroups {
		names = append(names, string(name))
	}
	groups, _ := cloud.NewSecurityGroups(names)
	return groups
}

// describeGroups returns what a plan says of the groups that a server gets.
func describeGroups(groups cloud.SecurityGroups) []string {
	if groups == "" {
		return nil
	}
	return []string{"security groups " + quoted(groups.List())}
}

// quoted returns texts as plans show them.
func quoted(texts []string) string {
	all := make([]string, 0, len(texts))
	for _, text := range texts {
		all = append(all, approval.Quoted(text))
	}
	return strings.Join(all, " ")
}
