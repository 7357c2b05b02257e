package inventory

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// paged lists servers page by page, each after a second. From the page hangs it does not
// answer, if that is not 0.
type paged struct {
	cloud.ServerReader
	servers, hangs int
	pages          int
	// whole: all servers are on one page.
	whole bool
}

func (p *paged) ListServers(ctx context.Context, opts cloud.ListServers) (cloud.ServerPage, error) {
	answer := time.After(time.Second)
	p.pages++
	if p.pages == p.hangs {
		answer = nil
	}
	select {
	case <-answer:
	case <-ctx.Done():
		return cloud.ServerPage{}, ctx.Err()
	}
	if p.whole {
		opts.Limit = p.servers
	}
	from, _ := strconv.Atoi(opts.Marker)
	page := cloud.ServerPage{}
	for i := from; i < min(from+opts.Limit, p.servers); i++ {
		page.Servers = append(page.Servers, cloud.Server{ID: fmt.Sprintf("id-%06d", i), Name: fmt.Sprintf("vm-%06d", i), State: cloud.StateActive})
	}
	if next := from + opts.Limit; next < p.servers {
		page.Next = strconv.Itoa(next)
	}
	return page, nil
}

// large is the number of servers of a listing that takes more than 2 MiB.
const large = 10_000

func TestLargeListingsWaitForEachOther(t *testing.T) {
	for name, whole := range map[string]bool{"page by page": false, "all servers on one page": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newProgress(4 << 20)
				var all sync.WaitGroup
				var most atomic.Int64
				for range 20 {
					all.Go(func() {
						l := p.begin()
						defer l.end()
						snap, err := list(t.Context(), &paged{servers: large, whole: whole}, nil, time.Now, func(bytes int) error {
							defer func() { most.Store(max(most.Load(), int64(p.total()))) }()
							return l.hold(t.Context(), bytes)
						})
						if err != nil || snap.Len() != large {
							t.Errorf("listing: %v", err)
						}
					})
				}
				all.Wait()
				// Each holds smallListing and a step before it waits, and the first all it needs.
				if limit := int64(p.max + 20*(smallListing+2*holdStep) + (4 << 20)); most.Load() > limit || most.Load() < int64(p.max) {
					t.Errorf("%d bytes were held at most, want %d to %d", most.Load(), p.max, limit)
				}
				if p.total() != 0 || len(p.listings) != 0 {
					t.Errorf("%d bytes of %d listings are held at the end", p.total(), len(p.listings))
				}
			})
		})
	}
}

func TestListingsThatHang(t *testing.T) {
	for name, test := range map[string]struct {
		// pages are those that forty clouds list before they hang.
		pages   int
		servers int
		// least and takes bound the time of the listing beside them.
		least, takes time.Duration
	}{
		"nothing is held: a large listing does not wait":           {pages: 0, servers: large, takes: 10 * time.Second},
		"a page each is held: a small listing does not wait":       {pages: 1, servers: 2000, takes: 2 * time.Second},
		"the memory is used up: a small listing does not wait":     {pages: 8, servers: 2000, takes: 2 * time.Second},
		"the memory is used up: a large one waits until they fail": {pages: 8, servers: large, least: 30 * time.Second, takes: 60 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := New(time.Now, "cluster")
				d.listings.max = 10 << 20
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for range 40 {
					go func() { _, _ = d.List(ctx, &paged{servers: large, hangs: test.pages + 1}, nil, time.Now) }()
				}
				<-time.After(20 * time.Second)
				begun := time.Now()
				snap, err := d.List(t.Context(), &paged{servers: test.servers}, nil, time.Now)
				if err != nil || snap.Len() != test.servers {
					t.Fatalf("listing: %v", err)
				}
				if took := time.Since(begun); took < test.least || took > test.takes {
					t.Errorf("it took %v, want %v to %v", took, test.least, test.takes)
				}
			})
		})
	}
}

func TestListingThatWaitsForMemoryEndsWithItsContext(t *testing.T) {
	p := newProgress(4 << 20)
	first, second := p.begin(), p.begin()
	if err := first.hold(t.Context(), 5<<20); err != nil {
		t.Errorf("the first: %v, want that it goes on", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.hold(ctx, 2<<20); !cloud.Is(err, cloud.Unavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("the second: %v, want Unavailable", err)
	}
	first.end()
	if err := second.hold(ctx, 2<<20); err != nil {
		t.Errorf("the second once the first has ended: %v, want that it goes on", err)
	}
}

// total returns the memory of all listings in progress.
func (p *progress) total() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}
