package vsphere

import (
	"maps"
	"slices"
	"sync"

	"github.com/vmware/govmomi/vim25/types"
)

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
