package vsphere

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// polling is how a client waits for changes.
type polling struct {
	// wait is for how long the vCenter may wait for a change. A request also keeps the
	// session alive, and proxies close connections that carry nothing for longer.
	wait time.Duration
	// grace is how much later the answer may come.
	grace time.Duration
	// pause is the least time after a change before the next are asked for: VMs change
	// in several steps, and many at once.
	pause time.Duration
}

var defaultPolling = polling{wait: time.Minute, grace: 30 * time.Second, pause: 500 * time.Millisecond}

const (
	// unreadWait replaces polling.wait while there are VMs that could not be read.
	unreadWait = 5 * time.Second
	// maxUpdates bounds the VMs of an answer. A vCenter may return fewer.
	maxUpdates = 1000
)

// watchedPaths are those of vmPaths whose change is reported. The statistics change every
// few seconds.
var watchedPaths = slices.DeleteFunc(slices.Clone(vmPaths), func(path string) bool { return path == statsPath })

// feed is a property collector of the vCenter, which records what changes of the VMs in a
// view. Both are of one session.
type feed struct {
	calls   *calls
	session *session
	// grace is that of polling.
	grace time.Duration

	at              *site
	view, collector types.ManagedObjectReference
	// version is that of the last answer.
	version string
}

// updates are what an answer of the collector says.
type updates struct {
	// changed are VMs that appeared or changed, and left those that are not in the view
	// any more.
	changed, left []types.ManagedObjectReference
	// root is whether the root has changed. more is whether the next answer goes on.
	root, more bool
}

func (u updates) any() bool { return len(u.changed)+len(u.left) > 0 || u.root }

// open makes the view and the collector.
func (f *feed) open(ctx context.Context, at *site) error {
	f.at = at
	view, err := methods.CreateContainerView(ctx, at.vim, &types.CreateContainerView{
		This: *at.vim.ServiceContent.ViewManager, Container: at.root, Type: []string{"VirtualMachine"}, Recursive: true,
	})
	if err != nil {
		return err
	}
	f.view = view.Returnval
	collector, err := methods.CreatePropertyCollector(ctx, at.vim, &types.CreatePropertyCollector{This: at.vim.ServiceContent.PropertyCollector})
	if err != nil {
		return err
	}
	f.collector = collector.Returnval
	return nil
}

// filter makes the collector record changes of the VMs in the view, and of the root. The
// root is there at all times, so the first answer has a version also without VMs.
func (f *feed) filter(ctx context.Context, place Place) error {
	_, err := methods.CreateFilter(ctx, f.at.vim, &types.CreateFilter{This: f.collector, PartialUpdates: true, Spec: types.PropertyFilterSpec{
		PropSet: []types.PropertySpec{{Type: "VirtualMachine", PathSet: place.pathsOf(watchedPaths)}, {Type: "Folder", PathSet: []string{"name"}}},
		ObjectSet: []types.ObjectSpec{
			{Obj: f.view, Skip: new(true), SelectSet: []types.BaseSelectionSpec{&types.TraversalSpec{Type: "ContainerView", Path: "view"}}},
			{Obj: f.at.root},
		},
	}})
	return err
}

// errSilent is why a request ends that brought nothing.
var errSilent = errors.New("no answer")

// wait returns what has changed since the last answer. The vCenter waits for a change for
// the given time. The request is sent once, in the session of the collector.
func (f *feed) wait(ctx context.Context, wait time.Duration) (updates, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wait+f.grace, errSilent)
	defer cancel()
	res, err := methods.WaitForUpdatesEx(ctx, roundTripper(f.session.sender.poll), &types.WaitForUpdatesEx{
		This: f.collector, Version: f.version,
		Options: &types.WaitOptions{MaxWaitSeconds: new(int32(wait / time.Second)), MaxObjectUpdates: maxUpdates}, //nolint:gosec // at most a minute
	})
	switch {
	case err == nil && res.Returnval == nil:
		return updates{}, nil
	case err == nil:
		f.version = res.Returnval.Version
		return updatesOf(res.Returnval, f.at.root), nil
	case context.Cause(ctx) == errSilent: //nolint:errorlint // never wrapped
		return updates{}, refuse(watchOp, cloud.Unavailable, "the vCenter did not answer a request for changes for %s", wait+f.grace)
	case notAuthenticated(err), isGone(err), isCanceled(err):
		return updates{}, refuse(watchOp, cloud.Unavailable, "the session has ended")
	}
	return updates{}, err
}

func isCanceled(err error) bool {
	_, canceled := faultOf(err).(*types.RequestCanceled)
	return canceled
}

// updatesOf returns what an answer says in the end: a VM may appear in it more than once.
func updatesOf(set *types.UpdateSet, root types.ManagedObjectReference) updates {
	var u updates
	last := map[types.ManagedObjectReference]types.ObjectUpdateKind{}
	for _, filter := range set.FilterSet {
		for _, update := range filter.ObjectSet {
			last[update.Obj] = update.Kind
		}
		for _, missing := range filter.MissingSet {
			last[missing.Obj] = types.ObjectUpdateKindModify
		}
	}
	for ref, kind := range last {
		switch {
		case ref == root:
			u.root = true
		case kind == types.ObjectUpdateKindLeave:
			u.left = append(u.left, ref)
		default:
			u.changed = append(u.changed, ref)
		}
	}
	u.more = set.Truncated != nil && *set.Truncated && u.any() // an answer without objects has no next one
	return u
}

// close destroys the collector and the view, unless they ended with the session.
func (f *feed) close(ctx context.Context) {
	if context.Cause(ctx) == errEnded || !f.calls.usage.Begin() { //nolint:errorlint // never wrapped
		return
	}
	defer f.calls.usage.End()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), transport.CloseTimeout)
	defer cancel()
	send := roundTripper(f.session.sender.send)
	if f.collector.Value != "" {
		_, _ = methods.DestroyPropertyCollector(ctx, send, &types.DestroyPropertyCollector{This: f.collector})
	}
	if f.view.Value != "" {
		_, _ = methods.DestroyView(ctx, send, &types.DestroyView{This: f.view})
	}
}
