package vsphere

import (
	"context"

	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

func objects(contents []types.ObjectContent) []entity {
	out := make([]entity, 0, len(contents))
	for _, object := range contents {
		s := entity{ref: object.Obj, props: make(map[string]types.AnyType, len(object.PropSet))}
		for _, property := range object.PropSet {
			s.props[property.Name] = property.Val
		}
		for _, missing := range object.MissingSet {
			if s.faults == nil {
				s.faults = map[string]types.BaseMethodFault{}
			}
			s.faults[missing.Path] = missing.Fault.Fault
		}
		out = append(out, s)
	}
	return out
}

// retrieve reads the paths of objects of one type. Those that do not exist are an error.
func retrieve(ctx context.Context, vim *vim25.Client, kind string, paths []string, refs ...types.ManagedObjectReference) ([]entity, error) {
	spec := types.PropertyFilterSpec{PropSet: []types.PropertySpec{{Type: kind, PathSet: paths}}}
	for _, ref := range refs {
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: ref})
	}
	return collect(ctx, vim, spec)
}

const (
	// maxPages bounds the answers that one result takes, and maxObjects what it has: as
	// many VMs as the operator reads of a cloud.
	maxPages   = 1000
	maxObjects = 100_000
)

// errTooLarge is about a result that has no end.
var errTooLarge = &cloud.Error{Kind: cloud.Unreadable, Detail: "the vCenter returns more objects than the operator reads"}

// collect reads all that a filter selects.
func collect(ctx context.Context, vim *vim25.Client, spec types.PropertyFilterSpec) ([]entity, error) {
	collector := vim.ServiceContent.PropertyCollector
	res, err := methods.RetrievePropertiesEx(ctx, vim, &types.RetrievePropertiesEx{This: collector, SpecSet: []types.PropertyFilterSpec{spec}})
	if err != nil {
		return nil, err
	}
	result := res.Returnval
	if result == nil {
		return nil, nil
	}
	all := objects(result.Objects)
	for page := 1; result.Token != ""; page++ {
		if page == maxPages || len(all) > maxObjects {
			return nil, errTooLarge
		}
		if result, err = proceed(ctx, vim, result.Token); err != nil {
			return nil, err
		}
		all = append(all, objects(result.Objects)...)
	}
	return all, nil
}

// proceed reads the page of a result that a token leads to. The token is lost with the
// session.
func proceed(ctx context.Context, vim *vim25.Client, token string) (*types.RetrieveResult, error) {
	res, err := methods.ContinueRetrievePropertiesEx(ctx, vim, &types.ContinueRetrievePropertiesEx{This: vim.ServiceContent.PropertyCollector, Token: token})
	switch faultOf(err).(type) {
	case *types.InvalidProperty, *types.InvalidArgument, *types.ManagedObjectNotFound:
		return nil, refuse("", cloud.Unavailable, "the vCenter has forgotten where the listing was, as after the end of a session: it is begun again")
	}
	if err != nil {
		return nil, err
	}
	return &res.Returnval, nil
}

// children selects what is in a folder and, if deep is set, in the folders below it.
func children(folder types.ManagedObjectReference, deep bool, further ...types.BaseSelectionSpec) types.ObjectSpec {
	const name = "children"
	into := &types.TraversalSpec{SelectionSpec: types.SelectionSpec{Name: name}, Type: "Folder", Path: "childEntity", SelectSet: further}
	if deep {
		into.SelectSet = append(into.SelectSet, &types.SelectionSpec{Name: name})
	}
	return types.ObjectSpec{Obj: folder, Skip: new(true), SelectSet: []types.BaseSelectionSpec{into}}
}
