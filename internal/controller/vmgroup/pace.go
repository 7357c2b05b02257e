package vmgroup

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

const (
	// maxInFlight bounds the writes of one step that are under way at a time.
	maxInFlight = 16
	// busyInFlight is how many may be under way however busy the API server is.
	busyInFlight = 6
	// maxChanges bounds the members that one step changes, and maxStep the time after
	// which it begins no further change, so that the status shows progress at any pace.
	maxChanges = 500
	maxStep    = 5 * time.Second
	// continueAfter is the time until the reconcile that changes the rest.
	continueAfter = 10 * time.Millisecond
	// busyFactor is how many times as long as the quickest write one takes when the API server is
	// busy: more writes under way would then only wait there, and make those of others wait.
	busyFactor = 3
	// minWait is how long a step waits that the API server does not let go on. The shortest
	// Retry-After is a second.
	minWait = time.Second
)

// pace is how many writes of a step may be under way. It begins with one, grows with each
// write, and is halved, down to busyInFlight, when writes take longer than the quickest one:
// when the API server is busy, answers 429, or lets them wait as API priority and fairness
// does. An admission webhook that makes every write of the step slow does not lower it.
type pace struct {
	limit int
	// quickest is how long the quickest write took, and 0 before the first. One that is
	// exceptionally quick keeps the limit at busyInFlight until the step ends.
	quickest time.Duration
	// lowered is when the limit was last halved. Writes that were sent before do not count again.
	lowered time.Time
}

// ended records a write that began and ended.
func (p *pace) ended(began, now time.Time) {
	took := now.Sub(began)
	if p.quickest == 0 || took < p.quickest {
		p.quickest = took
	}
	switch {
	case took < busyFactor*p.quickest, p.limit < busyInFlight:
		p.limit = min(p.limit+1, maxInFlight)
	case !began.Before(p.lowered):
		p.limit, p.lowered = max(busyInFlight, p.limit/2), now
	}
}

// forEach calls do for the first maxChanges of n indices, one at first and at most
// maxInFlight at a time, and begins no further call after a failure. It returns how many
// succeeded. If indices are left, the outcome is a wait for the next reconcile, which
// continues at the same pace, or with a single write if the API server held writes up for
// too long.
func (k *kind) forEach(g *pcapi.VmGroup, n int, do func(i int) error) (succeeded int, err error) {
	type result struct {
		began time.Time
		err   error
	}
	var (
		current       = k.memory.takePace(g.UID)
		results       = make(chan result)
		end           = min(n, maxChanges)
		start         = k.clock()
		next, running int
	)
	for {
		for err == nil && next < end && running < current.limit && k.clock().Sub(start) < maxStep {
			i, began := next, k.clock()
			go func() { results <- result{began, do(i)} }()
			next++
			running++
		}
		if running == 0 {
			break
		}
		r := <-results
		running--
		current.ended(r.began, k.clock())
		if r.err == nil {
			succeeded++
		} else if err == nil {
			err = r.err
		}
	}
	switch delay, held := heldUp(err); {
	case held:
		return succeeded, reconciler.Wait(delay, pcapi.ScalingReason, "the API server has too many requests: going on with the members later")
	case err == nil && next < n:
		k.memory.keepPace(g.UID, current)
		return succeeded, reconciler.Wait(continueAfter, pcapi.ScalingReason, "going on with the members")
	}
	return succeeded, err
}

// heldUp reports whether the API server refused a request for now, or did not answer it in
// time, and how long to wait. A request that got no answer may have taken effect, which the
// next reconcile observes.
func heldUp(err error) (time.Duration, bool) {
	if apierrors.IsTooManyRequests(err) {
		delay, _ := apierrors.SuggestsClientDelay(err)
		return max(minWait, time.Duration(delay)*time.Second), true
	}
	return minWait, errors.Is(err, context.DeadlineExceeded) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}
