package vm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// antiAffinityIndex finds the VMs of an anti-affinity group by its name. VMs without one are
// not in it.
const antiAffinityIndex = "antiAffinity"

// maxNamed bounds the VMs that a message names.
const maxNamed = 5

func antiAffinityKeys(vm *pcapi.VM) []string {
	if vm.Spec.AntiAffinity == nil {
		return nil
	}
	return []string{vm.Spec.AntiAffinity.Group}
}

// explained returns the error of a create or a start, if the cloud has no host for the VM, with what the
// spec asks for and where the other VMs of the anti-affinity group run.
func explained(ctx context.Context, reader client.Reader, vm *pcapi.VM, obs *observation, err error) error {
	if e, ok := errors.AsType[*cloud.Error](err); ok && e.Kind == cloud.NoHost {
		return explain(ctx, reader, vm, obs, *e)
	}
	return err
}

// observeNoHost explains why the operation of a create or a start failed, if the cloud has no
// host.
func observeNoHost(ctx context.Context, reader client.Reader, vm *pcapi.VM, obs *observation) {
	if obs.Fault != nil && obs.Fault.Kind == cloud.NoHost {
		obs.Fault = explain(ctx, reader, vm, obs, *obs.Fault)
	}
}

func explain(ctx context.Context, reader client.Reader, vm *pcapi.VM, obs *observation, e cloud.Error) *cloud.Error {
	if vm.Spec.Zone != "" {
		e.Detail += fmt.Sprintf("; spec.zone is %q", vm.Spec.Zone)
	}
	if vm.Spec.AntiAffinity != nil {
		if others, err := peers(ctx, reader, vm, obs.Cloud); err == nil { // else the cloud's reason has to do
			e.Detail += fmt.Sprintf("; of the anti-affinity group %q %s", vm.Spec.AntiAffinity.Group, hostsOf(others))
		}
	}
	return &e
}

// peers returns the other VMs of the anti-affinity group of a VM that have a server, by name.
func peers(ctx context.Context, reader client.Reader, vm *pcapi.VM, cloudName string) ([]pcapi.VM, error) {
	var list pcapi.VMList
	err := reader.List(ctx, &list, client.InNamespace(vm.Namespace), client.MatchingFields{antiAffinityIndex: vm.Spec.AntiAffinity.Group}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the VMs of the anti-affinity group %q: %w", vm.Spec.AntiAffinity.Group, err)
	}
	own := *vm.Spec.AntiAffinity
	others := slices.DeleteFunc(slices.Clone(list.Items), func(other pcapi.VM) bool {
		return other.Name == vm.Name || other.Status.Cloud != cloudName || other.Status.VMID == "" || *other.Spec.AntiAffinity != own
	})
	slices.SortFunc(others, func(a, b pcapi.VM) int { return cmp.Compare(a.Name, b.Name) })
	return others, nil
}

// hostsOf says where VMs run.
func hostsOf(vms []pcapi.VM) string {
	if len(vms) == 0 {
		return "no other VM is in this namespace"
	}
	var named []string
	for _, vm := range vms[:min(len(vms), maxNamed)] {
		is := "runs"
		switch vm.Status.State {
		case pcapi.VMStateStopped:
			is = "is stopped"
		case pcapi.VMStateSuspended:
			is = "is suspended"
		default:
		}
		named = append(named, fmt.Sprintf("%s %s on %s", vm.Name, is, cmp.Or(vm.Status.Host, "a host that the cloud does not show")))
	}
	if more := len(vms) - maxNamed; more > 0 {
		named = append(named, fmt.Sprintf("%d more VMs run", more))
	}
	return strings.Join(named, ", ")
}
