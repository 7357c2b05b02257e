package jitter

import (
	"testing"
	"time"
)

func TestFractionIsFixedAndRestored(t *testing.T) {
	restore := Fix(0.25)
	if got := Below(time.Minute); got != 15*time.Second {
		t.Errorf("fixed: got %s, want 15s", got)
	}
	restore()
	seen := map[float64]bool{}
	for range 100 {
		f := Fraction()
		if f < 0 || f >= 1 {
			t.Fatalf("got %v, want at least 0 and less than 1", f)
		}
		seen[f] = true
	}
	if len(seen) < 2 {
		t.Error("restored: always the same number")
	}
}
