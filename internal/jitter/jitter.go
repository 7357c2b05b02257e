// Package jitter spreads in time what many objects, or processes, would otherwise do at one moment.
package jitter

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// fixed is what Fraction returns; nil for a random number.
var fixed atomic.Pointer[float64]

// Fraction returns a random number, at least 0 and less than 1. It is safe for concurrent use.
func Fraction() float64 {
	if f := fixed.Load(); f != nil {
		return *f
	}
	return rand.Float64() //nolint:gosec // spreads load, hides nothing
}

// Below returns a random duration, at least 0 and less than d.
func Below(d time.Duration) time.Duration { return time.Duration(Fraction() * float64(d)) }

// Fix has Fraction return f, at least 0 and less than 1, until restore is called: for tests that
// need the same times in each run.
func Fix(f float64) (restore func()) {
	before := fixed.Swap(&f)
	return func() { fixed.Store(before) }
}
