package transport

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestLimitKeepsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []time.Duration
		start := time.Now()
		c := newTransport(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			sent = append(sent, time.Since(start))
			mu.Unlock()
			ok(w, r)
		}, limited(Limits{RequestsPerSecond: 10, Burst: 5, MaxInFlight: 100}))
		var all sync.WaitGroup
		var late []time.Duration
		for range 50 {
			all.Go(func() {
				err := get(t.Context(), c)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					return
				}
				late = append(late, cloud.RetryAfter(err))
				if cloud.KindOf(err) != cloud.Throttled || cloud.Uncertain(err) {
					t.Errorf("%v, want Throttled and certain", err)
				}
			})
		}
		all.Wait()
		// Five at once, ten within the second that a request waits at most.
		if len(sent) != 15 || slices.Max(sent) > maxWait {
			t.Errorf("%d sent, the last after %s; want 15 within %s", len(sent), slices.Max(sent), maxWait)
		}
		// The others are refused with different times, at the same rate.
		slices.Sort(late)
		if first, last := late[0], late[len(late)-1]; first < maxWait || last < 4*time.Second || last > 6*time.Second {
			t.Errorf("RetryAfter of %s to %s, want 1s to about 5s", first, last)
		}
	})
}

func TestLimitBoundsRequestsInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var now, most int
		c := newTransport(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(600 * time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			ok(w, r)
		}, limited(Limits{RequestsPerSecond: 1000, Burst: 100, MaxInFlight: 4}))
		var all sync.WaitGroup
		var ok, throttled int
		for range 20 {
			all.Go(func() {
				err := get(t.Context(), c)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					ok++
				} else if cloud.Is(err, cloud.Throttled) && cloud.RetryAfter(err) > 0 {
					throttled++
				}
			})
		}
		all.Wait()
		if most != 4 || ok != 8 || throttled != 12 {
			t.Errorf("%d at once, %d served, %d throttled; want 4, 8, 12", most, ok, throttled)
		}
	})
}
