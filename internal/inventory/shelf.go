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

// flight is a listing under way. All but done and begun are set once done is closed.
type flight[T any] struct {
	done  chan struct{}
	begun time.Time
	items []T
	err   error
}

// get returns a listing begun at or after notBefore, and when it was begun,
// making one by list where none is held. The items are shared and must not be
// changed. It fails as list does, or with what ended ctx.
func (s *shelf[T]) get(ctx context.Context, notBefore time.Time, clock func() time.Time, list func(context.Context) ([]T, error)) ([]T, time.Time, error) {
	for {
		s.mu.Lock()
		if !s.begun.IsZero() && !s.begun.Before(notBefore) {
			items, begun := s.items, s.begun
			s.mu.Unlock()
			return items, begun, nil
		}
		f := s.flight
		if f == nil {
			f = &flight[T]{done: make(chan struct{}), begun: clock()}
			s.flight = f
			s.mu.Unlock()
			s.fly(ctx, f, list)
			return f.items, f.begun, f.err
		}
		s.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, time.Time{}, ctx.Err()
		}
		if f.err != nil && !f.begun.Before(notBefore) {
			return nil, time.Time{}, f.err
		}
	}
}

func (s *shelf[T]) fly(ctx context.Context, f *flight[T], list func(context.Context) ([]T, error)) {
	f.items, f.err = list(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flight = nil
	if f.err == nil {
		s.items, s.begun = f.items, f.begun
	}
	close(f.done)
}
