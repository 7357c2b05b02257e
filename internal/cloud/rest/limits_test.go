package rest

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

func limited(l Limits) func(*Config) { return func(cfg *Config) { cfg.Limits = l } }

func okServer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"id":"i-1","name":"web"}`)
}

func TestTheRateIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []time.Duration
		start := time.Now()
		c := bubbled(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			sent = append(sent, time.Since(start))
			mu.Unlock()
			okServer(w, r)
		}, limited(Limits{RequestsPerSecond: 10, Burst: 5, MaxInFlight: 100}))
		var all sync.WaitGroup
		var late []time.Duration
		for range 50 {
			all.Go(func() {
				err := verbs["get"](t.Context(), c)
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
		// Five at once, ten within the second that a call waits at most.
		if len(sent) != 15 || slices.Max(sent) > maxTurnWait {
			t.Errorf("%d sent, the last after %s; want 15 within %s", len(sent), slices.Max(sent), maxTurnWait)
		}
		// The others are sent away for different times, at the same rate.
		slices.Sort(late)
		if first, last := late[0], late[len(late)-1]; first < maxTurnWait || last < 4*time.Second || last > 6*time.Second {
			t.Errorf("told to come back after %s to %s, want 1s to about 5s", first, last)
		}
	})
}

func TestCallsInFlightAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var now, most int
		c := bubbled(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(600 * time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			okServer(w, r)
		}, limited(Limits{RequestsPerSecond: 1000, Burst: 100, MaxInFlight: 4}))
		var all sync.WaitGroup
		var ok, throttled int
		for range 20 {
			all.Go(func() {
				err := verbs["get"](t.Context(), c)
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

func TestTheListingStandsInLineForLongerThanOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubbled(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/servers" {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `[]`)
				return
			}
			time.Sleep(3 * time.Second)
			okServer(w, r)
		}, limited(Limits{RequestsPerSecond: 1000, Burst: 100, MaxInFlight: 1})).can()
		var all sync.WaitGroup
		all.Go(func() { _ = verbs["get"](t.Context(), c) })
		synctest.Wait()
		if err := verbs["get"](t.Context(), c); !cloud.Is(err, cloud.Throttled) {
			t.Errorf("a call about one server: %v, want Throttled", err)
		}
		if err := verbs["list"](t.Context(), c); err != nil {
			t.Errorf("the listing: %v, want it served in the end", err)
		}
		all.Wait()
	})
}

func TestRetryAfterClosesTheGateForAllCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status     int
		retryAfter string
		kind       cloud.Kind
		shut       time.Duration
	}{
		"429 with seconds":            {429, "30", cloud.Throttled, 30 * time.Second},
		"429 without":                 {429, "", cloud.Throttled, 5 * time.Second},
		"429 with garbage":            {429, "soon", cloud.Throttled, 5 * time.Second},
		"429 with an absurd time":     {429, "1e99", cloud.Throttled, 10 * time.Minute},
		"429 that may be tried again": {429, "-3", cloud.Throttled, 0},
		"503 with seconds":            {503, "30", cloud.Unavailable, 30 * time.Second},
		"503 without":                 {503, "", cloud.Unavailable, 0},
		"500 with seconds":            {500, "30", cloud.Unavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				answers := script(reply{status: test.status, header: map[string]string{"Retry-After": test.retryAfter}}, reply{status: 200})
				c := bubbled(t, answers.ServeHTTP).can()
				err := verbs["create"](t.Context(), c)
				wantOutcome(t, err, outcome{test.kind, test.status >= 500, test.shut})
				if test.shut == 0 {
					if err := verbs["check"](t.Context(), c); err != nil {
						t.Errorf("the next call: %v", err)
					}
					return
				}
				time.Sleep(test.shut - time.Second)
				err = verbs["check"](t.Context(), c)
				if left := cloud.RetryAfter(err); !cloud.Is(err, cloud.Throttled) || left < time.Second || left > 1100*time.Millisecond {
					t.Errorf("%v, to come back after %s; want Throttled and about 1s", err, left)
				}
				time.Sleep(time.Second)
				if err := verbs["check"](t.Context(), c); err != nil {
					t.Errorf("after the time: %v", err)
				}
				if answers.count() != 2 {
					t.Errorf("%d requests, want 2", answers.count())
				}
			})
		})
	}
}
