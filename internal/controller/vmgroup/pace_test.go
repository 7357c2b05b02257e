package vmgroup

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
)

// writes are those of a step, each of which takes a time.
type writes struct {
	mu sync.Mutex
	// took is how long a write takes, and fails the index of the one that fails with err.
	took  time.Duration
	fails int
	err   error
	// done and failed are how many ended; running and most are how many were under way,
	// now and at most.
	done, running, most int
	failed              bool
	// late is how many began after the failure.
	late int
}

func (w *writes) do(i int) error {
	w.mu.Lock()
	w.running++
	w.most = max(w.most, w.running)
	if w.failed {
		w.late++
	}
	took := w.took
	w.mu.Unlock()
	<-time.After(took + time.Duration(i)*time.Microsecond) // no two end at the same time
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	w.done++
	if i == w.fails {
		w.failed = true
		return w.err
	}
	return nil
}

// bubble runs a test with a clock that advances while all wait, and a kind.
func bubble(t *testing.T, test func(t *testing.T, k *kind, recorded *events.FakeRecorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		recorder := events.NewFakeRecorder(10)
		test(t, newKind(nil, recorder, controller.Options{Clock: time.Now}), recorder)
	})
}

func TestForEachBeginsWithOneWriteAndStopsAtFailure(t *testing.T) {
	broken := errors.New("the API server says no")
	for name, test := range map[string]struct {
		n, fails   int
		done, most int
		outcome    string
	}{
		"nothing":                                 {n: 0, fails: -1, done: 0, most: 0, outcome: "in sync"},
		"all of them":                             {n: 100, fails: -1, done: 100, most: maxInFlight, outcome: "in sync"},
		"the first fails: no other is tried":      {n: 100, fails: 0, done: 1, most: 1, outcome: "error, : the API server says no"},
		"the third fails: those under way end":    {n: 100, fails: 2, done: 5, most: 3, outcome: "error, : the API server says no"},
		"the rest is left for the next reconcile": {n: maxChanges + 10, fails: -1, done: maxChanges, most: maxInFlight, outcome: "waiting 10ms, Scaling: going on with the members"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, k *kind, _ *events.FakeRecorder) {
				w := &writes{took: 10 * time.Millisecond, fails: test.fails, err: broken}
				_, err := k.forEach(groupOfSize(1), test.n, w.do)
				if got := sum(err); got != test.outcome || w.most != test.most || w.late != 0 || w.done != test.done {
					t.Errorf("did %d, %d at a time, %d after the failure: %s, want %d, %d, 0: %s", w.done, w.most, w.late, got, test.done, test.most, test.outcome)
				}
			})
		})
	}
}

func TestForEachLowersThePaceWhenTheAPIServerIsBusy(t *testing.T) {
	const quick = 10 * time.Millisecond
	for name, test := range map[string]struct{ took, slowed time.Duration }{
		"writes take three times as long as the quickest one": {took: quick, slowed: busyFactor * quick},
		"429 with Retry-After: the client sends them again":   {took: quick, slowed: time.Second},
		"a webhook delays all writes, and then more":          {took: time.Second, slowed: busyFactor * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, k *kind, _ *events.FakeRecorder) {
				g, w := groupOfSize(1), &writes{took: test.took, fails: -1}
				step := func() int {
					w.most = 0
					if _, err := k.forEach(g, maxChanges+1, w.do); sum(err) != "waiting 10ms, Scaling: going on with the members" {
						t.Fatalf("outcome %v", err)
					}
					return w.most
				}
				if most := max(step(), step()); most != maxInFlight {
					t.Fatalf("%d at a time, want %d", most, maxInFlight)
				}
				w.took = test.slowed
				step()
				if most := step(); most != busyInFlight {
					t.Errorf("%d at a time when it is busy, want %d", most, busyInFlight)
				}
				w.took = test.took
				if most := step(); most != maxInFlight {
					t.Errorf("%d at a time when it is not busy any more, want %d", most, maxInFlight)
				}
			})
		})
	}
}

func TestForEachEndsInTimeForTheStatus(t *testing.T) {
	bubble(t, func(t *testing.T, k *kind, _ *events.FakeRecorder) {
		w, begun := &writes{took: 2 * time.Second, fails: -1}, time.Now()
		_, err := k.forEach(groupOfSize(1), maxChanges, w.do)
		if took := time.Since(begun); took > 2*maxStep || sum(err) != "waiting 10ms, Scaling: going on with the members" || w.done == 0 {
			t.Errorf("%d in %s: %v", w.done, took, err)
		}
	})
}

func TestForEachWaitsWhenTheAPIServerHasTooManyRequests(t *testing.T) {
	const text = ", Scaling: the API server has too many requests: going on with the members later"
	for name, test := range map[string]struct {
		err     error
		outcome string
	}{
		"429 with Retry-After":              {apierrors.NewTooManyRequests("wait", 7), "waiting 7s" + text},
		"429 without":                       {apierrors.NewTooManyRequests("wait", 0), "waiting 1s" + text},
		"no answer in the client's timeout": {&url.Error{Op: "Post", Err: context.DeadlineExceeded}, "waiting 1s" + text},
		"the API server's timeout":          {apierrors.NewTimeoutError("slow", 0), "waiting 1s" + text},
		"an answer that it takes longer":    {apierrors.NewServerTimeout(schema.GroupResource{}, "create", 2), "waiting 1s" + text},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, k *kind, _ *events.FakeRecorder) {
				g := groupOfSize(1)
				refused := fmt.Errorf("create VM: %w", test.err)
				w := &writes{took: 10 * time.Millisecond, fails: 50, err: refused}
				if _, err := k.forEach(g, 100, w.do); sum(err) != test.outcome {
					t.Fatalf("got %s, want %s", sum(err), test.outcome)
				}
				w = &writes{took: 10 * time.Millisecond, fails: 0, err: refused}
				if _, err := k.forEach(g, 100, w.do); sum(err) != test.outcome || w.done != 1 {
					t.Errorf("%d writes after a wait: %v, want 1", w.done, err)
				}
			})
		})
	}
}

func TestChangeMembersRecordsOneEventForAStep(t *testing.T) {
	refused := apierrors.NewTooManyRequests("wait", 1)
	for name, test := range map[string]struct {
		reconciles []writes
		n          []int
		events     []string
	}{
		"one reconcile":     {[]writes{{fails: -1}}, []int{20}, []string{"Normal MembersCreated created 20 members"}},
		"one member":        {[]writes{{fails: -1}}, []int{1}, []string{"Normal MembersCreated created 1 member"}},
		"several":           {[]writes{{fails: -1}, {fails: -1}}, []int{maxChanges + 20, 20}, []string{"Normal MembersCreated created 520 members"}},
		"429 in between":    {[]writes{{fails: 0, err: refused}, {fails: -1}}, []int{20, 20}, []string{"Normal MembersCreated created 20 members"}},
		"some, then broken": {[]writes{{fails: 1, err: errors.New("no")}}, []int{2}, []string{"Normal MembersCreated created 1 member"}},
		"none":              {[]writes{{fails: 0, err: errors.New("no")}}, []int{2}, nil},
		"two steps":         {[]writes{{fails: -1}, {fails: -1}}, []int{3, 2}, []string{"Normal MembersCreated created 3 members", "Normal MembersCreated created 2 members"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, k *kind, recorder *events.FakeRecorder) {
				g := groupOfSize(1)
				for i := range test.reconciles {
					_ = k.changeMembers(g, test.n[i], creation, test.reconciles[i].do)
				}
				close(recorder.Events)
				var got []string
				for event := range recorder.Events {
					got = append(got, event)
				}
				if fmt.Sprint(got) != fmt.Sprint(test.events) || changesLeft(k, g) != 0 {
					t.Errorf("events %q, %d changes left, want %q", got, changesLeft(k, g), test.events)
				}
			})
		})
	}
}

func TestGroupInSyncForgetsStepsThatWereNotContinued(t *testing.T) {
	bubble(t, func(t *testing.T, k *kind, _ *events.FakeRecorder) {
		g, w := groupOfSize(1), &writes{fails: -1}
		_ = k.changeMembers(g, maxChanges+1, creation, w.do)
		if r := k.memory.of[g.UID]; r == nil || r.pace == (pace{}) || len(r.changed) == 0 {
			t.Fatal("nothing is remembered of a step that is to be continued")
		}
		k.reported(g, nil, nil)
		if left := k.memory.of[g.UID]; left != nil {
			t.Errorf("%v is left", *left)
		}
	})
}

// changesLeft returns how many kinds of changes are remembered of a group.
func changesLeft(k *kind, g *pcapi.VmGroup) (left int) {
	k.memory.with(g.UID, func(r *record) { left = len(r.changed) })
	return left
}
