package rest

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// maxSilence is how long a stream of events may bring nothing: a cloud sends a
	// comment at least every 30 s.
	maxSilence = 75 * time.Second
	// minStream is how long a stream must have lasted to be continued at once.
	minStream = time.Second
	// maxSetPages bounds the calls that a full set takes.
	maxSetPages = 10_000
)

// watchClient reports changes of servers.
type watchClient struct {
	calls        *calls
	exchange     *exchange
	capabilities *capabilityClient
	servers      *serverClient
	ignored      *ignored
}

// Watch reads GET /events. When the stream is open it lists the servers, which is the
// full set, and then reports the events: all that happened since the listing began are
// among them. A stream that ends is continued after its last event. The cloud's clock
// is another one, so events have no AsOf.
func (c *watchClient) Watch(ctx context.Context, report func(cloud.Change) error) error {
	const op = "watch servers"
	has, err := c.capabilities.neededBy(ctx, op)
	if err != nil {
		return err
	}
	if err := require(op, has, cloud.Events); err != nil {
		return err
	}
	ctx, cancel := c.calls.usage.UntilClosed(ctx)
	defer cancel()
	w := &watch{client: c, report: report, has: has}
	for {
		began := time.Now()
		err := w.read(ctx)
		if !w.ended || ctx.Err() != nil || time.Since(began) < minStream {
			return err
		}
	}
}

// watch is one call of Watch.
type watch struct {
	client *watchClient
	report func(cloud.Change) error
	// has is what the cloud can do.
	has cloud.Capabilities
	// token is that of the last event, empty before the first stream is open.
	token string
	// ended is set if the last stream ended by itself, or its connection broke, after
	// it was open.
	ended bool
}

// read opens a stream and reads it to its end, which is an error. Until the stream is
// open it has the client's timeout: a login that did not end would delay all calls.
func (w *watch) read(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opening, end := w.client.calls.transport.WithTimeout(ctx)
	defer end()
	inTime, open := context.AfterFunc(opening, cancel), false
	w.ended = false
	call := &call{
		about: aboutCloud, method: http.MethodGet, route: "/events", path: "/events",
		limit: math.MaxInt64, op: "watch servers", id: newRequestID(),
	}
	if w.token != "" {
		call.query = url.Values{"since": {w.token}}
	}
	call.events = func(got *answer, body io.Reader) *cloud.Error {
		if got.media() != "text/event-stream" {
			return unreadable(call, "the answer is not a stream of events but "+kindOfMedia(got))
		}
		open = inTime()
		return w.follow(ctx, call, newEventReader(&alive{body: body, cancel: cancel}))
	}
	_, failure := w.client.calls.session.authorized(ctx, call)
	switch {
	case failure == nil:
		return &cloud.Error{Kind: cloud.Unavailable, Op: call.op, Detail: "the stream of events ended"}
	case !open && errors.Is(opening.Err(), context.DeadlineExceeded):
		return w.client.exchange.noAnswer(opening, call, opening.Err(), true)
	case failure.status == http.StatusGone:
		failure.err.Kind, failure.err.Detail = cloud.Unavailable, "the cloud does not have the events since the last one any more"
	}
	return failure.err
}

// follow reads the events of a stream, the first of which says that it is open. It
// returns nil at the end of the stream.
func (w *watch) follow(ctx context.Context, call *call, events *eventReader) *cloud.Error {
	for first := true; ; first = false {
		e, err := events.next()
		switch {
		case errors.Is(err, io.EOF):
			w.ended = !first
			return nil
		case events.broken:
			w.ended = !first
			return w.client.exchange.noAnswer(ctx, call, err, true)
		case err != nil:
			return unreadable(call, err.Error())
		case first && e.kind != eventReady:
			return unreadable(call, "the stream of events does not begin with ready")
		case first && w.token == "":
			if err := w.set(ctx); err != nil {
				return asCloudError(call, err)
			}
		}
		if !first || w.token == "" { // a stream that continues has not brought what happened before its ready
			w.token = e.token
		}
		if change, ok, err := e.change(w.has, w.client.ignored); err != nil {
			return unreadable(call, err.Error())
		} else if ok {
			if err := w.report(change); err != nil {
				return asCloudError(call, err)
			}
		}
	}
}

// set lists the servers and reports them as a full set.
func (w *watch) set(ctx context.Context) error {
	asOf, opts := time.Now(), cloud.ListServers{}
	if w.client.capabilities.cached().Has(cloud.Sizing) {
		opts.Limit = maxLimit
	}
	markers := map[string]bool{}
	for range maxSetPages {
		page, err := w.client.servers.ListServers(ctx, opts)
		if err != nil {
			return err
		}
		err = w.report(cloud.Change{AsOf: asOf, Complete: true, More: page.Next != "", Servers: page.Servers})
		if err != nil || page.Next == "" {
			return err
		}
		if markers[page.Next] {
			break
		}
		opts.Marker = page.Next
		markers[page.Next] = true
	}
	return &cloud.Error{Kind: cloud.Unreadable, Op: "list servers", Detail: "the cloud's listing does not end"}
}

// asCloudError returns an error of the caller's as one of the call.
func asCloudError(call *call, err error) *cloud.Error {
	if e, ok := err.(*cloud.Error); ok { //nolint:errorlint // what wraps a cloud error becomes the cause of one
		return e
	}
	return &cloud.Error{Kind: cloud.Unavailable, Op: call.op, Detail: transport.Truncate(err.Error(), maxDetail), Err: err}
}

// alive ends a stream that brings nothing for maxSilence.
type alive struct {
	body   io.Reader
	cancel context.CancelFunc
}

func (a *alive) Read(p []byte) (int, error) {
	silent := time.AfterFunc(maxSilence, a.cancel)
	defer silent.Stop()
	return a.body.Read(p)
}
