// Package objectmetrics counts the objects of all kinds for Prometheus, from the events
// of the cache.
//
//	reporter.go   which objects are reported, and their Clouds
//	state.go      what is counted of an object (pure)
//	tracker.go    the counts
//	collector.go  the metrics
package objectmetrics

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
)

// reporter reports the objects of one manager while it leads.
type reporter struct {
	cache     cache.Cache
	reader    client.Reader
	scope     tenancy.Scope
	tracker   *tracker
	collector *collector
}

// SetupWithManager makes the Manager report the objects whose Cloud is in the scope,
// while it leads: the others would report the same objects again.
func SetupWithManager(mgr manager.Manager, scope tenancy.Scope) error {
	r := newReporter(mgr.GetCache(), scope, shared)
	r.cache = mgr.GetCache()
	if err := mgr.Add(r); err != nil {
		return fmt.Errorf("add what reports objects: %w", err)
	}
	return nil
}

func newReporter(reader client.Reader, scope tenancy.Scope, to *collector) *reporter {
	return &reporter{reader: reader, scope: scope, tracker: newTracker(), collector: to}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (r *reporter) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (r *reporter) Start(ctx context.Context) error {
	for _, kind := range []conditioned{&pcapi.VM{}, &pcapi.VmGroup{}, &pcapi.Network{}, &pcapi.VMSnapshot{}, &pcapi.GPUInfo{}, &pcapi.Cloud{}} {
		informer, err := r.cache.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watch %T for metrics: %w", kind, err)
		}
		if _, err := informer.AddEventHandler(r); err != nil {
			return fmt.Errorf("watch %T for metrics: %w", kind, err)
		}
	}
	r.collector.add(r)
	defer r.collector.remove(r)
	<-ctx.Done()
	return nil
}

// OnAdd implements ResourceEventHandler of client-go.
func (r *reporter) OnAdd(obj any, isInInitialList bool) {
	if o, ok := obj.(conditioned); ok {
		r.put(o, isInInitialList)
	}
}

// OnUpdate implements ResourceEventHandler of client-go.
func (r *reporter) OnUpdate(before, after any) {
	was, ok := before.(conditioned)
	is, also := after.(conditioned)
	if !ok || !also {
		return
	}
	if was.GetUID() != is.GetUID() { // the watch did not show the deletion
		r.tracker.remove(was.GetUID())
	}
	r.put(is, false)
}

// OnDelete implements ResourceEventHandler of client-go.
func (r *reporter) OnDelete(obj any) {
	if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	o, ok := obj.(conditioned)
	if !ok {
		return
	}
	r.tracker.remove(o.GetUID())
	if c, ok := o.(*pcapi.Cloud); ok {
		r.collector.forgetCloud(c.Name)
	}
}

func (r *reporter) put(o conditioned, initial bool) {
	s := stateOf(o)
	firstReady := r.tracker.put(s, initial)
	if c, ok := o.(*pcapi.Cloud); ok {
		if r.scope.Selects(c.Labels) {
			r.collector.expectCloud(c.Name)
		} else {
			r.collector.forgetCloud(c.Name)
		}
	}
	if !firstReady {
		return
	}
	if cloud, owned := r.resolve(s.namespace, s.cloud); owned {
		r.collector.becameReady(s.kind, cloud, s.readySince.Sub(s.created))
	}
}

// sums adds the objects of the scope.
func (r *reporter) sums(sums totals) {
	type from struct{ namespace, cloud string }
	type to struct {
		cloud string
		owned bool
	}
	resolved := map[from]to{}
	r.tracker.sums(func(namespace, cloud string) (string, bool) {
		known, ok := resolved[from{namespace, cloud}]
		if !ok {
			known.cloud, known.owned = r.resolve(namespace, cloud)
			resolved[from{namespace, cloud}] = known
		}
		return known.cloud, known.owned
	}, sums)
}

// resolve returns the Cloud of an object, and whether it is in the scope. The name of a
// Cloud that does not exist is empty: users choose it, and each would make a series. So
// is the name of one that the namespace may not use: its objects do not concern the Cloud.
func (r *reporter) resolve(namespace, cloud string) (name string, owned bool) {
	ctx := context.Background() // all reads are from the cache
	if cloud == "" {
		var err error
		if cloud, err = tenancy.CloudFor(ctx, r.reader, namespace, nil); err != nil {
			return "", r.scope.Selects(nil)
		}
	}
	var c pcapi.Cloud
	if err := r.reader.Get(ctx, client.ObjectKey{Name: cloud}, &c, client.UnsafeDisableDeepCopy); err != nil {
		return "", r.scope.Selects(nil)
	}
	owned = r.scope.Selects(c.Labels)
	if namespace == "" { // the Cloud itself
		return cloud, owned
	}
	if allowed, err := tenancy.Allowed(ctx, r.reader, namespace, cloud); err != nil || !allowed {
		return "", owned
	}
	return cloud, owned
}
