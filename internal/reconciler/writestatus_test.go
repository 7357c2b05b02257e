package reconciler_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/reconciler"
)

// TestEndTimeIsNeverBeforeTheBegin also has clocks that go back in between.
func TestEndTimeIsNeverBeforeTheBegin(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		begin := time.Unix(1_800_000_000+random.Int64N(10), random.Int64N(int64(time.Second))).Truncate(time.Microsecond)
		ended := begin.Add(time.Duration(random.Int64N(int64(6*time.Second))) - 3*time.Second)
		end := reconciler.EndTime(begin, ended).Time
		latest := ended
		if begin.After(ended) {
			latest = begin
		}
		if end.Before(begin) || end.Nanosecond() != 0 || end.Sub(latest).Abs() >= time.Second {
			t.Fatalf("begin %v, end %v: got %v, want whole seconds, not before the begin, and less than a second from the end", begin, ended, end)
		}
	}
}
