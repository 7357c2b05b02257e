package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

// seed is what the inventory has at the start.
type seed struct {
	folder    string
	templates []string
	// vms are names of VMs, each with the host if it is followed by = and the host.
	vms      []string
	gpuHosts []string
}

// names returns the names of all templates.
func (s seed) names() []string { return append([]string{vcsim.Template}, s.templates...) }

// plant makes what the seed describes.
func (s seed) plant(ctx context.Context, vcenter *vcsim.Server) error {
	folder, err := vcenter.MakeFolder(ctx, s.folder)
	if err != nil {
		return fmt.Errorf("make folder %q: %w", s.folder, err)
	}
	template := vcenter.TemplateVM()
	beside := object.NewFolder(vcenter.Admin.Client, *template.Parent)
	for _, name := range s.templates {
		if _, err := clone(ctx, vcenter, template, beside, name, "", true); err != nil {
			return fmt.Errorf("make template %q: %w", name, err)
		}
	}
	for _, vm := range s.vms {
		name, host, _ := strings.Cut(vm, "=")
		made, err := clone(ctx, vcenter, template, folder, name, host, false)
		if err != nil {
			return fmt.Errorf("make VM %q: %w", name, err)
		}
		if err := wait(ctx)(object.NewVirtualMachine(vcenter.Admin.Client, made).PowerOn(ctx)); err != nil {
			return fmt.Errorf("start VM %q: %w", name, err)
		}
	}
	for _, name := range s.gpuHosts {
		host := hostOf(vcenter, name)
		if host == nil {
			return fmt.Errorf("there is no host %q", name)
		}
		vcenter.Change(host.Self, types.PropertyChange{Name: "config.graphicsInfo", Val: []types.HostGraphicsInfo{{
			DeviceName: "gpu", VendorName: "vcsim", GraphicsType: string(types.HostGraphicsInfoGraphicsTypeSharedDirect),
		}}})
	}
	return nil
}

// clone clones the template into a folder, on a host if it is named.
func clone(ctx context.Context, vcenter *vcsim.Server, template *simulator.VirtualMachine, into *object.Folder, name, host string, asTemplate bool) (types.ManagedObjectReference, error) {
	none := types.ManagedObjectReference{}
	pool, err := find.NewFinder(vcenter.Admin.Client).DefaultResourcePool(ctx)
	if err != nil {
		return none, err
	}
	spec := types.VirtualMachineCloneSpec{Location: types.VirtualMachineRelocateSpec{Pool: new(pool.Reference())}, Template: asTemplate}
	if host != "" {
		on := hostOf(vcenter, host)
		if on == nil {
			return none, fmt.Errorf("there is no host %q", host)
		}
		spec.Location.Host = &on.Self
	}
	task, err := object.NewVirtualMachine(vcenter.Admin.Client, template.Self).Clone(ctx, into, name, spec)
	if err != nil {
		return none, err
	}
	info, err := task.WaitForResult(ctx)
	if err != nil {
		return none, err
	}
	made, ok := info.Result.(types.ManagedObjectReference)
	if !ok {
		return none, fmt.Errorf("the clone has no result: %v", info.Result)
	}
	return made, nil
}

// wait returns a function that waits for a task.
func wait(ctx context.Context) func(*object.Task, error) error {
	return func(task *object.Task, err error) error {
		if err != nil {
			return err
		}
		return task.Wait(ctx)
	}
}

// hostOf returns the host of a name, nil if there is none.
func hostOf(vcenter *vcsim.Server, name string) *simulator.HostSystem {
	all := vcenter.Model.Map().All("HostSystem")
	at := slices.IndexFunc(all, func(host mo.Entity) bool { return host.Entity().Name == name })
	if at < 0 {
		return nil
	}
	host, _ := all[at].(*simulator.HostSystem)
	return host
}
