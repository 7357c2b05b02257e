package vsphere

import (
	"context"
	"sync"
	"time"
)

// batch reads things for all calls that want one at about the same time. One read is under
// way at a time; a call whose thing is not in it waits for the next one.
type batch[K comparable, V any] struct {
	mu sync.Mutex
	// wanted are the things of the next read.
	wanted map[K]*want
	// running is the read under way, and last the last one that succeeded.
	running, last *batchRead[K, V]
	// expired is when reads that began before were given up.
	expired time.Time
}

// want is a thing that calls wait for, or that is read along until a time.
type want struct {
	waiting int
	until   time.Time
}

// batchRead is one read. found and err are set before done is closed.
type batchRead[K comparable, V any] struct {
	begun time.Time
	keys  map[K]bool
	done  chan struct{}
	found map[K]V
	err   error
}

// maxBatch bounds the things of a read.
const maxBatch = 500

// add makes reads of other things read this one along, until the given time.
func (b *batch[K, V]) add(key K, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.want(key).until = until
}

// drop ends what add began.
func (b *batch[K, V]) drop(key K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.wanted[key]; w != nil {
		w.until = time.Time{}
		b.release(key, w)
	}
}

// expire makes later calls read again, also if a read is under way.
func (b *batch[K, V]) expire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last, b.expired = nil, time.Now()
}

// get returns a thing as a read found it that began at since or later; ok is false if there
// is none. A read goes on when the call that began it ends.
func (b *batch[K, V]) get(ctx context.Context, key K, since time.Time, start func(keys []K, end func(map[K]V, error)) error) (value V, ok bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if since.Before(b.expired) {
		since = b.expired
	}
	w := b.want(key)
	w.waiting++
	defer func() {
		w.waiting--
		b.release(key, w)
	}()
	if b.last.has(key, since) {
		value, ok = b.last.found[key]
		return value, ok, nil
	}
	for {
		read := b.running
		if read == nil {
			if read, err = b.start(start); err != nil {
				return value, false, err
			}
		}
		if !b.await(ctx, read) {
			return value, false, ctx.Err()
		}
		if read.has(key, since) {
			value, ok = read.found[key]
			return value, ok, read.err
		}
	}
}

// has reports whether a read says what there is of a thing since a time.
func (r *batchRead[K, V]) has(key K, since time.Time) bool {
	return r != nil && r.keys[key] && !r.begun.Before(since)
}

// want returns the entry of a thing. The caller holds mu.
func (b *batch[K, V]) want(key K) *want {
	w := b.wanted[key]
	if w == nil {
		w = &want{}
		if b.wanted == nil {
			b.wanted = map[K]*want{}
		}
		b.wanted[key] = w
	}
	return w
}

// release drops the entry of a thing that nobody wants any more. The caller holds mu.
func (b *batch[K, V]) release(key K, w *want) {
	if w.waiting == 0 && !time.Now().Before(w.until) && b.wanted[key] == w {
		delete(b.wanted, key)
	}
}

// start begins a read. Things that calls wait for are in it first. The caller holds mu.
func (b *batch[K, V]) start(start func([]K, func(map[K]V, error)) error) (*batchRead[K, V], error) {
	keys := make([]K, 0, min(len(b.wanted), maxBatch))
	for _, waited := range []bool{true, false} {
		for key, w := range b.wanted {
			switch {
			case w.waiting > 0 != waited || len(keys) == maxBatch:
			case w.waiting == 0 && !time.Now().Before(w.until):
				delete(b.wanted, key)
			default:
				keys = append(keys, key)
			}
		}
	}
	read := &batchRead[K, V]{begun: time.Now(), keys: make(map[K]bool, len(keys)), done: make(chan struct{})}
	for _, key := range keys {
		read.keys[key] = true
	}
	err := start(keys, func(found map[K]V, err error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		read.found, read.err = found, err
		b.running = nil
		if err == nil {
			b.last = read
		}
		close(read.done)
	})
	if err != nil {
		return nil, err
	}
	b.running = read
	return read, nil
}

// await waits for the end of a read, without mu. It reports false if ctx ends first.
func (b *batch[K, V]) await(ctx context.Context, read *batchRead[K, V]) bool {
	b.mu.Unlock()
	defer b.mu.Lock()
	select {
	case <-read.done:
		return true
	case <-ctx.Done():
		return false
	}
}
