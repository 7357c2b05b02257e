package transport

import (
	"cmp"
	"context"
	"crypto/x509"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
)

// Config describes how to reach one cloud.
type Config struct {
	// Name is the Cloud's name; it labels metrics and logs.
	Name string
	// Host is the host name of the cloud's endpoint, for error texts.
	Host string
	// CA is PEM. Where set, it alone is trusted; else the system's roots are.
	CA []byte
	// InsecureSkipVerify accepts any certificate.
	InsecureSkipVerify bool
	// HTTP1 keeps to HTTP/1.1, for clouds whose HTTP/2 is not to be relied on.
	HTTP1  bool
	Limits Limits
	// Timeout bounds the wait for the headers of an answer, but for that to a LongPoll,
	// what WithTimeout returns, and how long a cloud-wide call waits for the limiter.
	Timeout time.Duration
	// Metrics may be nil.
	Metrics *Metrics
	// Tracer makes the spans of requests; nil for none.
	Tracer trace.Tracer
	// Hold is kept beyond this Transport; nil for one of its own.
	Hold *Hold
	// Log gets one line a request at V(1); the zero Logger is silent.
	Log logr.Logger
	// Base sends the requests; nil for connections of this Transport's own.
	Base http.RoundTripper
}

// Transport sends the requests to one cloud. It is safe for concurrent use.
type Transport struct {
	host    string
	timeout time.Duration
	hold    *Hold
	series  *series
	base    http.RoundTripper
	chain   http.RoundTripper
	limits  Limits
	limiter *sharedLimiter
}

// New returns the transport to the cloud that cfg describes. It makes no
// request. Its errors say what is wrong with cfg and what to do.
func New(cfg Config) (*Transport, error) {
	limits, err := cfg.Limits.withDefaults()
	if err != nil {
		return nil, err
	}
	var roots *x509.CertPool
	if len(cfg.CA) > 0 {
		if roots, err = parseCA(cfg.CA); err != nil {
			return nil, err
		}
	}
	t := &Transport{
		host: cfg.Host, timeout: cfg.Timeout, base: cfg.Base,
		hold: cmp.Or(cfg.Hold, &Hold{}), series: cfg.Metrics.of(cfg.Name), limits: limits, limiter: newSharedLimiter(limits),
	}
	if t.base == nil {
		t.base = newBase(cfg, limits, roots)
	}
	// From the inside out: what is added last sees a request first.
	rt := sendOnce(t.base)
	rt = followRedirects(rt)
	rt = boundBody(rt)
	rt = logRequests(rt, cfg.Log.WithValues("cloud", cfg.Name), t.Classify)
	rt = measure(rt, t.series)
	rt = observeRetryAfter(rt, t.Hold)
	// The hold may have begun while the request waited for the limiter.
	rt = refuseWhileHeld(rt, t.hold)
	rt = refuseUnpermitted(rt)
	rt = traceAdmitted(rt, cfg.Tracer)
	rt = limit(rt, t.limiter, cfg.Timeout)
	rt = refuseWhileHeld(rt, t.hold)
	t.chain = traceCalls(rt, cfg.Tracer, cfg.Name, t.Classify)
	return t, nil
}

// RoundTrip sends a request. It fails with a *cloud.Error of Kind Throttled, in
// whose chain there is no other error, when the request was not sent because of
// the limits or of a Retry-After.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.chain.RoundTrip(req)
}

// Client returns an http.Client for this transport. It follows no redirect
// itself: the transport did so where that is safe.
func (t *Transport) Client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Hold refuses requests for d from now, for backends whose cloud asks for it in
// another way than by status 429 or 503.
func (t *Transport) Hold(d time.Duration) {
	if until := t.hold.start(d); !until.IsZero() {
		t.series.throttled(until)
	}
}

// WithTimeout returns a context that ends after Config.Timeout. Classify
// distinguishes that end from the end of ctx.
func (t *Transport) WithTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, t.timeout, errTimedOut)
}

// CloseIdleConnections closes the connections that carry no request now.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// roundTripper is a function that is an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// refuse fails a request that is not sent. A RoundTripper owes the caller that
// the body is closed.
func refuse(req *http.Request, err error) (*http.Response, error) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, err
}
