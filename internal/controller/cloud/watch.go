package cloud

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/jitter"
)

const (
	// minWatchPause and maxWatchPause bound the time between the end of a watch and the
	// next one. It doubles with each that did not last.
	minWatchPause, maxWatchPause = time.Second, time.Minute
	// lasting is how many times as long as the pause before it a watch has to run after
	// its full set to have lasted.
	lasting = 4
	// setShare is how many times as long as a full set took pass until the next one.
	setShare = 4
)

// watches runs a watch of each Cloud whose client can watch: at most one at a time.
type watches struct {
	leading func() bool
	gauge   *gauges

	mu      sync.Mutex
	running map[string]*watch
	// ending has, for each Cloud, the done of its last watch that was to end and has not.
	ending map[string]chan struct{}
	// stopped is set at the end of the process.
	stopped bool
	ended   sync.WaitGroup
}

var _ manager.LeaderElectionRunnable = (*watches)(nil)

func newWatches(leading func() bool, gauge *gauges) *watches {
	return &watches{leading: leading, gauge: gauge, running: map[string]*watch{}, ending: map[string]chan struct{}{}}
}

// watch is the watch of one Cloud with one client, begun again whenever it ends.
type watch struct {
	client  cloud.Client
	watcher cloud.Watcher
	inv     *inventory.Inventory
	cancel  context.CancelFunc
	log     logr.Logger
	name    string
	all     *watches
	// running is whether the full set was reported, and setAt when its last part was.
	running bool
	setAt   time.Time
	// done is closed when the watch has ended.
	done chan struct{}
}

// NeedLeaderElection makes the manager stop the watches with its controllers.
func (*watches) NeedLeaderElection() bool { return true }

// Start stops all watches when ctx ends.
func (w *watches) Start(ctx context.Context) error {
	<-ctx.Done()
	w.shutDown()
	return nil
}

// shutDown stops all watches for good.
func (w *watches) shutDown() {
	w.mu.Lock()
	w.stopped = true
	for name := range w.running {
		w.end(name)
	}
	w.mu.Unlock()
	w.ended.Wait()
}

// keep watches a Cloud with the client that its inventory is connected with, and stops
// a watch with another client. The new watch begins when the last one has ended: they may
// have the same client.
func (w *watches) keep(name string, inv *inventory.Inventory, client cloud.Client, watcher cloud.Watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.running[name]; last != nil && last.client == client && last.inv == inv || w.stopped {
		return
	}
	w.end(name)
	ctx, cancel := context.WithCancel(context.Background())
	next := &watch{
		client: client, watcher: watcher, inv: inv, cancel: cancel, name: name, all: w, done: make(chan struct{}),
		log: ctrl.Log.WithName("watch").WithValues("cloud", name),
	}
	w.running[name] = next
	last := w.ending[name]
	w.ended.Go(func() {
		defer w.finish(next)
		if last != nil {
			<-last
		}
		next.run(ctx)
	})
}

// finish records that a watch has ended.
func (w *watches) finish(last *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(last.done)
	if w.ending[last.name] == last.done {
		delete(w.ending, last.name)
	}
}

// stop ends the watch of a Cloud.
func (w *watches) stop(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(name)
}

// stopOther ends the watch of a Cloud if it is one with another client.
func (w *watches) stopOther(name string, client cloud.Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.running[name]; last != nil && last.client != client {
		w.end(name)
		w.gauge.watching.WithLabelValues(name).Set(0)
	}
}

// end ends the watch of a Cloud in the background. The caller holds the lock.
func (w *watches) end(name string) {
	if last := w.running[name]; last != nil {
		delete(w.running, name)
		w.ending[name] = last.done
		last.cancel()
	}
}

// run watches until ctx ends. While a watch cannot be begun, the servers are listed each
// poll interval, as without one.
func (w *watch) run(ctx context.Context) {
	pause := time.Duration(0)
	for ctx.Err() == nil {
		began := time.Now()
		w.setAt = began
		var err error
		if w.all.leading == nil || w.all.leading() {
			err = w.watcher.Watch(ctx, w.report)
		}
		w.inv.WatchEnded(w.client)
		if w.running && time.Since(w.setAt) > lasting*pause {
			pause = 0
		}
		w.changed(ctx, false, err)
		pause = min(max(2*pause, minWatchPause), maxWatchPause)
		listed := setShare*w.setAt.Sub(began) - time.Since(began)
		wait(ctx, max(pause/2+jitter.Below(pause), listed, cloud.RetryAfter(err)))
	}
}

// wait waits for d or the end of ctx.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// report passes on what the cloud reports.
func (w *watch) report(change cloud.Change) error {
	if err := w.inv.Apply(w.client, change); err != nil {
		return err
	}
	if !change.Complete {
		w.count(len(change.Servers) + len(change.Gone))
		return nil
	}
	w.setAt = time.Now()
	if !change.More {
		w.changed(context.Background(), true, nil)
	}
	return nil
}

func (w *watch) count(servers int) {
	w.metrics(func(g *gauges) { g.changes.WithLabelValues(w.name).Add(float64(servers)) })
}

// changed records whether the watch runs, and logs when that changes.
func (w *watch) changed(ctx context.Context, running bool, err error) {
	if w.running != running && running {
		w.log.Info("changes of servers are reported by the cloud")
	} else if w.running != running && ctx.Err() == nil {
		w.log.Info("the cloud reports no changes of servers now, they are listed", "error", errorText(err))
	}
	w.running = running
	w.metrics(func(g *gauges) { g.watching.WithLabelValues(w.name).Set(truth(running)) })
}

// metrics sets metrics unless the Cloud is watched no more: nothing would remove them.
func (w *watch) metrics(set func(*gauges)) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if w.all.running[w.name] == w {
		set(w.all.gauge)
	}
}

func errorText(err error) string {
	if err == nil {
		return "this process does not lead"
	}
	return err.Error()
}

// watchOrNot keeps the watch of a Cloud that exists as its reconcile left it: none if
// it is paused, has not been listed with its client, or cannot report changes.
func (k *kind) watchOrNot(c *pcapi.Cloud) {
	view := k.Directory.Cloud(c.Name).View()
	watcher, can := view.Client.(cloud.Watcher)
	switch {
	case !can, !view.Capabilities.Has(cloud.Events), pcapi.Paused(c), !k.Clients.InUse(c.Name, view.Client):
		k.watches.stop(c.Name)
		k.gauge.unwatch(c.Name)
	case view.Unavailable != "":
		// A watch may go on that has begun. The snapshot may be that of another client.
		k.watches.stopOther(c.Name, view.Client)
	default:
		k.watches.keep(c.Name, k.Directory.Cloud(c.Name), view.Client, watcher)
	}
}
