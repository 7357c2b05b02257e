package reconciler

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

const (
	// maxHistories bounds the objects whose steps are remembered; those whose last step is
	// the longest ago go first.
	maxHistories = 2000
	// maxPastSteps bounds the steps that are remembered of one object.
	maxPastSteps = 8
	// maxPastMessage bounds the message of a step that is remembered, in bytes: all of them
	// together take 4 MiB at most.
	maxPastMessage = 256
)

// History remembers the last steps of the objects that changed last, for diagnostics: those
// that called the cloud or changed something. A nil one remembers nothing.
type History struct {
	mu      sync.Mutex
	objects *lru.Cache
}

// PastStep is a step that ran.
type PastStep struct {
	Step     string
	Time     time.Time
	Duration time.Duration
	// Reason and Message are those of the outcome, the message cut to 256 bytes; both are empty
	// if the step succeeded.
	Reason, Message string
}

// historyKey names an object. It has no UID: who asks for the steps of an object knows only
// its name.
type historyKey struct {
	kind string
	types.NamespacedName
}

// NewHistory returns an empty history.
func NewHistory() *History { return &History{objects: lru.New(maxHistories)} }

// Of returns the last steps of an object, the oldest first, at most eight.
func (h *History) Of(kind string, name types.NamespacedName) []PastStep {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	steps, _ := h.objects.Get(historyKey{kind, name})
	past, _ := steps.([]PastStep)
	return slices.Clone(past)
}

func (h *History) add(kind string, name types.NamespacedName, step PastStep) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	key := historyKey{kind, name}
	steps, _ := h.objects.Get(key)
	past, _ := steps.([]PastStep)
	if len(past) == maxPastSteps {
		past = slices.Delete(past, 0, 1)
	}
	h.objects.Add(key, append(past, step))
}

// forget drops the steps of an object that is gone.
func (h *History) forget(kind string, name types.NamespacedName) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.objects.Remove(historyKey{kind, name})
}
