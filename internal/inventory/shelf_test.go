package inventory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// counter lists 1, then 2 and so on, an hour each of synctest's clock.
type counter struct {
	calls int
	err   error
}

func (c *counter) list(context.Context) ([]int, error) {
	<-time.After(time.Hour)
	c.calls++
	return []int{c.calls}, c.err
}

func TestAShelfAsksOnlyForWhatItDoesNotHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var s shelf[int]
		c := &counter{}
		get := func(notBefore time.Time) (int, time.Duration) {
			t.Helper()
			items, begun, err := s.get(t.Context(), notBefore, time.Now, c.list)
			if err != nil {
				t.Fatal(err)
			}
			return items[0], begun.Sub(start)
		}
		type answer struct {
			Item  int
			Begun time.Duration
		}
		var got []answer
		for _, notBefore := range []time.Duration{0, 0, time.Minute, 30 * time.Minute, 100 * time.Hour} {
			item, begun := get(start.Add(notBefore))
			got = append(got, answer{item, begun})
		}
		s.clear()
		item, begun := get(start)
		got = append(got, answer{item, begun})
		want := []answer{{1, 0}, {1, 0}, {2, time.Hour}, {2, time.Hour}, {3, 2 * time.Hour}, {4, 3 * time.Hour}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	})
}

func TestThoseWhoAskAShelfAtTheSameTimeShareOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var s shelf[int]
		c := &counter{}
		answers := make(chan int, 11)
		ask := func(notBefore time.Time) {
			items, _, err := s.get(t.Context(), notBefore, time.Now, c.list)
			if err != nil {
				t.Error(err)
			}
			answers <- items[0]
		}
		for range 10 {
			go ask(start)
		}
		synctest.Wait()
		go ask(start.Add(time.Second)) // which the listing under way is too old for
		got := map[int]int{}
		for range 11 {
			got[<-answers]++
		}
		if diff := cmp.Diff(map[int]int{1: 10, 2: 1}, got); diff != "" {
			t.Errorf("answers by listing (-want +got):\n%s", diff)
		}
	})
}

func TestAShelfHoldsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shelf[int]
		c := &counter{err: errors.New("away")}
		if _, _, err := s.get(t.Context(), time.Time{}, time.Now, c.list); !errors.Is(err, c.err) {
			t.Errorf("got %v, want %v", err, c.err)
		}
		c.err = nil
		items, _, err := s.get(t.Context(), time.Time{}, time.Now, c.list)
		if err != nil || items[0] != 2 {
			t.Errorf("got %v, %v; want the second listing", items, err)
		}
	})
}

func TestOneWhoGivesUpDoesNotSpoilAShelfForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shelf[int]
		c := &counter{}
		hurried, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		gaveUp := make(chan error, 1)
		go func() {
			_, _, err := s.get(hurried, time.Time{}, time.Now, c.list)
			gaveUp <- err
		}()
		synctest.Wait()
		items, _, err := s.get(t.Context(), time.Time{}, time.Now, c.list)
		if err != nil || items[0] != 1 {
			t.Errorf("got %v, %v; want the listing that the other began", items, err)
		}
		if err := <-gaveUp; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of its own context", err)
		}
	})
}

func TestAListingUnderWayIsNotPutOnAShelfThatWasCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shelf[int]
		c := &counter{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _, _ = s.get(t.Context(), time.Time{}, time.Now, c.list)
		}()
		synctest.Wait()
		s.clear()
		<-done
		items, _, err := s.get(t.Context(), time.Time{}, time.Now, c.list)
		if err != nil || items[0] != 2 {
			t.Errorf("got %v, %v; want another listing", items, err)
		}
	})
}
