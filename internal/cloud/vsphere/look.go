package vsphere

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// look reads a VM and the folders that it is in; nil if it does not exist. Calls at the
// same time share a read.
func (v *vms) look(ctx context.Context, at *site, ref types.ManagedObjectReference) (*entity, error) {
	vm, known, err := v.reads.get(ctx, ref, time.Now(), func(refs []types.ManagedObjectReference, end func(map[types.ManagedObjectReference]entity, error)) error {
		return v.calls.shared(ctx, func(ctx context.Context) {
			found, err := v.read(ctx, at, refs)
			end(found, err)
		})
	})
	if err != nil {
		return nil, err
	}
	if !known {
		v.refs.forget(ref)
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	vm.inside = slices.Contains(vm.above, at.root)
	return &vm, nil
}

// read reads VMs and the folders that they are in, in one call.
func (v *vms) read(ctx context.Context, at *site, refs []types.ManagedObjectReference) (map[types.ManagedObjectReference]entity, error) {
	spec := types.PropertyFilterSpec{
		PropSet:                       []types.PropertySpec{{Type: "VirtualMachine", PathSet: v.place.pathsOf(vmPaths)}, {Type: "Folder", PathSet: []string{"name", parentPath}}, {Type: "Datacenter", PathSet: []string{"name", parentPath}}},
		ReportMissingObjectsInResults: new(true),
	}
	for i, ref := range refs {
		up := fmt.Sprintf("up%d", i)
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: ref, SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{
			SelectionSpec: types.SelectionSpec{Name: up}, Type: "ManagedEntity", Path: parentPath, SelectSet: []types.BaseSelectionSpec{&types.SelectionSpec{Name: up}},
		}}})
	}
	var vms map[types.ManagedObjectReference]entity
	var parents map[types.ManagedObjectReference]types.ManagedObjectReference
	err := v.session.sure(ctx, func() (missing bool, err error) {
		found, err := collect(ctx, at.vim, spec)
		vms, parents = make(map[types.ManagedObjectReference]entity, len(refs)), map[types.ManagedObjectReference]types.ManagedObjectReference{}
		for _, object := range found {
			switch {
			case object.deleted():
			case object.ref.Type == "Folder", object.ref.Type == "Datacenter":
				parents[object.ref] = object.reference(parentPath)
				v.names.put(object.ref, unescaped(object.text("name")), time.Now())
			default:
				vms[object.ref] = object
			}
		}
		return err == nil && len(vms) < len(refs), err
	})
	for ref, vm := range vms {
		in := vm.reference(parentPath)
		for range parents { // no more than there are folders
			above, read := parents[in]
			if !read {
				break
			}
			vm.above = append(vm.above, in)
			in = above
		}
		vms[ref] = vm
	}
	return vms, err
}

// readableRoot fails if the account may not read the folder with all VMs. To such an
// account the vCenter shows no VM, and does not fail.
func readableRoot(ctx context.Context, at *site) error {
	found, err := retrieve(ctx, at.vim, "Folder", []string{"name"}, at.root)
	if err == nil && (len(found) != 1 || found[0].text("name") == "") {
		return refuse("", cloud.Misconfigured, "the operator's account may not read spec.vsphere.folder any more: give it back its role there")
	}
	return err
}
