package vsphere

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/vmware/govmomi/vim25/types"
)

// look reads a VM and the folders that it is in; nil if it does not exist. Calls at the
// same time share a read.
func (c *Client) look(ctx context.Context, at *site, ref types.ManagedObjectReference) (*entity, error) {
	vm, known, err := c.vms.get(ctx, ref, time.Now(), func(refs []types.ManagedObjectReference, end func(map[types.ManagedObjectReference]entity, error)) error {
		return c.shared(ctx, func(ctx context.Context) {
			found, err := c.readVMs(ctx, at, refs)
			end(found, err)
		})
	})
	if err != nil {
		return nil, err
	}
	if !known {
		c.refs.forget(ref)
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	vm.inside = slices.Contains(vm.above, at.root)
	return &vm, nil
}

// readVMs reads VMs and the folders that they are in, in one call.
func (c *Client) readVMs(ctx context.Context, at *site, refs []types.ManagedObjectReference) (map[types.ManagedObjectReference]entity, error) {
	spec := types.PropertyFilterSpec{
		PropSet:                       []types.PropertySpec{{Type: "VirtualMachine", PathSet: c.place.pathsOf(vmPaths)}, {Type: "Folder", PathSet: []string{"name", parentPath}}, {Type: "Datacenter", PathSet: []string{"name", parentPath}}},
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
	err := c.session.sure(ctx, func() (missing bool, err error) {
		found, err := collect(ctx, at.vim, spec)
		vms, parents = make(map[types.ManagedObjectReference]entity, len(refs)), map[types.ManagedObjectReference]types.ManagedObjectReference{}
		for _, object := range found {
			switch {
			case object.deleted():
			case object.ref.Type == "Folder", object.ref.Type == "Datacenter":
				parents[object.ref] = object.reference(parentPath)
				c.names.put(object.ref, unescaped(object.text("name")), time.Now())
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
