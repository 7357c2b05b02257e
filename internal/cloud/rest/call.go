package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// maxPage and maxBody bound the body of a page and of any other answer, in bytes.
	maxPage = 32 << 20
	maxBody = 1 << 20
	// maxProblem bounds how much is read of a refusal, whose status alone would do.
	maxProblem = 64 << 10
	// maxTries is the first try and two more.
	maxTries = 3
	// retryPause is the mean pause before the second try; it doubles after.
	retryPause = 200 * time.Millisecond
)

// subject is what a call is about. It decides what a status without a code means.
type subject int

const (
	aboutCloud subject = iota
	aboutSession
	aboutName
	aboutCreate
	aboutServer
	aboutNetwork
)

// call is a request in the cloud's terms, before credentials and limits.
type call struct {
	about  subject
	method string
	// route is the path as a template, for metrics and logs; never an id.
	route string
	// path is escaped and follows the endpoint.
	path  string
	query url.Values
	body  []byte
	// key is sent as Idempotency-Key and is set only where the cloud honours it:
	// net/http itself sends a POST with that header again when a connection breaks.
	key string
	// op says what is being done, for people.
	op string
	// limit bounds the body, in bytes. With 0 the status says all and the body is
	// read only as far as maxProblem.
	limit int64

	// id is the request id, the same for each try; serve fills it in.
	id string
}

// changes tells whether the call changes something in the cloud. Sessions do
// not count: one too many does no harm.
func (c *call) changes() bool {
	return c.method != http.MethodGet && c.about != aboutSession
}

// everyones tells whether the call is about the cloud as a whole.
func (c *call) everyones() bool { return c.about == aboutCloud || c.about == aboutSession }

// repeatable tells whether sending the call twice is as good as once.
func (c *call) repeatable() bool {
	switch c.method {
	case http.MethodGet, http.MethodDelete:
		return true
	case http.MethodPost:
		return c.key != ""
	default:
		return false
	}
}

func (c *call) fail(kind cloud.Kind, format string, args ...any) *cloud.Error {
	return &cloud.Error{Kind: kind, Op: c.op, Detail: fmt.Sprintf(format, args...)}
}

// refuse is fail for a call that was never sent.
func refuse(op string, kind cloud.Kind, format string, args ...any) *cloud.Error {
	return &cloud.Error{Kind: kind, Op: op, Detail: fmt.Sprintf(format, args...)}
}

var errTimedOut = errors.New("the call's own timeout")

// serve makes a call within the client's timeout. The answer is nil where none
// came; with an error it is the one that the error is about.
func (c *Client) serve(ctx context.Context, call *call) (*answer, *cloud.Error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimedOut)
	defer cancel()
	call.id = newRequestID()
	var uncertain bool
	for try := 1; ; try++ {
		got, err := c.authorized(ctx, call)
		if err == nil {
			return got, nil
		}
		// What an earlier try may have done, a later refusal does not undo.
		uncertain = uncertain || err.Uncertain
		err.Uncertain = uncertain
		if try == maxTries || !call.repeatable() || !transient(err) {
			return got, err
		}
		mean := retryPause << (try - 1)
		if !pause(ctx, mean/2+rand.N(mean)) { //nolint:gosec // spreads load, hides nothing
			return got, err
		}
	}
}

// transient tells whether the next try, a moment later, may fare better.
func transient(err *cloud.Error) bool {
	if errors.Is(err.Err, context.DeadlineExceeded) || errors.Is(err.Err, context.Canceled) {
		return false
	}
	if errors.Is(err.Err, io.ErrUnexpectedEOF) {
		return true
	}
	passing := err.Status == 0 || err.Status >= 500 || err.Status == http.StatusRequestTimeout
	return err.Kind == cloud.Unavailable && err.RetryAfter == 0 && passing
}

func newRequestID() string { return uuid.NewString() }

// encode returns v as JSON. The types of this package always have one.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("rest: encoding %T: %v", v, err))
	}
	return data
}

// quote bounds what people typed, for an op.
func quote(text string) string {
	return fmt.Sprintf("%q", truncate(text, 128))
}

// truncate cuts text after limit runes.
func truncate(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}
