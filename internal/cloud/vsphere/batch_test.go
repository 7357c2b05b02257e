package vsphere

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// reads are those of a batch of texts, each of which takes a second.
type reads struct {
	mu   sync.Mutex
	keys [][]string
	err  error
	gone map[string]bool
}

func (r *reads) start(keys []string, end func(map[string]int, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(keys)
	r.keys = append(r.keys, keys)
	number, err, gone := len(r.keys), r.err, maps.Clone(r.gone)
	time.AfterFunc(time.Second, func() {
		found := map[string]int{}
		for _, key := range keys {
			if !gone[key] {
				found[key] = number
			}
		}
		end(found, err)
	})
	return nil
}

// ask calls get for all keys at once, and returns the number of the read that answered each,
// 0 for none.
func (r *reads) ask(t *testing.T, b *batch[string, int], since time.Time, keys ...string) map[string]int {
	t.Helper()
	var mu sync.Mutex
	var calls sync.WaitGroup
	answers := map[string]int{}
	for _, key := range keys {
		calls.Go(func() {
			number, _, err := b.get(t.Context(), key, since, r.start)
			if !errors.Is(err, r.err) {
				t.Errorf("%s: %v, want %v", key, err, r.err)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[key] = number
		})
	}
	calls.Wait()
	return answers
}

func TestCallsAtTheSameTimeShareARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := &batch[string, int]{}, &reads{}
		first := make(chan struct{})
		go func() {
			defer close(first)
			_, _, _ = b.get(t.Context(), "a", time.Now(), r.start)
		}()
		synctest.Wait()
		r.ask(t, b, time.Now().Add(1), "a", "b", "c", "d") // the read under way began before
		<-first
		if diff := cmp.Diff([][]string{{"a"}, {"a", "b", "c", "d"}}, r.keys); diff != "" {
			t.Errorf("reads (-want +got):\n%s", diff)
		}
		if len(b.wanted) != 0 {
			t.Errorf("%d things are still wanted", len(b.wanted))
		}
	})
}

func TestReadAnswersOnlyCallsThatAllowItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := &batch[string, int]{}, &reads{gone: map[string]bool{"c": true}}
		b.add("c", time.Now().Add(time.Hour))
		b.add("late", time.Now().Add(time.Second/2))
		begun := time.Now()
		r.ask(t, b, begun, "a")
		for _, step := range []struct {
			key   string
			since time.Time
			want  int
		}{
			{"a", begun, 1},
			{"c", begun, 0}, // read along, and not there
			{"a", begun.Add(1), 2},
			{"b", begun, 3}, // in no read before
		} {
			if got := r.ask(t, b, step.since, step.key)[step.key]; got != step.want {
				t.Errorf("%s was answered by read %d, want %d", step.key, got, step.want)
			}
		}
		if diff := cmp.Diff([][]string{{"a", "c", "late"}, {"a", "c"}, {"b", "c"}}, r.keys); diff != "" {
			t.Errorf("reads (-want +got):\n%s", diff)
		}
		b.drop("c")
		if len(b.wanted) != 0 {
			t.Errorf("%d things are still wanted", len(b.wanted))
		}
	})
}

func TestReadUnderWayExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := &batch[string, int]{}, &reads{}
		since := time.Now()
		first := make(chan map[string]int)
		go func() { first <- r.ask(t, b, since, "a") }()
		<-time.After(time.Second / 2) // the first read is under way
		b.expire()
		if got := r.ask(t, b, since, "a"); got["a"] != 2 {
			t.Errorf("answered by read %d, want the second one, which began after the change", got["a"])
		}
		if got := <-first; got["a"] != 1 {
			t.Errorf("the call before the change was answered by read %d, want the first one", got["a"])
		}
	})
}

func TestFailedReadIsAnsweredToThoseWhoWaitedForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := &batch[string, int]{}, &reads{err: errors.New("cut off")}
		r.ask(t, b, time.Now(), "a", "b", "c")
		if len(r.keys) > 3 {
			t.Errorf("%d reads for 3 calls", len(r.keys))
		}
		r.err = nil
		if got := r.ask(t, b, time.Now().Add(-time.Hour), "a"); got["a"] != len(r.keys) {
			t.Errorf("a failed read answered a later call: %v", got)
		}
	})
}

func TestCallThatEndsLeavesItsReadToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := &batch[string, int]{}, &reads{}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		now := time.Now()
		go func() {
			_, _, err := b.get(ctx, "a", now, r.start)
			ended <- err
		}()
		synctest.Wait()
		other := make(chan map[string]int)
		go func() { other <- r.ask(t, b, now, "a") }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the call whose context ended: %v", err)
		}
		if got := <-other; got["a"] != 1 || len(r.keys) != 1 {
			t.Errorf("the other call was answered by read %d of %d, want 1 of 1", got["a"], len(r.keys))
		}
	})
}

func TestReadIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := &batch[string, int]{}, &reads{}
		keys := make([]string, 0, 2*maxBatch)
		for i := range cap(keys) {
			keys = append(keys, string(rune('a'+i%26))+time.Duration(i).String())
		}
		for key, number := range r.ask(t, b, time.Now(), keys...) {
			if number == 0 {
				t.Errorf("%s has no answer", key)
			}
		}
		for i, read := range r.keys {
			if len(read) > maxBatch {
				t.Errorf("read %d has %d things, want at most %d", i, len(read), maxBatch)
			}
		}
		if len(r.keys) > 4 {
			t.Errorf("%d reads of %d things", len(r.keys), len(keys))
		}
	})
}
