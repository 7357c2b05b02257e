package inventory

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var errAway = errors.New("the cloud is away")

// counter lists how often it was asked, after a while, or fails.
type counter struct {
	mu    sync.Mutex
	asked int
	err   error
}

func (c *counter) list(ctx context.Context) ([]int, error) {
	c.mu.Lock()
	c.asked++
	n, err := c.asked, c.err
	c.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return []int{n}, nil
}

func TestShelfServesWhatIsNewEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, from := &shelf[int]{}, &counter{}
		begun := time.Now()
		for _, test := range []struct {
			name      string
			after     time.Duration
			notBefore time.Duration
			want      []int
			wantBegun time.Duration
		}{
			{"the first has to ask", 0, -time.Hour, []int{1}, 0},
			{"what was begun at that very moment is new enough", time.Minute, 0, []int{1}, 0},
			{"what is older is asked for anew", time.Minute, time.Second, []int{2}, 2*time.Minute + time.Second},
			{"and held from then on", time.Minute, time.Second, []int{2}, 2*time.Minute + time.Second},
		} {
			time.Sleep(test.after) //nolint:forbidigo // in a bubble no time passes
			got, at, err := s.get(t.Context(), begun.Add(test.notBefore), time.Now, from.list)
			if err != nil || !cmp.Equal(test.want, got) || at.Sub(begun) != test.wantBegun {
				t.Errorf("%s: %v begun after %v, %v; want %v begun after %v", test.name, got, at.Sub(begun), err, test.want, test.wantBegun)
			}
		}
	})
}

func TestShelfAsksOnceForAllWhoAskAtATime(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"served": nil, "refused": errAway} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, from := &shelf[int]{}, &counter{err: err}
				now := time.Now()
				var all sync.WaitGroup
				for range 8 {
					all.Go(func() {
						if _, _, got := s.get(t.Context(), now, time.Now, from.list); !errors.Is(got, err) {
							t.Errorf("got %v, want %v", got, err)
						}
					})
				}
				all.Wait()
				if from.asked != 1 {
					t.Errorf("asked %d times, want once", from.asked)
				}
			})
		})
	}
}

func TestShelfDoesNotServeAListingBegunTooEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, from := &shelf[int]{}, &counter{}
		go func() { _, _, _ = s.get(t.Context(), time.Now(), time.Now, from.list) }()
		synctest.Wait()
		time.Sleep(time.Millisecond) //nolint:forbidigo // in a bubble no time passes
		got, _, err := s.get(t.Context(), time.Now(), time.Now, from.list)
		if err != nil || !cmp.Equal([]int{2}, got) {
			t.Errorf("got %v, %v; want the second listing", got, err)
		}
	})
}

func TestShelfHoldsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, from := &shelf[int]{}, &counter{err: errAway}
		now := time.Now()
		if _, _, err := s.get(t.Context(), now, time.Now, from.list); !errors.Is(err, errAway) {
			t.Fatalf("got %v, want %v", err, errAway)
		}
		from.err = nil
		if got, _, err := s.get(t.Context(), now, time.Now, from.list); err != nil || !cmp.Equal([]int{2}, got) {
			t.Errorf("got %v, %v; want the second listing", got, err)
		}
	})
}

func TestShelfLetsGoWhenThePassIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, from := &shelf[int]{}, &counter{}
		go func() { _, _, _ = s.get(t.Context(), time.Now(), time.Now, from.list) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, _, err := s.get(ctx, time.Now(), time.Now, from.list); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
		synctest.Wait()
	})
}
