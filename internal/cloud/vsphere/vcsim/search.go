package vcsim

import (
	"bytes"
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// searchIndex is that of the simulator, except that it finds nothing where a VM has no
// name yet because it is being created. There the simulator's own panics, and answers no
// search afterwards.
type searchIndex struct{ *simulator.SearchIndex }

// namedSearch is the reference of searchIndex. The simulator needs its own index under
// the usual reference.
const namedSearch = "SearchIndex-named"

func addNamedSearch(registry *simulator.Registry) {
	index := &simulator.SearchIndex{}
	index.Self = types.ManagedObjectReference{Type: "SearchIndex", Value: namedSearch}
	registry.Put(&searchIndex{index})
}

// searchNamed returns a request that uses searchIndex.
func searchNamed(body []byte) []byte {
	return bytes.Replace(body, []byte(`<_this type="SearchIndex">SearchIndex<`), []byte(`<_this type="SearchIndex">`+namedSearch+`<`), 1)
}

// FindChild returns what has a name in a folder.
func (s *searchIndex) FindChild(ctx *simulator.Context, req *types.FindChild) soap.HasFault {
	folder, ok := ctx.Map.Get(req.Entity).(*simulator.Folder)
	if !ok {
		return s.SearchIndex.FindChild(ctx, req)
	}
	var children []types.ManagedObjectReference
	ctx.WithLock(folder, func() { children = slices.Clone(folder.ChildEntity) })
	body := &methods.FindChildBody{Res: &types.FindChildResponse{}}
	for _, ref := range children {
		if entity, ok := ctx.Map.Get(ref).(mo.Entity); ok && req.Name != "" && entity.Entity().Name == req.Name {
			body.Res.Returnval = &ref
			break
		}
	}
	return body
}
