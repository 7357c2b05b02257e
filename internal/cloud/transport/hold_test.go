package transport

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/privatecloud/operator/internal/cloud"
)

const heldDetail = "the cloud asked to wait before the next request"

func TestHoldFollowsStatusAndRetryAfter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status     int
		retryAfter string
		want       time.Duration
	}{
		"429 with seconds: held":          {429, "30", 30 * time.Second},
		"429 without: held for a default": {429, "", 5 * time.Second},
		"429 with 0: not held":            {429, "0", 0},
		"503 with seconds: held":          {503, "30", 30 * time.Second},
		"503 without: not held":           {503, "", 0},
		"500 with seconds: not held":      {500, "30", 0},
		"200 with seconds: not held":      {200, "30", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				c := newTransport(t, func(w http.ResponseWriter, _ *http.Request) {
					sent++
					w.Header().Set("Retry-After", test.retryAfter)
					w.WriteHeader(test.status)
				})
				if err := get(t.Context(), c); err != nil {
					t.Fatalf("the first request: %v", err)
				}
				if got := c.hold.remaining(); max(got, 0) != test.want {
					t.Errorf("held for %s, want %s", got, test.want)
				}
				if test.want == 0 {
					return
				}
				wantThrottled(t, get(t.Context(), c), heldDetail)
				time.Sleep(test.want)
				if err := get(t.Context(), c); err != nil || sent != 2 {
					t.Errorf("after the hold: %v, %d requests sent; want 2", err, sent)
				}
			})
		})
	}
}

func TestHoldByBackend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, ok)
		c.Hold(0)
		if err := get(t.Context(), c); err != nil {
			t.Errorf("after a hold of 0: %v", err)
		}
		c.Hold(time.Minute)
		c.Hold(time.Second)
		err := get(t.Context(), c)
		wantThrottled(t, err, heldDetail)
		if left := cloud.RetryAfter(err); left < time.Minute || left > 66*time.Second {
			t.Errorf("RetryAfter %s, want that of the longer hold and up to a tenth more", left)
		}
	})
}

func TestHoldOutlivesTransport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var shared Hold
		keep := func(cfg *Config) { cfg.Hold = &shared }
		newTransport(t, ok, keep).Hold(time.Minute)
		next := newTransport(t, ok, keep)
		wantThrottled(t, get(t.Context(), next), heldDetail)
		time.Sleep(time.Minute)
		if err := get(t.Context(), next); err != nil {
			t.Errorf("after the hold: %v", err)
		}
	})
}

func TestHoldRefusesRequestThatWaitedForSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		c := newTransport(t, func(http.ResponseWriter, *http.Request) { sent++ }, limited(Limits{RequestsPerSecond: 2, Burst: 1, MaxInFlight: 4}))
		if err := get(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		failed := make(chan error)
		go func() { failed <- get(t.Context(), c) }()
		synctest.Wait()
		c.Hold(time.Minute)
		wantThrottled(t, <-failed, heldDetail)
		if sent != 1 {
			t.Errorf("%d requests sent, want 1", sent)
		}
	})
}

func TestHeldRequestTakesNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, ok, limited(Limits{RequestsPerSecond: 1, Burst: 1, MaxInFlight: 1}))
		c.Hold(time.Second)
		for range 10 {
			wantThrottled(t, get(t.Context(), c), heldDetail)
		}
		time.Sleep(time.Second)
		start := time.Now()
		if err := get(t.Context(), c); err != nil || time.Since(start) != 0 {
			t.Errorf("%v after %s, want the first slot at once", err, time.Since(start))
		}
	})
}

func TestHoldIsReportedAsMetric(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		c := newTransport(t, ok, func(cfg *Config) { cfg.Metrics = NewMetrics(reg) })
		c.Hold(time.Minute)
		// The clock of a bubble starts at midnight UTC 2000-01-01.
		want := `# HELP privatecloud_api_throttled_until_timestamp_seconds Unix time until which a cloud asked to wait; in the past or absent when it does not.
# TYPE privatecloud_api_throttled_until_timestamp_seconds gauge
privatecloud_api_throttled_until_timestamp_seconds{cloud="test"} 9.4668486e+08
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "privatecloud_api_throttled_until_timestamp_seconds"); err != nil {
			t.Error(err)
		}
	})
}
