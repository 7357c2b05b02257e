package behaviour_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/privatecloud/operator/internal/testkit"
)

const (
	// timeout is how long a case waits for what it expects: a rollout takes ten
	// seconds on a machine that does nothing else, and more than a minute on one that
	// is four times slower and busy.
	timeout = 4 * time.Minute
	// shortestInterval and longestInterval bound how often a case that waits looks:
	// cases that run in parallel look less often, for the API server shares their processors.
	shortestInterval, longestInterval = 25 * time.Millisecond, 250 * time.Millisecond
)

// running counts the cases that run.
var running atomic.Int32

// T is one running case.
type T struct{ *testkit.T }

// newT returns the T of a test.
func newT(t *testing.T) *T {
	t.Helper()
	running.Add(1)
	t.Cleanup(func() { running.Add(-1) })
	return &T{testkit.NewT(t, timeout, shortestInterval)}
}

// Eventually looks less often the more cases run.
func (t *T) Eventually(actual any, intervals ...any) gomega.AsyncAssertion {
	t.Helper()
	interval := min(longestInterval, shortestInterval+time.Duration(running.Load())*5*time.Millisecond)
	return t.T.Eventually(actual, intervals...).WithPolling(interval)
}

// cleanup runs a function when the case has ended, with a context that is still valid then.
func (t *T) cleanup(do func(context.Context)) {
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { do(ctx) })
}

// logOperatorIfFailed registers that the operator's log lines with a text are
// printed if the case fails.
func (t *T) logOperatorIfFailed(text string) {
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		var lines strings.Builder
		for line := range strings.Lines(operatorLog.String()) {
			if strings.Contains(line, text) {
				lines.WriteString(line)
			}
		}
		t.Logf("the operator's log of %s:\n%s", text, lines.String())
	})
}

// cases are test cases by their names, which state a condition and what is expected.
type cases map[string]func(*T)

// run runs each case as a subtest, in parallel with the cases of all tests.
func (all cases) run(t *testing.T) {
	t.Helper()
	t.Parallel()
	for name, check := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(newT(t))
		})
	}
}
