package vsphere

import (
	"context"
	"slices"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const watchOp = "watch servers"

// watches reports changes of servers.
type watches struct {
	calls   *calls
	faults  *faults
	session *session
	sites   *sites
	vms     *vms
	tasks   *tasks
	place   Place
	polling polling
}

// watch reports the VMs below the root, and then what changes of them. A property
// collector of the vCenter says which VMs have changed. They are read again as a listing
// reads them, so that the watch keeps no more of a VM than its id. View and collector end
// with the session, and so does the watch.
func (w *watches) watch(ctx context.Context, report func(cloud.Change) error) error {
	ctx, cancel := w.calls.usage.UntilClosed(cloudWide(ctx))
	defer cancel()
	one := &watch{
		of: w, report: report, unread: map[types.ManagedObjectReference]bool{},
		feed: feed{calls: w.calls, session: w.session, grace: w.polling.grace},
	}
	err := one.run(ctx)
	if own, ok := err.(*reportError); ok { //nolint:errorlint // never wrapped
		return w.reportFailed(own.error)
	}
	return w.faults.fail(ctx, watchOp, err)
}

// reportError is an error of the caller.
type reportError struct{ error }

// reportFailed returns an error of the caller as one of the call.
func (w *watches) reportFailed(err error) error {
	if cloud.KindOf(err) != "" {
		return err
	}
	e := refuse(watchOp, cloud.Unavailable, "%s", w.faults.redactor.Redact(transport.Truncate(transport.Printable(err.Error()), maxText)))
	e.Err = err
	return e
}

// watch is one call of Watch.
type watch struct {
	of     *watches
	report func(cloud.Change) error
	at     *site
	feed   feed
	// ids has the ids of the VMs that were reported and are in the view.
	ids refs
	// unread are VMs that have changed and that the vCenter could not return.
	unread map[types.ManagedObjectReference]bool
}

func (w *watch) run(ctx context.Context) (err error) {
	if err := w.call(ctx, func(ctx context.Context) error {
		w.at, err = w.of.sites.locate(ctx)
		return err
	}); err != nil {
		return err
	}
	defer func() { w.feed.close(ctx) }()
	if err := w.call(ctx, func(ctx context.Context) error { return w.feed.open(ctx, w.at) }); err != nil {
		return w.of.sites.misplaced(ctx, w.at, err)
	}
	ctx, cancel := w.of.session.untilEnded(ctx)
	defer cancel()
	if err = w.begin(ctx); err == nil {
		err = w.follow(ctx)
	}
	if context.Cause(ctx) == errEnded { //nolint:errorlint // never wrapped
		return refuse(watchOp, cloud.Unavailable, "the session has ended")
	}
	return err
}

// call makes calls within the client's timeout.
func (w *watch) call(ctx context.Context, do func(context.Context) error) error {
	ctx, end, err := w.of.calls.begin(ctx, watchOp)
	if err != nil {
		return err
	}
	defer end()
	return do(ctx)
}

// send passes a change on.
func (w *watch) send(change cloud.Change) error {
	if err := w.report(change); err != nil {
		return &reportError{err}
	}
	return nil
}

// begin makes the vCenter record changes from now on, and reports the full set, which is
// read after that.
func (w *watch) begin(ctx context.Context) error {
	if err := w.call(ctx, func(ctx context.Context) error { return w.feed.filter(ctx, w.of.place) }); err != nil {
		return err
	}
	for known := 0; ; {
		got, err := w.feed.wait(ctx, 0)
		if err != nil {
			return err
		}
		if known += len(got.changed); known > maxObjects {
			return errTooLarge
		}
		if !got.more {
			break
		}
	}
	asOf, token := time.Now(), ""
	for range maxPages {
		var page []cloud.Server
		if err := w.call(ctx, func(ctx context.Context) error {
			vms, next, err := w.of.vms.page(ctx, w.at, maxLimit, token)
			if err == nil {
				token = next
				page, err = w.servers(ctx, vms)
			}
			return err
		}); err != nil {
			return w.of.sites.misplaced(ctx, w.at, err)
		}
		if err := w.send(cloud.Change{AsOf: asOf, Complete: true, More: token != "", Servers: page}); err != nil || token == "" {
			return err
		}
	}
	return errTooLarge
}

// servers returns VMs as servers, and remembers their ids.
func (w *watch) servers(ctx context.Context, vms []entity) ([]cloud.Server, error) {
	for _, vm := range vms {
		if id := w.of.vms.idOf(vm); id != "" {
			w.ids.put(vm.ref, id)
		}
	}
	if w.ids.count() > maxObjects {
		return nil, errTooLarge
	}
	return w.of.vms.servers(ctx, w.at, vms)
}

// follow reports what changes. After a change it asks again at once whether there are
// more: the answer says up to when all was reported.
func (w *watch) follow(ctx context.Context) error {
	for wait := w.of.polling.wait; ; {
		asked := time.Now()
		got, err := w.feed.wait(ctx, wait)
		if err != nil {
			return err
		}
		change := cloud.Change{}
		if err := w.call(ctx, func(ctx context.Context) error { return w.read(ctx, got, &change) }); err != nil {
			return w.of.sites.misplaced(ctx, w.at, err)
		}
		if got.any() {
			w.of.tasks.batch.expire() // a task may have ended, for which the change makes the caller look
		}
		if !got.more && len(w.unread) == 0 {
			change.AsOf = asked
		}
		if !change.AsOf.IsZero() || len(change.Servers)+len(change.Gone) > 0 {
			if err := w.send(change); err != nil {
				return err
			}
		}
		switch {
		case got.more:
			wait = 0
		case len(w.unread) > 0:
			wait = min(w.of.polling.wait, unreadWait)
		case got.any():
			wait = 0
			if !transport.Sleep(ctx, w.of.polling.pause) {
				return context.Cause(ctx)
			}
		default:
			wait = w.of.polling.wait
		}
	}
}

// read reads the VMs that have changed. VMs are gone only if the root, which they are not
// below any more, can be read: to an account that may not, the vCenter shows no VM.
func (w *watch) read(ctx context.Context, got updates, change *cloud.Change) error {
	for _, ref := range got.changed {
		w.unread[ref] = true
	}
	for _, ref := range got.left {
		delete(w.unread, ref)
	}
	refs := make([]types.ManagedObjectReference, 0, len(w.unread))
	for ref := range w.unread {
		refs = append(refs, ref)
	}
	left := got.left
	for chunk := range slices.Chunk(refs, maxLimit) {
		vms, templates, err := w.readVMs(ctx, chunk)
		if err != nil {
			return err
		}
		left = append(left, templates...)
		servers, err := w.servers(ctx, vms)
		if err != nil {
			return err
		}
		change.Servers = append(change.Servers, servers...)
	}
	if len(left) == 0 && !got.root {
		return nil
	}
	if err := readableRoot(ctx, w.at); err != nil {
		return err
	}
	change.Gone = w.gone(left)
	return nil
}

// readVMs reads VMs as a listing does. It returns those that are complete, and those that
// have become templates. The others stay unread.
func (w *watch) readVMs(ctx context.Context, refs []types.ManagedObjectReference) (vms []entity, templates []types.ManagedObjectReference, err error) {
	spec := types.PropertyFilterSpec{
		PropSet: []types.PropertySpec{{Type: "VirtualMachine", PathSet: w.of.place.pathsOf(vmPaths)}}, ReportMissingObjectsInResults: new(true),
	}
	for _, ref := range refs {
		spec.ObjectSet = append(spec.ObjectSet, types.ObjectSpec{Obj: ref})
	}
	found, err := collect(ctx, w.at.vim, spec)
	if err != nil {
		return nil, nil, err
	}
	unreadable := map[types.ManagedObjectReference]bool{}
	for _, vm := range found {
		switch {
		case vm.deleted():
		case vm.flag(templatePath):
			templates = append(templates, vm.ref)
		case w.of.vms.identifiable(vm) != nil:
			unreadable[vm.ref] = true
		default:
			vms = append(vms, vm)
		}
	}
	for _, ref := range refs {
		if !unreadable[ref] {
			delete(w.unread, ref)
		}
	}
	return vms, templates, nil
}

// gone returns the ids of VMs that are not in the view any more. An id that another VM
// has is not gone: a VM that is registered again is another one with the same id.
func (w *watch) gone(left []types.ManagedObjectReference) []string {
	var ids []string
	for _, ref := range left {
		if id := w.ids.id(ref); id != "" {
			ids = append(ids, id)
			w.ids.forget(ref)
		}
	}
	return slices.DeleteFunc(ids, func(id string) bool {
		_, held := w.ids.find(id)
		return held
	})
}
