package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

// VM is a VM of the simulator that is no template.
type VM struct {
	Name   string `json:"name"`
	Folder string `json:"folder"`
	Host   string `json:"host"`
	// ID is the instance UUID.
	ID      string `json:"id"`
	Running bool   `json:"running"`
	// Owned is whether it carries an operator's mark.
	Owned bool `json:"owned"`

	ref types.ManagedObjectReference
}

// ownerMark is the key of the extraConfig that has the owner's labels: docs/vsphere.md.
const ownerMark = "privatecloud.labels"

var errNoVM = errors.New("there is no VM of this name")

// newAdmin returns the admin endpoints:
//
//	GET    /calls                 calls of the SOAP API by kind, except the endpoints' own
//	DELETE /calls                 count from 0
//	GET    /vms                   all VMs
//	GET    /folders               names of all folders
//	POST   /vms/{name}/power-off  change a VM as somebody in the vCenter does
//	POST   /vms/{name}/power-on
//	DELETE /vms/{name}
func newAdmin(vcenter *vcsim.Server) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /calls", func(w http.ResponseWriter, _ *http.Request) { answer(w, vcenter.Front.Calls(), nil) })
	mux.HandleFunc("DELETE /calls", func(http.ResponseWriter, *http.Request) { vcenter.Front.ForgetCalls() })
	mux.HandleFunc("GET /vms", func(w http.ResponseWriter, r *http.Request) {
		all, err := list(r.Context(), vcenter)
		answer(w, all, err)
	})
	mux.HandleFunc("GET /folders", func(w http.ResponseWriter, _ *http.Request) { answer(w, vcenter.FolderNames(), nil) })
	mux.HandleFunc("POST /vms/{name}/power-off", change(vcenter, (*object.VirtualMachine).PowerOff))
	mux.HandleFunc("POST /vms/{name}/power-on", change(vcenter, (*object.VirtualMachine).PowerOn))
	mux.HandleFunc("DELETE /vms/{name}", change(vcenter, destroy))
	return mux
}

// change returns the endpoint that does something with the VM of a name.
func change(vcenter *vcsim.Server, do func(*object.VirtualMachine, context.Context) (*object.Task, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		all, err := list(r.Context(), vcenter)
		if err != nil {
			answer(w, nil, err)
			return
		}
		at := slices.IndexFunc(all, func(vm VM) bool { return vm.Name == r.PathValue("name") })
		if at < 0 {
			http.Error(w, errNoVM.Error(), http.StatusNotFound)
			return
		}
		answer(w, all[at], wait(r.Context())(do(object.NewVirtualMachine(vcenter.Admin.Client, all[at].ref), r.Context())))
	}
}

// destroyAttempts bounds how often a VM is powered off before its deletion fails.
const destroyAttempts = 20

// destroy powers a VM off and deletes it. The operator may power the VM on in between, or be about to: then both are
// done again.
func destroy(vm *object.VirtualMachine, ctx context.Context) (task *object.Task, err error) { //nolint:revive // as the methods of object.VirtualMachine
	for range destroyAttempts {
		if state, stateErr := vm.PowerState(ctx); stateErr == nil && state == types.VirtualMachinePowerStatePoweredOn {
			if err = wait(ctx)(vm.PowerOff(ctx)); err != nil {
				continue
			}
		}
		if task, err = vm.Destroy(ctx); err == nil {
			if err = wait(ctx)(task, nil); err == nil {
				return task, nil
			}
		}
	}
	return nil, err
}

func answer(w http.ResponseWriter, result any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(result)
}

// list returns all VMs that are no templates.
func list(ctx context.Context, vcenter *vcsim.Server) ([]VM, error) {
	client := vcenter.Admin.Client
	container, err := view.NewManager(client).CreateContainerView(ctx, client.ServiceContent.RootFolder, nil, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = container.Destroy(context.WithoutCancel(ctx)) }()
	var entities []mo.ManagedEntity
	if err := container.Retrieve(ctx, []string{"Folder", "HostSystem"}, []string{"name"}, &entities); err != nil {
		return nil, err
	}
	names := map[types.ManagedObjectReference]string{}
	for _, entity := range entities {
		names[entity.Self] = entity.Name
	}
	var found []mo.VirtualMachine
	if err := container.Retrieve(ctx, []string{"VirtualMachine"}, []string{"name", "parent", "runtime", "config"}, &found); err != nil {
		return nil, err
	}
	all := make([]VM, 0, len(found))
	for _, vm := range found {
		if vm.Config == nil || vm.Config.Template {
			continue
		}
		made := VM{Name: vm.Name, ID: vm.Config.InstanceUuid, Running: vm.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn, ref: vm.Self}
		made.Owned = slices.ContainsFunc(vm.Config.ExtraConfig, func(option types.BaseOptionValue) bool { return option.GetOptionValue().Key == ownerMark })
		if vm.Parent != nil {
			made.Folder = names[*vm.Parent]
		}
		if vm.Runtime.Host != nil {
			made.Host = names[*vm.Runtime.Host]
		}
		all = append(all, made)
	}
	slices.SortFunc(all, func(a, b VM) int { return strings.Compare(a.Name+a.ID, b.Name+b.ID) })
	return all, nil
}
