package inventory

import (
	"context"
	"sync"
	"time"
)

// shelf holds the last listing of something that a cloud has few of, for all
// who need it. It is made on demand: nobody asks the cloud while what is held
// is new enough, and those who ask at the same time share one call. A listing
// that failed is not held.
type shelf[T any] struct {
	mu     sync.Mutex
	items  []T
	begun  time.Time
	flight *flight[T]
}

// flight is a listing under way. Items and err are set once done is closed.
type flight[T any] struct {
	done  chan struct{}
	begun time.Time
	items []T
	err   error
}

// get returns a listing begun at or after notBefore, and when it was begun,
// making one by list where none is held; one begun by this very call counts
// whatever the clock says. The items are shared and must not be changed. It
// fails as list does, or with what ended ctx; list goes on then for the others,
// and must end by itself.
func (s *shelf[T]) get(ctx context.Context, notBefore time.Time, clock func() time.Time, list func(context.Context) ([]T, error)) ([]T, time.Time, error) {
	for {
		s.mu.Lock()
		items, begun := s.items, s.begun
		if !begun.IsZero() && !begun.Before(notBefore) {
			s.mu.Unlock()
			return items, begun, nil
		}
		f, mine := s.flight, s.flight == nil
		if mine {
			f = &flight[T]{done: make(chan struct{}), begun: clock()}
			s.flight = f
			go s.fly(context.WithoutCancel(ctx), f, list)
		}
		s.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, time.Time{}, ctx.Err()
		}
		if mine || !f.begun.Before(notBefore) {
			return f.items, f.begun, f.err
		}
	}
}

func (s *shelf[T]) fly(ctx context.Context, f *flight[T], list func(context.Context) ([]T, error)) {
	f.items, f.err = list(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight == f {
		s.flight = nil
		if f.err == nil {
			s.items, s.begun = f.items, f.begun
		}
	}
	close(f.done)
}

// clear forgets what is held, and what a listing under way is about to bring.
func (s *shelf[T]) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items, s.begun, s.flight = nil, time.Time{}, nil
}
