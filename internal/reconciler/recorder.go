package reconciler

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// client-go sends each event in a goroutine of its own and keeps it for up to twelve minutes, without a bound. These
// budgets are of one kind. That of an object is the one that client-go has for its older events.
const (
	eventsOfObject, objectPerSecond       = 25, rate.Limit(1. / 300)
	eventsOfNamespace, namespacePerSecond = 5_000, rate.Limit(25)
	eventsOfAll, allPerSecond             = 20_000, rate.Limit(100)
	// maxBudgets bounds the objects, and the namespaces, whose budgets are remembered.
	maxBudgets = 10_000
)

var eventsDropped = sync.OnceValue(func() prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "privatecloud", Name: "events_dropped_total",
		Help: "Events that were not recorded, because there were too many of one object, of one namespace or in all.",
	})
	metrics.Registry.MustRegister(c)
	return c
})

// limitedRecorder records the events for which an object, its namespace and all of them have a budget.
type limitedRecorder struct {
	events.EventRecorder

	mu                  sync.Mutex
	all                 *rate.Limiter
	objects, namespaces *lru.Cache
}

// LimitEvents returns a recorder that drops events when an object has too many of them, or a namespace, or all together, and
// counts those that it drops. Objects that are written in a loop would otherwise fill the memory with their events.
func LimitEvents(to events.EventRecorder) events.EventRecorder {
	return &limitedRecorder{
		EventRecorder: to, all: rate.NewLimiter(allPerSecond, eventsOfAll), objects: lru.New(maxBudgets), namespaces: lru.New(maxBudgets),
	}
}

// Eventf records an event, or drops it.
func (r *limitedRecorder) Eventf(regarding, related runtime.Object, level, reason, action, note string, args ...any) {
	if !r.allows(regarding) {
		eventsDropped().Inc()
		return
	}
	r.EventRecorder.Eventf(regarding, related, level, reason, action, note, args...)
}

func (r *limitedRecorder) allows(regarding runtime.Object) bool {
	object, err := meta.Accessor(regarding)
	if err != nil {
		return r.all.Allow()
	}
	r.mu.Lock()
	ofObject := budget(r.objects, object.GetUID(), objectPerSecond, eventsOfObject)
	ofNamespace := budget(r.namespaces, types.UID(object.GetNamespace()), namespacePerSecond, eventsOfNamespace)
	r.mu.Unlock()
	return ofObject.Allow() && ofNamespace.Allow() && r.all.Allow()
}

func budget(of *lru.Cache, key types.UID, perSecond rate.Limit, burst int) *rate.Limiter {
	if known, ok := of.Get(key); ok {
		return known.(*rate.Limiter)
	}
	limiter := rate.NewLimiter(perSecond, burst)
	of.Add(key, limiter)
	return limiter
}
