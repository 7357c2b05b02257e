package vsphere

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// lookUp is find for calls that need the configuration of the VM.
func (v *vms) lookUp(ctx context.Context, op, id string) (entity, *site, error) {
	vm, at, err := v.find(ctx, op, id)
	if err == nil && !vm.configured() {
		err = v.faults.fail(ctx, op, errUnreadable)
	}
	return vm, at, err
}

// find returns the VM with an id as it is, and the site. It is below the root; one that is
// elsewhere in the vCenter is Displaced.
func (v *vms) find(ctx context.Context, op, id string) (entity, *site, error) {
	if id == "" {
		return entity{}, nil, refuse(op, cloud.Rejected, "no id was given")
	}
	at, err := v.sites.locate(ctx)
	if err != nil {
		return entity{}, nil, v.faults.fail(ctx, op, err)
	}
	vm, err := v.byID(ctx, op, at, id)
	if err != nil {
		return entity{}, nil, v.faults.fail(ctx, op, v.sites.misplaced(ctx, at, err))
	}
	if vm != nil {
		return *vm, at, nil
	}
	if err := readableRoot(ctx, at); err != nil {
		return entity{}, nil, v.faults.fail(ctx, op, v.sites.misplaced(ctx, at, err))
	}
	hidden, err := v.hidden.any(ctx, at)
	switch {
	case err != nil:
		return entity{}, nil, v.faults.fail(ctx, op, v.sites.misplaced(ctx, at, err))
	case hidden:
		return entity{}, nil, refuse(op, cloud.Unavailable, "a VM in spec.vsphere.folder cannot be read at the moment, and it may be this one")
	}
	return entity{}, nil, refuse(op, cloud.NotFound, "no VM has this instance UUID")
}

// byID returns the VM with an id, nil if there is none in the vCenter. Ids have one spelling,
// so that no two ids are of the same VM.
func (v *vms) byID(ctx context.Context, op string, at *site, id string) (*entity, error) {
	if !isID(id) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	res, err := methods.FindAllByUuid(ctx, at.vim, &types.FindAllByUuid{
		This: *at.vim.ServiceContent.SearchIndex, Uuid: id, VmSearch: true, InstanceUuid: new(true),
	})
	if err != nil {
		return nil, err
	}
	switch len(res.Returnval) {
	case 0:
		return v.unfound(ctx, op, at, id)
	case 1:
	default:
		return nil, refuse(op, cloud.Conflict, "%d VMs have this instance UUID, of which all but one are copies: the administrator gives the copies others", len(res.Returnval))
	}
	vm, err := v.look(ctx, at, res.Returnval[0])
	if vm == nil || err != nil {
		return nil, err
	}
	v.refs.put(vm.ref, id)
	return vm, v.displaced(op, at, vm)
}

// errUnreadable is about a VM whose configuration the vCenter does not return.
var errUnreadable = &cloud.Error{
	Kind: cloud.Unavailable, Detail: "the vCenter cannot read the configuration of the VM at the moment, as while its host or datastore is not connected",
}

// displaced returns why a VM is not changed where it is; nil if it is the operator's to change.
func (v *vms) displaced(op string, at *site, vm *entity) error {
	switch {
	case !vm.configured() && !vm.lost():
		return errUnreadable
	case vm.flag(templatePath):
		return refuse(op, cloud.Displaced, "the VM was converted to a template, %s: convert it to a VM again", quote(v.pathOf(at, vm)))
	case !vm.inside && len(vm.above) == 0:
		return refuse(op, cloud.Displaced, "the VM is in a vApp, or in a folder that the operator's account may not read, outside of spec.vsphere.folder: move it back")
	case !vm.inside:
		return refuse(op, cloud.Displaced, "the VM is %s now, outside of spec.vsphere.folder: move it back", quote(v.pathOf(at, vm)))
	}
	return nil
}

// pathOf returns the inventory path of a VM, as far as the account may read it.
func (v *vms) pathOf(at *site, vm *entity) string {
	path := "/" + unescaped(vm.text("name"))
	for _, ref := range vm.above {
		if name, ok := v.names.get(ref, time.Now()); ok && name != "" && ref != at.vim.ServiceContent.RootFolder {
			path = "/" + name + path
		}
	}
	return path
}

// isID reports whether a text may be the id of a VM.
func isID(text string) bool {
	parsed, err := uuid.Parse(text)
	return err == nil && parsed.String() == text
}

// unfound returns the VM that had an id and cannot be read at the moment, so that a search
// does not find it; nil if there is none. To an account without rights on it, the vCenter says
// that a VM exists only if it is asked for the VM itself.
func (v *vms) unfound(ctx context.Context, op string, at *site, id string) (*entity, error) {
	ref, known := v.refs.find(id)
	if !known {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	vm, err := v.look(ctx, at, ref)
	switch {
	case vm == nil || err != nil:
		return nil, err
	case vm.lost(), vm.text(uuidPath) == id:
		return vm, v.displaced(op, at, vm)
	case !vm.configured():
		if err := readableRoot(ctx, at); err != nil {
			return nil, err
		}
		if vm.inside || !vm.denied() {
			return nil, errUnreadable
		}
		return nil, refuse(op, cloud.Displaced, "the VM exists, and the operator's account may not read it: give the account its role where the VM is, or move the VM back")
	}
	return nil, nil //nolint:nilnil // the VM has another id now
}
