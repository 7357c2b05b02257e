package rest

import (
	"io"
	"net/http"
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

func TestListServersWaitsLongerForSlotThanOtherCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := inBubble(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/servers" {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `[]`)
				return
			}
			time.Sleep(3 * time.Second)
			okServer(w, r)
		}, limited(Limits{RequestsPerSecond: 1000, Burst: 100, MaxInFlight: 1})).withCapabilities()
		var all sync.WaitGroup
		all.Go(func() { _ = verbs["get"](t.Context(), c) })
		synctest.Wait()
		if err := verbs["get"](t.Context(), c); !cloud.Is(err, cloud.Throttled) {
			t.Errorf("a call about one server: %v, want Throttled", err)
		}
		if err := verbs["list"](t.Context(), c); err != nil {
			t.Errorf("the listing: %v, want it served", err)
		}
		all.Wait()
	})
}

func TestRetryAfterHoldsAllCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status     int
		retryAfter string
		kind       cloud.Kind
		held       time.Duration
	}{
		"429 with seconds":         {429, "30", cloud.Throttled, 30 * time.Second},
		"429 without":              {429, "", cloud.Throttled, 5 * time.Second},
		"429 with garbage":         {429, "soon", cloud.Throttled, 5 * time.Second},
		"429 with an absurd time":  {429, "1e99", cloud.Throttled, 10 * time.Minute},
		"429 with a negative time": {429, "-3", cloud.Throttled, 0},
		"503 with seconds":         {503, "30", cloud.Unavailable, 30 * time.Second},
		"503 without":              {503, "", cloud.Unavailable, 0},
		"500 with seconds":         {500, "30", cloud.Unavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				answers := answering(reply{status: test.status, header: map[string]string{"Retry-After": test.retryAfter}}, reply{status: 200})
				c := inBubble(t, answers.ServeHTTP).withCapabilities()
				err := verbs["create"](t.Context(), c)
				wantOutcome(t, err, outcome{test.kind, test.status >= 500, test.held})
				if test.held == 0 {
					if err := verbs["check"](t.Context(), c); err != nil {
						t.Errorf("the next call: %v", err)
					}
					return
				}
				time.Sleep(test.held - time.Second)
				err = verbs["check"](t.Context(), c)
				if left := cloud.RetryAfter(err); !cloud.Is(err, cloud.Throttled) || left < time.Second || left > 1100*time.Millisecond {
					t.Errorf("%v, RetryAfter %s; want Throttled and about 1s", err, left)
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
