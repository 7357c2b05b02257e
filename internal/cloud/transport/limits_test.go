package transport

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
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
		// Four at once, ten within the second that a request waits at most. The fifth of the
		// burst is kept for other flows.
		if len(sent) != 14 || slices.Max(sent) > maxWait {
			t.Errorf("%d sent, the last after %s; want 14 within %s", len(sent), slices.Max(sent), maxWait)
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

func TestLimitKeepsSlotUntilBodyIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, ok, limited(Limits{RequestsPerSecond: 1000, Burst: 100, MaxInFlight: 1}))
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		wantThrottled(t, get(t.Context(), c), "too many calls to the cloud at once")
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if err := get(t.Context(), c); err != nil {
			t.Errorf("after the body was closed: %v", err)
		}
	})
}

func TestLimitReleasesSlotOfFailedRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, nil, limited(Limits{RequestsPerSecond: 1000, Burst: 100, MaxInFlight: 1}), func(cfg *Config) { cfg.Base = failing(io.EOF) })
		for range 3 {
			if err := get(t.Context(), c); !errors.Is(err, io.EOF) {
				t.Errorf("%v, want the failure of the base", err)
			}
		}
	})
}

func TestLimitLetsCloudWideCallsWaitForTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(3 * time.Second)
			ok(w, r)
		}, limited(Limits{RequestsPerSecond: 1000, Burst: 100, MaxInFlight: 1}))
		var all sync.WaitGroup
		all.Go(func() { _ = get(t.Context(), c) })
		synctest.Wait()
		ctx := cloud.WithFlow(t.Context(), "flow")
		wantThrottled(t, get(ctx, c), "too many calls to the cloud at once")
		if err := get(WithCall(ctx, Call{CloudWide: true}), c); err != nil {
			t.Errorf("a cloud-wide call: %v", err)
		}
		all.Wait()
	})
}

func TestCloudWideCallBelongsToNoFlow(t *testing.T) {
	t.Parallel()
	ctx := cloud.WithFlow(t.Context(), "flow")
	if got := (Call{CloudWide: true}).flow(ctx); got != (cloud.Flow{}) {
		t.Errorf("flow %+v of a cloud-wide call, want none", got)
	}
	if got := callOf(ctx).flow(ctx); got != cloud.FlowOf(ctx) {
		t.Errorf("flow %+v of another call, want %+v", got, cloud.FlowOf(ctx))
	}
}

// refusedBody records that it was closed.
type refusedBody struct {
	io.Reader
	closed bool
}

func (b *refusedBody) Close() error {
	b.closed = true
	return nil
}

func TestRefusedRequestHasItsBodyClosed(t *testing.T) {
	t.Parallel()
	c := newTransport(t, ok)
	c.Hold(time.Minute)
	body := &refusedBody{Reader: strings.NewReader("{}")}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	wantThrottled(t, err, heldDetail)
	if !body.closed {
		t.Error("the request's body is open")
	}
}
