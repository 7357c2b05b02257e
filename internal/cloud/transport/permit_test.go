package transport

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestUnpermittedRequestIsNotSent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		method          string
		permitted, read bool
		sent            int
	}{
		"POST, permitted: sent":                    {http.MethodPost, true, false, 1},
		"POST, not permitted: refused":             {http.MethodPost, false, false, 0},
		"PATCH, not permitted: refused":            {http.MethodPatch, false, false, 0},
		"DELETE, not permitted: refused":           {http.MethodDelete, false, false, 0},
		"GET, not permitted: sent":                 {http.MethodGet, false, false, 1},
		"POST that is a read, not permitted: sent": {http.MethodPost, false, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				sent := 0
				c := newTransport(t, func(http.ResponseWriter, *http.Request) { sent++ })
				ctx := cloud.WithPermit(t.Context(), func() bool { return test.permitted })
				err := send(WithCall(ctx, Call{Read: test.read}), c, test.method)
				if (err == nil) != (test.sent == 1) || sent != test.sent {
					t.Errorf("%d requests sent, %v; want %d", sent, err, test.sent)
				}
				if err != nil && (!cloud.Is(err, cloud.Throttled) || cloud.Uncertain(err)) {
					t.Errorf("%v is of kind %s, uncertain: %v; want %s, which says that nothing was sent", err, cloud.KindOf(err), cloud.Uncertain(err), cloud.Throttled)
				}
			})
		})
	}
}

// TestPermitIsReadAfterTheLimiter: a request waits for a slot while its sender
// loses the permit.
func TestPermitIsReadAfterTheLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		c := newTransport(t, func(http.ResponseWriter, *http.Request) { sent++ }, limited(Limits{RequestsPerSecond: 2, Burst: 1, MaxInFlight: 4}))
		var permitted atomic.Bool // the detector of races sees no order between this goroutine and a timer
		permitted.Store(true)
		ctx := cloud.WithPermit(t.Context(), permitted.Load)
		if err := send(ctx, c, http.MethodPost); err != nil {
			t.Fatal(err)
		}
		failed := make(chan error)
		go func() { failed <- send(ctx, c, http.MethodPost) }()
		synctest.Wait()
		permitted.Store(false)
		if err := <-failed; !cloud.Is(err, cloud.Throttled) || !strings.Contains(err.Error(), "does not lead") {
			t.Errorf("the waiting request ended with %v, want a refusal", err)
		}
		if sent != 1 {
			t.Errorf("%d requests sent, want 1", sent)
		}
	})
}

func send(ctx context.Context, c *Transport, method string) error {
	req, err := http.NewRequestWithContext(ctx, method, "http://cloud.invalid/servers", strings.NewReader("{}"))
	if err != nil {
		return err
	}
	resp, err := c.RoundTrip(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
