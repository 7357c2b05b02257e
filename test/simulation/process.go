package simulation

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/setup"
)

// kinds are those that the API server and the caches hold.
var kinds = []schema.GroupVersionKind{
	cloudKind, pcapi.GroupVersion.WithKind("VMClass"), networkKind, vmKind,
	snapshotKind, pcapi.GroupVersion.WithKind("VMConsoleRequest"), groupKind, pcapi.GroupVersion.WithKind("GPUInfo"),
	namespaceKind, corev1.SchemeGroupVersion.WithKind("Node"),
}

var (
	cloudKind     = pcapi.GroupVersion.WithKind("Cloud")
	vmKind        = pcapi.GroupVersion.WithKind("VM")
	networkKind   = pcapi.GroupVersion.WithKind("Network")
	snapshotKind  = pcapi.GroupVersion.WithKind("VMSnapshot")
	groupKind     = pcapi.GroupVersion.WithKind("VmGroup")
	namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")
)

// workers is how many requests a controller of a process works on at a time, at most.
const workers = 3

// process is an operator: the controllers of a manager, which knows nothing of those before it.
type process struct {
	manager.Manager

	world  *world
	name   string
	stop   context.CancelFunc
	cache  *objectCache
	client *objectClient

	// runnables are what the manager starts, of which running have not ended.
	runnables []manager.Runnable
	running   atomic.Int32

	mu     sync.Mutex
	queues []*queue
	// listings are when the last complete listing of each Cloud began.
	listings map[string]time.Time

	// renewed is when it last renewed the lease, and stopped when it was asked to stop; zero if it
	// was not.
	renewed, stopped time.Time
	// made are the servers that its creates made, and disturbed is when a call of it failed last.
	made      []made
	disturbed time.Time
	// dead: it has no effect any more. Paused: it gets no answers, changes and requests, though its
	// timers run. Starting: its calls are made at once.
	dead, paused, starting bool
	// reconciled are the names of the objects that it has reconciled since it listed the cloud.
	reconciled map[client.ObjectKey]bool
	// found is the id of the server that a GET has shown to it although the listing leaves it out.
	found string
	// history tells apart what processes have seen, in a search.
	history uint64
}

// lease is that of leader election.
type lease struct {
	holder  *process
	renewed time.Time
}

const (
	// leaseTerm is how long a process may act after it renewed the lease, and leaseDuration when
	// another one may acquire it.
	leaseTerm, leaseDuration = 10 * time.Second, 15 * time.Second
)

// startProcess starts an operator, which holds the lease.
func startProcess(w *world) *process {
	w.started++
	ctx, stop := context.WithCancel(context.Background())
	p := &process{world: w, name: fmt.Sprintf("manager-%d", w.started), stop: stop, starting: true, listings: map[string]time.Time{}, reconciled: map[client.ObjectKey]bool{}}
	p.client = &objectClient{process: p, written: map[schema.GroupVersionKind]map[client.ObjectKey]int{}, writing: map[*write]bool{}}
	p.cache = newObjectCache(w.api, transforms(w.api))
	p.note(p.name, w.history)
	p.renewed = time.Now()
	w.lease = lease{holder: p, renewed: p.renewed}
	err := setup.Controllers(ctx, p, setup.Options{
		Namespace: operatorNamespace, Workers: 1, Leading: p.leads, Alone: func() bool { return !w.profile.unled && p.leads() },
		Dialers: map[pcapi.CloudType]clouds.Dialer{pcapi.CloudTypeREST: clouds.DialFunc(func(c *pcapi.Cloud, _ *corev1.Secret) (cloud.Client, error) {
			return &cloudClient{process: p, model: w.cloud, name: c.Name}, nil
		})},
	})
	if err != nil {
		panic(err)
	}
	p.starting = false
	for _, r := range p.runnables {
		p.running.Add(1)
		go func() {
			defer p.running.Add(-1)
			_ = r.Start(ctx)
		}()
	}
	return p
}

// note adds something that the process sees to its history.
func (p *process) note(seen ...any) {
	if p.world.hashing {
		p.history = mixed(p.history, seen...)
	}
}

// leads reports whether the process may act, as far as it knows: it renewed the lease within its term.
func (p *process) leads() bool {
	return !p.dead && (p.world.profile.unled || time.Since(p.renewed) < leaseTerm)
}

// listed records that a listing of a Cloud is complete.
func (p *process) listed(cloudName string, begun time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listings[cloudName] = begun
}

// listedSince returns how many Clouds were listed since a time.
func (p *process) listedSince(since time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, begun := range p.listings {
		if begun.After(since) {
			n++
		}
	}
	return n
}

// transforms returns what the operator's manager makes of objects before they are cached.
func transforms(api *apiServer) map[schema.GroupVersionKind]toolscache.TransformFunc {
	var options ctrl.Options
	setup.Caches(&options)
	all := map[schema.GroupVersionKind]toolscache.TransformFunc{}
	for object, by := range options.Cache.ByObject {
		if by.Transform != nil {
			all[api.kindOf(object)] = by.Transform
		}
	}
	return all
}

// kill ends a process at once. Requests that are on their way may still take effect.
func (p *process) kill() {
	s := &p.world.calls
	s.mu.Lock()
	p.dead, p.paused = true, false
	open := slices.SortedFunc(slices.Values(s.open), byName)
	s.mu.Unlock()
	for _, c := range open {
		if c.process == p {
			s.abandon(c)
		}
	}
	p.stop()
	p.mu.Lock()
	queues := slices.Clone(p.queues)
	p.mu.Unlock()
	for _, q := range queues {
		q.ShutDown()
	}
}

func (p *process) Add(r manager.Runnable) error {
	if controller, ok := r.(reconcile.Reconciler); ok {
		// The fields are exported, their type is not.
		fields := reflect.ValueOf(controller).Elem()
		configured := fields.FieldByName("MaxConcurrentReconciles")
		configured.SetInt(min(configured.Int(), workers))
		fields.FieldByName("NewQueue").Set(reflect.ValueOf(p.newQueue))
	}
	p.runnables = append(p.runnables, r)
	return nil
}

func (p *process) newQueue(controller string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	q := newQueue(controller, limiter)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues = append(p.queues, q)
	slices.SortFunc(p.queues, func(a, b *queue) int { return cmp.Compare(a.controller, b.controller) })
	return q
}

func (p *process) GetClient() client.Client                     { return p.client }
func (p *process) GetAPIReader() client.Reader                  { return liveReader{process: p} }
func (p *process) GetCache() cache.Cache                        { return p.cache }
func (p *process) GetFieldIndexer() client.FieldIndexer         { return p.cache }
func (p *process) GetScheme() *runtime.Scheme                   { return p.world.api.scheme }
func (*process) GetRESTMapper() meta.RESTMapper                 { return nil }
func (*process) AddReadyzCheck(string, healthz.Checker) error   { return nil }
func (*process) GetLogger() logr.Logger                         { return logr.Discard() }
func (*process) GetEventRecorder(string) recorder.EventRecorder { return &events.FakeRecorder{} }
func (*process) GetControllerOptions() config.Controller {
	return config.Controller{SkipNameValidation: new(true), RecoverPanic: new(false)}
}
