package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/google/uuid"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// maxPage and maxBody bound the body of a page and of any other answer, in bytes.
	maxPage = 32 << 20
	maxBody = 1 << 20
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
	aboutSnapshot
	aboutOperation
	// aboutConsole is about the console of a server, which some servers may lack.
	aboutConsole
)

// call is a request to the cloud's API, without credentials.
type call struct {
	about  subject
	method string
	// route is the path as a template, for metrics and logs; never an id.
	route string
	// path is escaped and follows the endpoint.
	path  string
	query url.Values
	body  []byte
	// key is sent as Idempotency-Key. It is set only where the cloud honours it: a
	// call with a key is sent again.
	key string
	// sharedNames: the call is a create, and several objects may have its name.
	sharedNames bool
	// op says what is being done, for people.
	op string
	// limit bounds the body of a successful answer, in bytes. With 0 only its
	// status counts, and a body that cannot be read is no failure.
	limit int64
	// stream reads the body of a successful answer while it arrives, once for each
	// try, in place of answer.body. Nil for answers that are read as a whole.
	stream func(*answer, *stream) *cloud.Error
	// events reads a body that ends with the connection. Such a call has no timeout,
	// and is made by authorized. Nil for all others.
	events func(*answer, io.Reader) *cloud.Error

	// id is the request id, the same for each try; do sets it.
	id string
}

// changes reports whether the call changes something in the cloud. Sessions do
// not count: one too many does no harm.
func (c *call) changes() bool {
	return c.method != http.MethodGet && c.about != aboutSession
}

// cloudWide reports whether the call is about the cloud as a whole.
func (c *call) cloudWide() bool { return c.about == aboutCloud || c.about == aboutSession }

// repeatable reports whether sending the call twice has the same effect as once. A deletion
// is not: after the first one, the cloud may have given the id to something else.
func (c *call) repeatable() bool {
	return c.method == http.MethodGet || c.method == http.MethodPost && c.key != ""
}

// refuse returns the error of a call that was not sent.
func refuse(op string, kind cloud.Kind, format string, args ...any) *cloud.Error {
	return &cloud.Error{Kind: kind, Op: op, Detail: fmt.Sprintf(format, args...)}
}

// calls makes calls, each of one request or more.
type calls struct {
	usage     *transport.Usage
	transport *transport.Transport
	session   *session
}

// do makes a call within the client's timeout, and repeats it where that is
// safe and may help. With an error, the answer is the one that the error is
// about; nil if there was none.
func (c *calls) do(ctx context.Context, call *call) (*answer, *cloud.Error) {
	if !c.usage.Begin() {
		return nil, errClosed(call.op)
	}
	defer c.usage.End()
	ctx, cancel := c.transport.WithTimeout(ctx)
	defer cancel()
	call.id = newRequestID()
	var uncertain bool
	for try := 1; ; try++ {
		got, failure := c.session.authorized(ctx, call)
		if failure == nil {
			return got, nil
		}
		// A later refusal does not undo what an earlier try may have done.
		uncertain = uncertain || failure.err.Uncertain
		failure.err.Uncertain = uncertain
		if try == transport.MaxTries || !call.repeatable() || !transport.Transient(failure.err, failure.status) {
			return got, failure.err
		}
		if !transport.Pause(ctx, try) {
			return got, failure.err
		}
	}
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
	return fmt.Sprintf("%q", transport.Truncate(text, 128))
}
