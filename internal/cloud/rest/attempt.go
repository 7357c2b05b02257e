package rest

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

var errTooLarge = errors.New("answer too large")

// answer is what the cloud sent, read to its end or to its bound.
type answer struct {
	status int
	header http.Header
	body   []byte
	// cut tells that the body of a refusal did not come whole.
	cut bool
	// target is the host that a redirect points to, else empty.
	target string
}

// media is the type of the body, lower case and without parameters.
func (a *answer) media() string {
	media, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return media
}

func (a *answer) json() bool {
	media := a.media()
	return media == "application/json" || strings.HasSuffix(media, "+json")
}

// html tells that a proxy, a portal or a firewall speaks: the cloud was asked
// for JSON.
func (a *answer) html() bool {
	media := a.media()
	return media == "text/html" || media == "application/xhtml+xml"
}

// attempt sends the call once, when its turn comes.
func (c *Client) attempt(ctx context.Context, call *call, token string) (*answer, *cloud.Error) {
	if err := c.held(call); err != nil {
		return nil, err
	}
	done, away := c.turns.take(ctx, flowOf(ctx, call), c.patience(call))
	switch {
	case away > 0:
		err := call.fail(cloud.Throttled, "too many calls to the cloud at once")
		err.RetryAfter = away
		return nil, err
	case done == nil:
		return nil, c.failure(ctx, call, ctx.Err(), false)
	}
	defer done()
	// The gate may have closed while this call waited for its turn.
	if err := c.held(call); err != nil {
		return nil, err
	}
	start := time.Now()
	ended := c.metrics.began(c.name)
	got, err := c.exchange(ctx, call, token)
	if err == nil {
		err = c.verdict(call, got, token)
	}
	c.heed(err, got)
	took := time.Since(start)
	ended(call, got, took)
	c.note(call, got, err, took)
	return got, err
}

// patience is how long a call stands in line. Those about the cloud as a whole
// are few and stand to the end: that others are many must not look like the
// cloud being away.
func (c *Client) patience(call *call) time.Duration {
	if call.everyones() {
		return c.timeout
	}
	return maxTurnWait
}

// flowOf is the flow that a call takes its turn in. What everybody waits for is
// of none, whoever asked first.
func flowOf(ctx context.Context, call *call) cloud.Flow {
	if call.everyones() {
		return cloud.Flow{}
	}
	return cloud.FlowOf(ctx)
}

// exchange sends the call and reads the answer, whatever it says.
func (c *Client) exchange(ctx context.Context, call *call, token string) (*answer, *cloud.Error) {
	var sent atomic.Bool
	// Headers precede the body, so a cloud that never saw them whole cannot have
	// acted.
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { sent.Store(true) },
	})
	resp, err := c.request(traced, call, token).Execute(call.method, c.endpoint+call.path)
	if err != nil {
		return nil, c.failure(ctx, call, err, sent.Load())
	}
	raw := resp.RawResponse
	defer func() { _ = raw.Body.Close() }()
	got := &answer{status: raw.StatusCode, header: raw.Header}
	if location, err := raw.Location(); err == nil {
		got.target = location.Host
	}
	if call.limit == 0 || !success(got.status) {
		got.body, err = read(raw.Body, maxProblem)
		got.cut = err != nil
		return got, nil
	}
	if got.body, err = read(raw.Body, call.limit); err != nil {
		failed := c.failure(ctx, call, err, true)
		failed.Status = got.status
		if errors.Is(err, errTooLarge) {
			failed.Detail = "the answer is larger than " + strconv.FormatInt(call.limit>>20, 10) + " MiB"
		}
		return got, failed
	}
	return got, nil
}

func success(status int) bool { return status >= 200 && status < 300 }

func read(body io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, errTooLarge
	}
	return data, nil
}

// held refuses a call while the gate is shut.
func (c *Client) held(call *call) *cloud.Error {
	left := c.gate.remaining()
	if left <= 0 {
		return nil
	}
	err := call.fail(cloud.Throttled, "the cloud asked to be left alone for a while")
	err.RetryAfter = spread(left)
	return err
}

// heed closes the gate when the cloud asks to be left alone.
func (c *Client) heed(err *cloud.Error, got *answer) {
	if err == nil || got == nil {
		return
	}
	if err.Kind != cloud.Throttled && err.Status != http.StatusServiceUnavailable {
		return
	}
	wait, asked := parseRetryAfter(got.header, time.Now())
	if !asked && err.Kind == cloud.Throttled {
		wait = defaultRetryAfter
	}
	if wait <= 0 {
		return
	}
	err.RetryAfter = wait
	c.metrics.throttled(c.name, c.gate.close(wait))
}

// note logs one exchange. Nothing of the bodies and no header but the request
// ids goes into the log.
func (c *Client) note(call *call, got *answer, err *cloud.Error, took time.Duration) {
	log := c.log.V(1)
	if !log.Enabled() {
		return
	}
	fields := []any{
		"method", call.method, "route", call.route, "requestID", call.id, "duration", took.Round(time.Microsecond).String(),
	}
	if got != nil {
		fields = append(fields, "status", got.status,
			"answerID", truncate(printable(got.header.Get("X-Request-Id")), 128))
	}
	if err != nil {
		fields = append(fields, "kind", err.Kind, "uncertain", err.Uncertain)
	}
	log.Info("called the cloud", fields...)
}
