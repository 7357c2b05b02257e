package gpuinfo

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// confirmAfter is the time between the two looks at a reservation that was over,
	// by the wall clock, when this process first observed it.
	confirmAfter = 10 * time.Second
	// clockTolerance is how far the two clocks may differ without meaning.
	clockTolerance = time.Second
)

// ends holds when reservations end by the monotonic clock, which nobody can set.
// When the wall clock is set forward, all reservations are over by it at once, and
// an expiry cannot be undone. A reservation is over only by both clocks.
type ends struct {
	// elapsed returns the time by the monotonic clock since any fixed moment.
	elapsed func() time.Duration

	mu    sync.Mutex
	known map[types.UID]end
}

// end is the end of one reservation.
type end struct {
	since, until time.Time
	// at is the end by the monotonic clock: counted from the first observation, as
	// long as the reservation was to last then by the wall clock, at most its whole
	// length and at least confirmAfter if it was over.
	at time.Duration
}

func newEnds(elapsed func() time.Duration) *ends {
	return &ends{elapsed: elapsed, known: map[types.UID]end{}}
}

// observe records the reservation that a GPUInfo has now, if it has one.
func (e *ends) observe(gpu *pcapi.GPUInfo, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	held := gpu.Status.Reservation
	if held == nil {
		delete(e.known, gpu.UID)
		return
	}
	if e.known[gpu.UID].of(held.Since.Time, held.Until.Time) {
		return
	}
	left := min(held.Until.Sub(now), held.Until.Sub(held.Since.Time))
	if left <= 0 {
		left = confirmAfter
	}
	e.known[gpu.UID] = end{since: held.Since.Time, until: held.Until.Time, at: e.elapsed() + left}
}

func (e end) of(since, until time.Time) bool { return e.since.Equal(since) && e.until.Equal(until) }

func (e *ends) forget(uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, uid)
}

// extension returns how long after its recorded end the reservation of a GPUInfo
// is over. It is 0 as long as the clocks agree. For a nil e, the wall clock counts
// alone.
func (e *ends) extension(gpu *pcapi.GPUInfo, now time.Time) time.Duration {
	held := gpu.Status.Reservation
	if held == nil {
		return 0
	}
	return e.after(gpu.UID, held.Since.Time, held.Until.Time, now)
}

// after returns what extension does for the reservation with this UID, begin and end.
func (e *ends) after(uid types.UID, since, until, now time.Time) time.Duration {
	if e == nil {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	left := until.Sub(now)
	known := e.known[uid]
	if !known.of(since, until) { // its event is on the way
		if left > 0 {
			return 0
		}
		return confirmAfter - left
	}
	monotonic := known.at - e.elapsed()
	if monotonic > 0 && monotonic-left > clockTolerance {
		return monotonic - left
	}
	return 0
}

// start returns the time at which the monotonic clock began, by the wall clock. It
// changes when the wall clock is set.
func (e *ends) start(now time.Time) time.Time { return now.Round(0).Add(-e.elapsed()) }
