package vsphere

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
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

// folders makes and removes folders, and remembers those that VMs were created in.
type folders struct {
	calls    *calls
	faults   *faults
	sites    *sites
	tasks    *tasks
	log      logr.Logger
	creating creating

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
	return found.ref, ok && f.of == at && time.Since(found.at) < answerLifetime
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

// ensure returns the folder of a name below the root, and makes it if there is none.
// The caller has chosen it. It reports whether the folder was found by an earlier call.
func (f *folders) ensure(ctx context.Context, op string, at *site, name string) (in types.ManagedObjectReference, remembered bool, err error) {
	if known, ok := f.get(at, shortened(name)); ok {
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
			f.put(at, shortened(name), *found, since)
		}
		return *found, false, nil
	}
	return in, false, refuse(op, cloud.Busy, "the folder %s is made and removed by others at the same time", quote(name))
}

// endCreates asks the vCenter which of the creates in a folder have ended. Another client may
// have seen their end, or nobody.
func (f *folders) endCreates(ctx context.Context, at *site, folder types.ManagedObjectReference) error {
	for names := range slices.Chunk(f.creating.tasks(folder), maxBatch) {
		states, err := f.tasks.read(ctx, at, names)
		if err != nil {
			return err
		}
		for _, name := range names {
			if state, known := states[name]; !known || ended(&state.info) {
				f.creating.ended(name)
			}
		}
	}
	return nil
}

// remove removes a folder that a deletion has left empty. One that stays, because
// it is in use or because this fails, does no harm. A VM that somebody puts into it at the
// same moment is unregistered, and keeps its files.
func (f *folders) remove(ctx context.Context, at *site, folder types.ManagedObjectReference) {
	if folder == at.root || folder == at.templates || folder.Value == "" {
		return
	}
	found, err := retrieve(ctx, at.vim, "Folder", []string{"name", parentPath}, folder)
	if err != nil || len(found) != 1 || found[0].reference(parentPath) != at.root {
		return
	}
	if err := f.endCreates(ctx, at, folder); err != nil {
		return
	}
	name := unescaped(found[0].text("name"))
	for again := true; again; {
		done, ok := f.creating.remove(name, folder)
		if !ok {
			return
		}
		f.forget(name)
		f.removeEmpty(ctx, at, folder)
		again = done()
	}
}

// removeEmpty removes a folder if nothing is in it.
func (f *folders) removeEmpty(ctx context.Context, at *site, folder types.ManagedObjectReference) {
	found, err := retrieve(ctx, at.vim, "Folder", []string{"childEntity"}, folder)
	if err != nil || len(found) != 1 {
		return
	}
	if inside, ok := found[0].props["childEntity"].(types.ArrayOfManagedObjectReference); !ok || len(inside.ManagedObjectReference) > 0 {
		return
	}
	if _, err := methods.UnregisterAndDestroy_Task(ctx, at.vim, &types.UnregisterAndDestroy_Task{This: folder}); err != nil {
		f.log.V(1).Info("an empty folder was not removed", "fault", codeOf(faultOf(err)))
	}
}

// checkName looks for the name in its folder.
func (f *folders) checkName(ctx context.Context, name cloud.Name) error {
	op := "check name " + quote(name.Name)
	if err := checkName(op, name.Name); err != nil {
		return err
	}
	ctx, end, err := f.calls.begin(ctx, op)
	if err != nil {
		return err
	}
	defer end()
	at, err := f.sites.locate(ctx)
	if err != nil {
		return f.faults.fail(ctx, op, err)
	}
	in, err := folder(ctx, op, at, name.Folder)
	if err != nil || in == nil {
		return f.faults.failed(ctx, op, err)
	}
	found, err := child(ctx, at, *in, name.Name)
	if err != nil {
		return f.faults.fail(ctx, op, f.sites.misplaced(ctx, at, err))
	}
	if found != nil {
		return refuse(op, cloud.Taken, "the name is in use in its folder")
	}
	return nil
}
