package vcsim

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// extend replaces, in the session of a call, objects of the simulator by those below. It refuses
// a change of a VM that was made for another version of it, as a vCenter does.
func (s *Server) extend(ctx *simulator.Context, method *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	if ctx.Session == nil {
		return nil, nil
	}
	switch of := ctx.Session.Get(method.This).(type) {
	case *simulator.SearchIndex:
		ctx.Session.Registry.Put(&searchIndex{SearchIndex: of})
	case *simulator.Folder:
		if method.Name == "UnregisterAndDestroy_Task" {
			ctx.Session.Registry.Put(&folder{Folder: of})
		}
	case *simulator.PropertyCollector:
		if method.Name == "WaitForUpdatesEx" {
			s.extendCollector(ctx, of)
		}
	case *simulator.VirtualMachine:
		switch request := method.Body.(type) {
		case *types.ReconfigVM_Task:
			if outdated(ctx, of, request.Spec.ChangeVersion) {
				return nil, &types.ConcurrentAccess{}
			}
		case *types.CloneVM_Task:
			s.completeClone(ctx, of, request)
		case *types.Destroy_Task:
			s.keepUnattached(ctx, of)
		}
	}
	return nil, nil
}

// outdated reports whether a VM has another version than the one that is given, if one is.
func outdated(ctx *simulator.Context, vm *simulator.VirtualMachine, version string) (is bool) {
	ctx.WithLock(vm, func() { is = version != "" && version != vm.Config.ChangeVersion })
	return is
}

func (s *Server) extendCollector(ctx *simulator.Context, of *simulator.PropertyCollector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.plain {
		s.waiting[of] = true
	} else if made := newCollector(ctx, of); made != nil {
		ctx.Session.Registry.Put(made)
		s.collectors[made] = true
	}
}

// UsePlainCollectors makes the simulator's own collectors report changes. They are slow
// with many VMs, and can miss that VMs are deleted while others are created.
func (s *Server) UsePlainCollectors() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plain = true
}

// endWaits ends the requests for changes. Those to the simulator's own collectors last for
// up to a minute also without their session and their client, and end only if all is set.
func (s *Server) endWaits(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for collector := range s.collectors {
		collector.end()
	}
	clear(s.collectors)
	if all {
		for collector := range s.waiting {
			collector.CancelWaitForUpdates(&types.CancelWaitForUpdates{})
		}
	}
}

// searchIndex looks for children of folders. That of the simulator panics, with locks held,
// when it finds a VM that has no name yet because it is being created. It also finds VMs in
// other datacenters than the one that is asked for.
type searchIndex struct{ *simulator.SearchIndex }

// FindAllByUuid returns the VMs with an id in a datacenter, or in all.
func (s *searchIndex) FindAllByUuid(ctx *simulator.Context, req *types.FindAllByUuid) soap.HasFault { //nolint:revive // the method of the API
	answer := s.SearchIndex.FindAllByUuid(ctx, req)
	if body, ok := answer.(*methods.FindAllByUuidBody); ok && body.Res != nil && req.Datacenter != nil {
		body.Res.Returnval = slices.DeleteFunc(body.Res.Returnval, func(ref types.ManagedObjectReference) bool {
			return !below(ctx, ref, *req.Datacenter)
		})
	}
	return answer
}

// FindChild returns what has a name in a folder.
func (s *searchIndex) FindChild(ctx *simulator.Context, req *types.FindChild) soap.HasFault {
	in, ok := ctx.Map.Get(req.Entity).(*simulator.Folder)
	if !ok {
		return s.SearchIndex.FindChild(ctx, req)
	}
	var children []types.ManagedObjectReference
	ctx.WithLock(in, func() { children = slices.Clone(in.ChildEntity) })
	body := &methods.FindChildBody{Res: &types.FindChildResponse{}}
	for _, ref := range children {
		if child, ok := ctx.Map.Get(ref).(mo.Entity); ok && child.Entity().Name == req.Name {
			body.Res.Returnval = &ref
			break
		}
	}
	return body
}

// folder is a folder with a method that the simulator lacks.
type folder struct{ *simulator.Folder }

// UnregisterAndDestroyTask removes the folder. VMs in it are unregistered, and keep their
// files.
func (f *folder) UnregisterAndDestroyTask(ctx *simulator.Context, _ *types.UnregisterAndDestroy_Task) soap.HasFault {
	task := simulator.CreateTask(f, "unregisterAndDestroy", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		for _, child := range slices.Clone(f.ChildEntity) {
			vm, ok := ctx.Map.Get(child).(*simulator.VirtualMachine)
			if !ok {
				return nil, &types.NotSupported{} // tests have no folders in such folders
			}
			if fault := vm.UnregisterVM(ctx, &types.UnregisterVM{This: child}).Fault(); fault != nil {
				return nil, fault.VimFault().(types.BaseMethodFault) //nolint:forcetypeassert // the simulator's own
			}
		}
		parent := ctx.Map.Get(*f.Parent).(*simulator.Folder) //nolint:forcetypeassert // a folder of VMs is in one
		ctx.Map.Remove(ctx, f.Self)
		ctx.WithLock(parent, func() { simulator.RemoveReference(&parent.ChildEntity, f.Self) })
		return nil, nil
	})
	return &methods.UnregisterAndDestroy_TaskBody{Res: &types.UnregisterAndDestroy_TaskResponse{Returnval: task.Run(ctx)}}
}
