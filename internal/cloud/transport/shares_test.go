package transport

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// review sends a request of an admission review of an object in a namespace.
func review(ctx context.Context, c *Transport, namespace string) error {
	return get(cloud.WithReviewFlow(ctx, namespace), c)
}

// reviewWithoutEnd starts n callers that ask for reviews again and again.
func reviewWithoutEnd(ctx context.Context, all *sync.WaitGroup, c *Transport, namespace string, n int) (served *atomic.Int64) {
	served = new(atomic.Int64)
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				if review(ctx, c, namespace) == nil {
					served.Add(1)
					continue
				}
				retry := time.NewTimer(100 * time.Millisecond)
				select {
				case <-retry.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return served
}

// servedIn starts callers of a cloud with these limits and waits until the time is
// over. start returns the counts of two crowds, of which servedIn returns the values.
func servedIn(t *testing.T, d time.Duration, limits Limits, start func(context.Context, *sync.WaitGroup, *Transport) (a, b *atomic.Int64)) (int64, int64) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	var all sync.WaitGroup
	a, b := start(ctx, &all, newTransport(t, ok, limited(limits)))
	all.Wait()
	return a.Load(), b.Load()
}

func TestReviewsTakeASmallPartOfTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reviews, vms := servedIn(t, 50*time.Second, Limits{RequestsPerSecond: 16, Burst: 8, MaxInFlight: 16},
			func(ctx context.Context, all *sync.WaitGroup, c *Transport) (reviews, vms *atomic.Int64) {
				return reviewWithoutEnd(ctx, all, c, "ns", 100), crowd(ctx, all, c, "ns", 40)
			})
		// Two of sixteen requests a second.
		if reviews < 90 || reviews > 105 {
			t.Errorf("%d reviews were served, want about 100", reviews)
		}
		if vms < 680 {
			t.Errorf("%d calls of the VMs in the namespace were served, want about 700", vms)
		}
	})
}

func TestReviewsTakeASmallPartOfTheRequestsInFlight(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ maxInFlight, reviews int }{
		"many requests: an eighth": {32, 4},
		"few requests: one":        {4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				var inFlight atomic.Int64
				c := newTransport(t, func(w http.ResponseWriter, r *http.Request) {
					inFlight.Add(1)
					<-release
					inFlight.Add(-1)
					ok(w, r)
				}, limited(Limits{RequestsPerSecond: 1e5, Burst: 1e4, MaxInFlight: test.maxInFlight}))
				var all sync.WaitGroup
				for i := range 40 {
					all.Go(func() { _ = review(t.Context(), c, fmt.Sprintf("ns-%d", i%4)) })
				}
				synctest.Wait()
				if got := int(inFlight.Load()); got != test.reviews {
					t.Errorf("%d reviews under way, want %d", got, test.reviews)
				}
				for range test.maxInFlight - test.reviews {
					all.Go(func() {
						if err := get(cloud.WithFlow(t.Context(), "ns-0"), c); err != nil {
							t.Errorf("a call of a VM: %v", err)
						}
					})
				}
				synctest.Wait()
				if got := int(inFlight.Load()); got != test.maxInFlight {
					t.Errorf("%d requests under way, want %d: reviews keep VMs from the cloud", got, test.maxInFlight)
				}
				close(release)
				all.Wait()
			})
		})
	}
}

func TestReviewsOfOneNamespaceLeaveRoomForThoseOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		many, few := servedIn(t, 50*time.Second, Limits{RequestsPerSecond: 80, Burst: 8, MaxInFlight: 16},
			func(ctx context.Context, all *sync.WaitGroup, c *Transport) (many, few *atomic.Int64) {
				return reviewWithoutEnd(ctx, all, c, "many", 100), reviewWithoutEnd(ctx, all, c, "few", 4)
			})
		if many+few < 450 || few < 150 {
			t.Errorf("%d and %d reviews were served, want about 250 of each namespace", many, few)
		}
	})
}

func TestRefusedReviewsReturnTheirSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newSharedLimiter(Limits{RequestsPerSecond: 1e5, Burst: 1e4, MaxInFlight: 1})
		hold, _ := l.acquire(t.Context(), cloud.Flow{Name: "ns"}, time.Second)
		for range 3 {
			if release, retryAfter := l.acquire(t.Context(), cloud.FlowOf(cloud.WithReviewFlow(t.Context(), "ns")), time.Second); release != nil || retryAfter <= 0 {
				t.Errorf("a review beside a request that takes the only slot: retry after %s", retryAfter)
			}
		}
		hold()
		release, _ := l.acquire(t.Context(), cloud.FlowOf(cloud.WithReviewFlow(t.Context(), "ns")), time.Second)
		if release == nil {
			t.Fatal("no slot once the cloud is idle")
		}
		release()
		reviews := l.shares[cloud.Reviews]
		if l.all.inFlight != 0 || reviews.inFlight != 0 || len(l.all.flows)+len(reviews.flows) > 2 {
			t.Errorf("%d and %d requests under way, %d and %d flows, after all ended",
				l.all.inFlight, reviews.inFlight, len(l.all.flows), len(reviews.flows))
		}
	})
}

// refresh sends refreshes in a flow again and again, and counts those that are served.
func refresh(ctx context.Context, t *testing.T, all *sync.WaitGroup, c *Transport, flow string, n int) (served *atomic.Int64) {
	t.Helper()
	served = new(atomic.Int64)
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				err := get(cloud.WithRefreshes(cloud.WithFlow(ctx, flow), time.Now()), c)
				if err == nil {
					served.Add(1)
					continue
				}
				retry := time.NewTimer(max(time.Millisecond, cloud.RetryAfter(err)))
				select {
				case <-retry.C:
				case <-ctx.Done():
				}
			}
		})
	}
	return served
}

func TestRefreshesLeaveHalfOfTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{RequestsPerSecond: 20, Burst: 40, MaxInFlight: 16}
		refreshes, vms := servedIn(t, 100*time.Second, limits, func(ctx context.Context, all *sync.WaitGroup, c *Transport) (refreshes, vms *atomic.Int64) {
			return refresh(ctx, t, all, c, "ns", 600), crowd(ctx, all, c, "ns", 40)
		})
		if refreshes < 900 || refreshes > 1030 || vms < 950 {
			t.Errorf("%d refreshes and %d other calls in 100 s, want about 1000 each", refreshes, vms)
		}
	})
}

// Beside four busy namespaces, a round of refreshes takes 150 s.
func TestRefreshOfWhatWasReadLongestAgoGoesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, ok, limited(Limits{RequestsPerSecond: 20, Burst: 40, MaxInFlight: 16}))
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		var all sync.WaitGroup
		for i := range 4 {
			crowd(ctx, &all, c, fmt.Sprintf("busy-%d", i), 16)
		}
		longest := make([]time.Duration, 600)
		for i := range longest {
			all.Go(func() {
				for last := time.Now(); ; {
					wait := time.Minute
					err := get(cloud.WithRefreshes(cloud.WithFlow(ctx, "ns"), last), c)
					longest[i] = max(longest[i], time.Since(last))
					if ctx.Err() != nil {
						return
					}
					if err == nil {
						last = time.Now()
					} else {
						wait = max(time.Second, cloud.RetryAfter(err))
					}
					time.Sleep(wait)
				}
			})
		}
		all.Wait()
		// The order is that of the refreshes that wait. A few happen to be refused
		// several times, and come back later.
		slices.Sort(longest)
		if most := longest[len(longest)*99/100]; most > 5*time.Minute {
			t.Errorf("the longest of 99 in 100 refreshes took %s, want %s at most", most, 5*time.Minute)
		}
	})
}

func TestRequestBesideRefreshesIsSentAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, ok, limited(Limits{RequestsPerSecond: 20, Burst: 40, MaxInFlight: 16}))
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		refresh(ctx, t, &all, c, "ns", 600)
		for range 50 {
			time.Sleep(time.Second)
			begun := time.Now()
			for range 4 {
				persist(ctx, c, "ns")
			}
			if took := time.Since(begun); took > 0 {
				t.Errorf("four requests a second waited for %s beside 600 refreshes, want none to wait", took)
			}
		}
		stop()
		all.Wait()
	})
}
