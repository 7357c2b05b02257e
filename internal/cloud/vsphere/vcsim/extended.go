package vcsim

import (
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// extended returns what serves a call in place of the simulator's own object, nil for
// that object.
func (s *Server) extended(ctx *simulator.Context, method *simulator.Method) (mo.Reference, types.BaseMethodFault) {
	switch method.Name {
	case "UnregisterAndDestroy_Task":
		if of, ok := ctx.Map.Get(method.This).(*simulator.Folder); ok {
			return &folder{Folder: of}, nil
		}
	case "WaitForUpdatesEx":
		if ctx.Session == nil {
			break
		}
		if collector, ok := ctx.Session.Get(method.This).(*simulator.PropertyCollector); ok {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.waiting == nil {
				s.waiting = map[*simulator.PropertyCollector]bool{}
			}
			s.waiting[collector] = true
		}
	}
	return nil, nil //nolint:nilnil // neither is what the simulator expects then
}

// endWaits ends the requests for changes, which last for up to a minute also without
// their client.
func (s *Server) endWaits() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for collector := range s.waiting {
		collector.CancelWaitForUpdates(&types.CancelWaitForUpdates{})
	}
}

// folder is a folder with a method that the simulator lacks.
type folder struct{ *simulator.Folder }

// UnregisterAndDestroyTask removes the folder. VMs in it are unregistered, and keep their
// files.
func (f *folder) UnregisterAndDestroyTask(ctx *simulator.Context, _ *types.UnregisterAndDestroy_Task) soap.HasFault {
	task := simulator.CreateTask(f, "unregisterAndDestroy", func(*simulator.Task) (types.AnyType, types.BaseMethodFault) {
		for _, child := range append([]types.ManagedObjectReference(nil), f.ChildEntity...) {
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
