package vcsim

import (
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// gather is how long updates are collected before they are returned.
const gather = 20 * time.Millisecond

// collector answers requests for the changes of the VMs in a view in place of the
// simulator's own property collector. That one reads all VMs anew for each update of any
// object, drops VMs that leave the view while others enter it, and does not notice that a
// VM is moved or a session ends.
type collector struct {
	mo.PropertyCollector
	// root is the folder with the VMs, and paths are what is reported of them.
	root  types.ManagedObjectReference
	paths []string
	spec  types.ManagedObjectReference

	mu sync.Mutex
	// known are the objects that the client knows, and dirty those that may have changed.
	known, dirty map[types.ManagedObjectReference]bool
	// changed is closed when an object becomes dirty, and ended with the session.
	changed, ended chan struct{}
}

// newCollector returns the collector of a reference, nil if it has no filter of VMs in a view.
func newCollector(ctx *simulator.Context, of *simulator.PropertyCollector) *collector {
	c := &collector{changed: make(chan struct{}), ended: make(chan struct{}), known: map[types.ManagedObjectReference]bool{}, dirty: map[types.ManagedObjectReference]bool{}}
	c.Self = of.Self
	for _, ref := range of.Filter {
		filter, ok := ctx.Session.Get(ref).(*simulator.PropertyFilter)
		if !ok {
			continue
		}
		ctx.Map.RemoveHandler(filter)
		for _, set := range filter.Spec.ObjectSet {
			if view, ok := ctx.Session.Get(set.Obj).(*simulator.ContainerView); ok {
				c.root, c.spec = view.Container, ref
				// Its search for each new VM makes clones slow, and nothing reads it.
				ctx.Map.RemoveHandler(view)
			}
		}
		for _, set := range filter.Spec.PropSet {
			if set.Type == "VirtualMachine" {
				c.paths = set.PathSet
			}
		}
	}
	if c.root.Value == "" {
		return nil
	}
	return c
}

// mark records that an object may have changed.
func (c *collector) mark(ref types.ManagedObjectReference) {
	if ref.Type != "VirtualMachine" && ref != c.root {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirty[ref] = true
	close(c.changed)
	c.changed = make(chan struct{})
}

// PutObject is called for each new object.
func (c *collector) PutObject(_ *simulator.Context, o mo.Reference) { c.mark(o.Reference()) }

// RemoveObject is called for each object that is removed.
func (c *collector) RemoveObject(_ *simulator.Context, ref types.ManagedObjectReference) {
	c.mark(ref)
}

// UpdateObject is called for each object that changes.
func (c *collector) UpdateObject(_ *simulator.Context, o mo.Reference, changes []types.PropertyChange) {
	for _, change := range changes {
		for _, path := range c.paths {
			if strings.HasPrefix(change.Name, path) || strings.HasPrefix(path, change.Name) {
				c.mark(o.Reference())
				return
			}
		}
	}
}

// Lock and Unlock do nothing: a request that waits must not keep others from being served.
func (*collector) Lock() {}

// Unlock does nothing.
func (*collector) Unlock() {}

// DestroyPropertyCollector ends the collector and its requests.
func (c *collector) DestroyPropertyCollector(ctx *simulator.Context, _ *types.DestroyPropertyCollector) soap.HasFault {
	ctx.Map.RemoveHandler(c)
	ctx.Session.Remove(ctx, c.Self)
	c.end()
	return &methods.DestroyPropertyCollectorBody{Res: &types.DestroyPropertyCollectorResponse{}}
}

// end ends the requests under way, as the end of a session does.
func (c *collector) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.ended)
	c.ended = make(chan struct{})
}

// WaitForUpdatesEx returns the objects that have changed, without their properties.
func (c *collector) WaitForUpdatesEx(ctx *simulator.Context, r *types.WaitForUpdatesEx) soap.HasFault {
	wait, most := time.Duration(*r.Options.MaxWaitSeconds)*time.Second, int(r.Options.MaxObjectUpdates)
	if r.Version == "" {
		ctx.Map.AddHandler(c)
		for _, vm := range ctx.Map.All("VirtualMachine") {
			c.mark(vm.Reference())
		}
		c.mark(c.root)
	}
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	body, timeout := &methods.WaitForUpdatesExBody{Res: &types.WaitForUpdatesExResponse{}}, time.After(wait)
	for {
		c.mu.Lock()
		changed := c.changed
		c.mu.Unlock()
		if set := c.take(ctx, most); set != nil {
			body.Res.Returnval = set
			return body
		}
		if wait == 0 {
			return body
		}
		select {
		case <-changed:
			<-time.After(gather)
		case <-timeout:
			return body
		case <-ended:
			return &methods.WaitForUpdatesExBody{Fault_: simulator.Fault("", &types.RequestCanceled{})}
		}
	}
}

// take returns what has changed of at most most objects, nil if nothing has.
func (c *collector) take(ctx *simulator.Context, most int) *types.UpdateSet {
	c.mu.Lock()
	var refs []types.ManagedObjectReference
	for ref := range c.dirty {
		if len(refs) == most {
			break
		}
		refs = append(refs, ref)
		delete(c.dirty, ref)
	}
	more := len(c.dirty) > 0
	c.mu.Unlock()
	update := types.PropertyFilterUpdate{Filter: c.spec}
	for _, ref := range refs {
		is, was := c.selects(ctx, ref), c.known[ref]
		kind := types.ObjectUpdateKindModify
		switch {
		case is && !was:
			kind, c.known[ref] = types.ObjectUpdateKindEnter, true
		case !is && was:
			kind = types.ObjectUpdateKindLeave
			delete(c.known, ref)
		case !is:
			continue
		}
		update.ObjectSet = append(update.ObjectSet, types.ObjectUpdate{Obj: ref, Kind: kind})
	}
	switch {
	case len(update.ObjectSet) == 0 && more:
		return c.take(ctx, most)
	case len(update.ObjectSet) == 0:
		return nil
	}
	return &types.UpdateSet{Version: "1", FilterSet: []types.PropertyFilterUpdate{update}, Truncated: new(more)}
}

// selects reports whether an object is the root, or a VM below it.
func (c *collector) selects(ctx *simulator.Context, ref types.ManagedObjectReference) bool {
	return below(ctx, ref, c.root)
}

// below reports whether an object is another one, or below it.
func below(ctx *simulator.Context, ref, top types.ManagedObjectReference) bool {
	for entity, ok := ctx.Map.Get(ref).(mo.Entity); ok; {
		if entity.Reference() == top {
			return true
		}
		var parent *types.ManagedObjectReference
		ctx.WithLock(entity, func() { parent = entity.Entity().Parent })
		if parent == nil {
			return false
		}
		entity, ok = ctx.Map.Get(*parent).(mo.Entity)
	}
	return false
}
