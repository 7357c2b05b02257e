package main

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/mockcloud"
)

// progressStep is the number of VMs after which progress is printed.
const progressStep = 5000

// population makes VM objects and their servers as the operator leaves them, with fewer
// writes than the operator needs: the claim is created with the object. What differs is one
// entry of the managed fields, which the operator does not keep.
type population struct {
	s *stage
	// sample is a VM that the operator made Ready, and server its server.
	sample pcapi.VM
	server mockcloud.Server
}

// newPopulation returns a population whose VMs are like the VM sample.
func newPopulation(ctx context.Context, s *stage, sample string) (*population, error) {
	p := &population{s: s}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: sample}, &p.sample); err != nil {
		return nil, fmt.Errorf("reading VM %s: %w", sample, err)
	}
	var servers []mockcloud.Server
	if err := s.cloud.ask(ctx, "GET", "/admin/servers", nil, &servers); err != nil {
		return nil, fmt.Errorf("reading the servers: %w", err)
	}
	for _, server := range servers {
		if server.ID == p.sample.Status.VMID {
			p.server = server
			return p, nil
		}
	}
	return nil, fmt.Errorf("VM %s has no server %q in the cloud", sample, p.sample.Status.VMID)
}

// add adds n Ready VMs.
func (p *population) add(ctx context.Context, prefix string, n int) error {
	var done atomic.Int64
	return each(n, func(i int) error {
		if err := p.addOne(ctx, newVM(prefix, i, pcapi.DefaultCloudName)); err != nil {
			return err
		}
		if added := done.Add(1); added%progressStep == 0 {
			say("  %d of %d VMs", added, n)
		}
		return nil
	})
}

func (p *population) addOne(ctx context.Context, vm *pcapi.VM) error {
	vm.Annotations, vm.Finalizers = p.annotations(vm), p.sample.Finalizers
	if err := p.s.client.Create(ctx, vm); err != nil {
		return fmt.Errorf("creating VM %s: %w", vm.Name, err)
	}
	server, err := p.s.cloud.createServer(ctx, vm.Spec.VMName, p.labels(vm), string(vm.UID))
	if err != nil {
		return fmt.Errorf("creating the server of VM %s: %w", vm.Name, err)
	}
	vm.Status = p.status(vm, server)
	if err := p.s.client.Status().Update(ctx, vm); err != nil {
		return fmt.Errorf("writing the status of VM %s: %w", vm.Name, err)
	}
	return nil
}

// annotations returns the annotations of a VM that has a claim.
func (p *population) annotations(vm *pcapi.VM) map[string]string {
	annotations := maps.Clone(p.sample.Annotations)
	for key, value := range annotations {
		annotations[key] = strings.ReplaceAll(value, p.sample.Spec.VMName, vm.Spec.VMName)
	}
	return annotations
}

// labels returns the labels of the server of a VM.
func (p *population) labels(vm *pcapi.VM) map[string]string {
	labels := maps.Clone(p.server.Labels)
	maps.Copy(labels, map[string]string{
		inventory.UIDLabel: string(vm.UID), inventory.NamespaceLabel: vm.Namespace, inventory.NameLabel: vm.Name,
	})
	return labels
}

// status returns the status of a VM that has a server.
func (p *population) status(vm *pcapi.VM, server mockcloud.Server) pcapi.VMStatus {
	status := *p.sample.Status.DeepCopy()
	status.VMID, status.Host, status.NameInCloud = server.ID, server.Host, server.Name
	status.Network = network(server)
	status.ObservedGeneration = vm.Generation
	own := strings.NewReplacer(p.sample.Spec.VMName, vm.Spec.VMName, p.sample.Status.VMID, server.ID)
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.ObservedGeneration = vm.Generation
		c.Message = own.Replace(c.Message)
	}
	return status
}

// network returns the status of the interface of a server of the mock cloud, which has one
// IPv4 address.
func network(server mockcloud.Server) *pcapi.VMNetworkStatus {
	if len(server.Interfaces) == 0 {
		return nil
	}
	i := server.Interfaces[0]
	return &pcapi.VMNetworkStatus{
		PrimaryIP4: i.Addresses[0],
		Interfaces: []pcapi.VMInterfaceStatus{{MACAddress: i.MACAddress, Addresses: i.Addresses}},
	}
}
