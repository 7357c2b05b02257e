package inventory

import (
	"context"
	"slices"
	"sync"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxInProgress bounds the memory of all listings in progress: a listing that holds more
	// than smallListing waits while they take more. The one of these that
	// began first does not wait, so that there is always one that ends.
	maxInProgress = 128 << 20
	// smallListing is some 2,500 servers.
	smallListing = 1 << 20
	// holdStep is by how much a listing grows before its memory is counted.
	holdStep = 256 << 10
)

// progress counts the memory of the listings in progress. A cloud that does not answer
// holds only what it has sent so far.
type progress struct {
	max int

	mu sync.Mutex
	// listings are those in progress, in the order in which they began, and bytes is their
	// memory.
	listings []*inProgress
	bytes    int
	// freed is closed and replaced when a listing ends.
	freed chan struct{}
}

// inProgress is one listing.
type inProgress struct {
	all   *progress
	bytes int
}

func newProgress(maxBytes int) *progress {
	return &progress{max: maxBytes, freed: make(chan struct{})}
}

func (p *progress) begin() *inProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &inProgress{all: p}
	p.listings = append(p.listings, l)
	return l
}

// hold records the memory of the listing, and waits until it may take more.
func (l *inProgress) hold(ctx context.Context, bytes int) error {
	for {
		freed := l.grow(bytes)
		if freed == nil {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return &cloud.Error{
				Kind: cloud.Unavailable, Op: "list servers", Err: ctx.Err(),
				Detail: "the listings of other clouds take the memory that the operator has for listings in progress",
			}
		}
	}
}

// grow records the memory of the listing. It returns nil if the listing may go on, else a
// channel that is closed when that is to be asked again.
func (l *inProgress) grow(bytes int) <-chan struct{} {
	p := l.all
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += bytes - l.bytes
	l.bytes = bytes
	first := slices.IndexFunc(p.listings, func(other *inProgress) bool { return other.bytes > smallListing })
	if p.bytes <= p.max || bytes <= smallListing || p.listings[first] == l {
		return nil
	}
	return p.freed
}

// end drops the listing, whether it is complete or has failed.
func (l *inProgress) end() {
	p := l.all
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes -= l.bytes
	p.listings = slices.DeleteFunc(p.listings, func(other *inProgress) bool { return other == l })
	close(p.freed)
	p.freed = make(chan struct{})
}
