package testkit

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

// T is a running test with Gomega's assertions bound to it: in tests that run in
// parallel, a failed assertion ends the test that made it and no other.
type T struct {
	*testing.T

	gomega *gomega.WithT
}

// NewT returns a T whose Eventually gives up after timeout and looks every interval.
func NewT(t *testing.T, timeout, interval time.Duration) *T {
	t.Helper()
	g := gomega.NewWithT(t)
	g.EnforceDefaultTimeoutsWhenUsingContexts()
	g.SetDefaultEventuallyTimeout(timeout)
	g.SetDefaultEventuallyPollingInterval(interval)
	return &T{T: t, gomega: g}
}

// Expect makes an assertion about a value; see gomega.Expect.
func (t *T) Expect(actual any, extra ...any) gomega.Assertion {
	t.Helper()
	return t.gomega.Expect(actual, extra...)
}

// Eventually makes an assertion that has to become true while the test runs; see
// gomega.Eventually. Functions get the context of the test.
func (t *T) Eventually(actual any, intervals ...any) gomega.AsyncAssertion {
	t.Helper()
	return t.gomega.Eventually(t.Context(), append([]any{actual}, intervals...)...)
}

// Consistently makes an assertion that has to stay true for a while; see
// gomega.Consistently. Functions get the context of the test.
func (t *T) Consistently(actual any, intervals ...any) gomega.AsyncAssertion {
	t.Helper()
	return t.gomega.Consistently(t.Context(), append([]any{actual}, intervals...)...)
}

// RunInParallel sets how many parallel tests run at a time, unless -parallel
// says so: for tests that mostly wait, GOMAXPROCS is too few. TestMain calls it.
func RunInParallel(n int) error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	// flag.Set would count as an argument of the user, which Ginkgo refuses.
	return flag.Lookup("test.parallel").Value.Set(strconv.Itoa(n))
}
