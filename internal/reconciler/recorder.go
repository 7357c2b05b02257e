package reconciler

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// client-go sends each event in a goroutine of its own and keeps it for up to twelve minutes, without a bound. The budget
// of an object is the one that client-go has for its older events. Warnings have budgets of their own, so that many
// events of the usual course do not hide them. A namespace has a few events whatever others record.
const (
	eventsOfObject, objectPerSecond       = 25, rate.Limit(1. / 300)
	eventsOfNamespace, namespacePerSecond = 2_500, rate.Limit(10)
	eventsOfAll, allPerSecond             = 10_000, rate.Limit(40)
	reservedEvents, reservedPerSecond     = 100, rate.Limit(1)
	// maxBudgets bounds the objects, and the namespaces, whose budgets are remembered.
	maxBudgets = 10_000
)

// budgets are those of the process: of all kinds.
var budgets = sync.OnceValue(newEventBudgets)

var eventsDropped = sync.OnceValue(func() prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "privatecloud", Name: "events_dropped_total",
		Help: "Events that were not recorded, because there were too many of one object, of one namespace or in all.",
	})
	metrics.Registry.MustRegister(c)
	return c
})

// eventBudgets are what objects, namespaces and all of them may record.
type eventBudgets struct {
	mu sync.Mutex
	// all are the budgets of events by level.
	all map[string]*rate.Limiter
	// of are the budgets by budgetKey.
	of *lru.Cache
}

// budgetKey names the budget of an object or of a namespace for events of a level; reserved is the one that no other
// namespace uses up.
type budgetKey struct {
	uid              types.UID
	namespace, level string
	reserved         bool
}

func newEventBudgets() *eventBudgets {
	all := map[string]*rate.Limiter{}
	for _, level := range []string{corev1.EventTypeNormal, corev1.EventTypeWarning} {
		all[level] = rate.NewLimiter(allPerSecond, eventsOfAll)
	}
	return &eventBudgets{all: all, of: lru.New(maxBudgets)}
}

// limitedRecorder records the events for which there is a budget.
type limitedRecorder struct {
	events.EventRecorder
	budgets *eventBudgets
}

// LimitEvents returns a recorder that drops events when an object has too many of them, or a namespace, or all objects of the
// process, and counts those that it drops. Objects that are written in a loop would otherwise fill the memory with their events.
func LimitEvents(to events.EventRecorder) events.EventRecorder {
	eventsDropped() // the metric exists from the start
	return &limitedRecorder{EventRecorder: to, budgets: budgets()}
}

// Eventf records an event, or drops it.
func (r *limitedRecorder) Eventf(regarding, related runtime.Object, level, reason, action, note string, args ...any) {
	if !r.budgets.allow(regarding, level) {
		eventsDropped().Inc()
		return
	}
	r.EventRecorder.Eventf(regarding, related, level, reason, action, note, args...)
}

func (b *eventBudgets) allow(regarding runtime.Object, level string) bool {
	all, known := b.all[level]
	object, err := meta.Accessor(regarding)
	if err != nil || !known {
		return false
	}
	namespace := object.GetNamespace()
	if !b.budget(budgetKey{uid: object.GetUID(), level: level}, objectPerSecond, eventsOfObject).Allow() {
		return false
	}
	if b.budget(budgetKey{namespace: namespace, level: level, reserved: true}, reservedPerSecond, reservedEvents).Allow() {
		return true
	}
	return b.budget(budgetKey{namespace: namespace, level: level}, namespacePerSecond, eventsOfNamespace).Allow() && all.Allow()
}

func (b *eventBudgets) budget(key budgetKey, perSecond rate.Limit, burst int) *rate.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known, ok := b.of.Get(key); ok {
		return known.(*rate.Limiter)
	}
	limiter := rate.NewLimiter(perSecond, burst)
	b.of.Add(key, limiter)
	return limiter
}
