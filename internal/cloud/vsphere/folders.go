package vsphere

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// child returns what has a name in a folder, nil if nothing does.
func child(ctx context.Context, at *site, folder types.ManagedObjectReference, name string) (*types.ManagedObjectReference, error) {
	res, err := methods.FindChild(ctx, at.vim, &types.FindChild{This: *at.vim.ServiceContent.SearchIndex, Entity: folder, Name: name})
	if err != nil {
		return nil, err
	}
	return res.Returnval, nil
}

// folder returns the folder of a name below the root, nil if there is none. The empty
// name is that of the root.
func folder(ctx context.Context, op string, at *site, name string) (*types.ManagedObjectReference, error) {
	name, err := folderName(op, name)
	if err != nil || name == "" {
		return &at.root, err
	}
	found, err := child(ctx, at, at.root, name)
	if err == nil && found != nil && found.Type != "Folder" {
		return nil, refuse(op, cloud.Rejected, "%s is no folder but a VM: choose another folder", quote(name))
	}
	return found, err
}

// folderHold is how long a folder is used without looking for it again: somebody may move it
// out of the root.
const folderHold = 10 * time.Second

// folders remembers the folders that VMs were created in.
type folders struct {
	mu    sync.Mutex
	of    *site
	known map[string]foundFolder
}

type foundFolder struct {
	ref types.ManagedObjectReference
	at  time.Time
}

func (f *folders) get(at *site, name string) (types.ManagedObjectReference, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, ok := f.known[name]
	return found.ref, ok && f.of == at && time.Since(found.at) < folderHold
}

func (f *folders) put(at *site, name string, ref types.ManagedObjectReference, since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of != at || len(f.known) >= maxFolders {
		f.of, f.known = at, map[string]foundFolder{}
	}
	f.known[name] = foundFolder{ref, since}
}

// maxFolders bounds the folders that are remembered.
const maxFolders = 10_000

func (f *folders) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known, name)
}

// ensureFolder returns the folder of a name below the root, and makes it if there is none.
// The caller has chosen it. It reports whether the folder was found by an earlier call.
func (c *Client) ensureFolder(ctx context.Context, op string, at *site, name string) (in types.ManagedObjectReference, remembered bool, err error) {
	if known, ok := c.folders.get(at, shortened(name)); ok {
		return known, true, nil
	}
	since := time.Now()
	for range 3 {
		found, err := folder(ctx, op, at, name)
		if err != nil {
			return in, false, err
		}
		if found == nil {
			res, err := methods.CreateFolder(ctx, at.vim, &types.CreateFolder{This: at.root, Name: shortened(name)})
			if _, exists := faultOf(err).(*types.DuplicateName); exists { // another call made it
				continue
			}
			if err != nil {
				return in, false, err
			}
			found = &res.Returnval
		}
		if *found != at.root {
			c.folders.put(at, shortened(name), *found, since)
		}
		return *found, false, nil
	}
	return in, false, refuse(op, cloud.Busy, "the folder %s is made and removed by others at the same time", quote(name))
}

// creating has the creates that may still put a VM into a folder, so that no folder is
// removed under them.
type creating struct {
	mu sync.Mutex
	// choosing counts the creates that look for a folder or send a clone into it, by its
	// name. removing has the folders that are being removed, and whether another deletion
	// has ended in them meanwhile.
	choosing map[string]int
	removing map[string]bool
	// folders has the tasks that make a VM and are not known to have ended, by the folder.
	folders map[string]map[string]bool
}

// choose keeps a folder from being removed until done is called. It reports false if it
// is being removed.
func (c *creating) choose(name string) (done func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, removing := c.removing[name]; removing {
		return nil, false
	}
	if c.choosing == nil {
		c.choosing = map[string]int{}
	}
	c.choosing[name]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.choosing[name]--
		if c.choosing[name] == 0 {
			delete(c.choosing, name)
		}
	}, true
}

// remove keeps creates from choosing a folder until done is called. It reports false
// if one has chosen it, or if it is being removed: then done of that removal reports that the
// folder has to be looked at again.
func (c *creating) remove(name string, folder types.ManagedObjectReference) (done func() (again bool), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, removing := c.removing[name]; removing {
		c.removing[name] = true
		return nil, false
	}
	if c.choosing[name] > 0 || len(c.folders[folder.Value]) > 0 {
		return nil, false
	}
	if c.removing == nil {
		c.removing = map[string]bool{}
	}
	c.removing[name] = false
	return func() (again bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		again = c.removing[name]
		delete(c.removing, name)
		return again
	}, true
}

// began records a task that creates a VM in a folder.
func (c *creating) began(folder types.ManagedObjectReference, task string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.folders == nil {
		c.folders = map[string]map[string]bool{}
	}
	if c.folders[folder.Value] == nil {
		c.folders[folder.Value] = map[string]bool{}
	}
	c.folders[folder.Value][task] = true
}

// tasks returns those that make a VM in a folder and are not known to have ended.
func (c *creating) tasks(folder types.ManagedObjectReference) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.folders[folder.Value]))
}

// ended records that a task has ended.
func (c *creating) ended(task string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for folder, tasks := range c.folders {
		delete(tasks, task)
		if len(tasks) == 0 {
			delete(c.folders, folder)
		}
	}
}

// endCreates asks the vCenter which of the creates in a folder have ended. Another client may
// have seen their end, or nobody.
func (c *Client) endCreates(ctx context.Context, at *site, folder types.ManagedObjectReference) error {
	for names := range slices.Chunk(c.creating.tasks(folder), maxBatch) {
		states, err := c.readTasks(ctx, at, names)
		if err != nil {
			return err
		}
		for _, name := range names {
			if state, known := states[name]; !known || ended(&state.info) {
				c.creating.ended(name)
			}
		}
	}
	return nil
}

// removeFolder removes a folder that a deletion has left empty. One that stays, because
// it is in use or because this fails, does no harm. A VM that somebody puts into it at the
// same moment is unregistered, and keeps its files.
func (c *Client) removeFolder(ctx context.Context, at *site, folder types.ManagedObjectReference) {
	if folder == at.root || folder == at.templates || folder.Value == "" {
		return
	}
	found, err := retrieve(ctx, at.vim, "Folder", []string{"name", parentPath}, folder)
	if err != nil || len(found) != 1 || found[0].reference(parentPath) != at.root {
		return
	}
	if err := c.endCreates(ctx, at, folder); err != nil {
		return
	}
	name := unescaped(found[0].text("name"))
	for again := true; again; {
		done, ok := c.creating.remove(name, folder)
		if !ok {
			return
		}
		c.folders.forget(name)
		c.removeEmpty(ctx, at, folder)
		again = done()
	}
}

// removeEmpty removes a folder if nothing is in it.
func (c *Client) removeEmpty(ctx context.Context, at *site, folder types.ManagedObjectReference) {
	found, err := retrieve(ctx, at.vim, "Folder", []string{"childEntity"}, folder)
	if err != nil || len(found) != 1 {
		return
	}
	if inside, ok := found[0].props["childEntity"].(types.ArrayOfManagedObjectReference); !ok || len(inside.ManagedObjectReference) > 0 {
		return
	}
	if _, err := methods.UnregisterAndDestroy_Task(ctx, at.vim, &types.UnregisterAndDestroy_Task{This: folder}); err != nil {
		c.log.V(1).Info("an empty folder was not removed", "fault", codeOf(faultOf(err)))
	}
}
