package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
	"github.com/gophercloud/gophercloud/v2"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	// maxBody and maxList bound the body of an answer about one object and of a listing
	// that is read as a whole, in bytes.
	maxBody = 1 << 20
	maxList = 8 << 20
)

// subject is what a call is about. It decides what a status means.
type subject int

const (
	aboutCloud subject = iota
	aboutSession
	aboutCreate
	aboutServer
	aboutNetwork
	aboutImage
)

// call is a request to a service, without the token.
type call struct {
	about   subject
	service service
	method  string
	// route is the path as a template, for metrics and logs; never an id.
	route string
	// path is escaped and follows the base URL of the service.
	path   string
	query  url.Values
	header map[string]string
	body   any
	// op says what is being done, for people.
	op string
	// out takes the JSON of a successful answer; nil if only the status counts.
	out any
	// stream reads the body of a successful answer in place of out, once for each try.
	stream func(io.Reader) *cloud.Error
	// microversion of the compute service, if it is not that of the session.
	microversion string
	// limit bounds the body of a successful answer in bytes; maxBody if zero.
	limit int64
}

// changes reports whether the call changes something in the cloud. Sessions do not
// count: one too many does no harm.
func (c *call) changes() bool { return c.method != http.MethodGet && c.about != aboutSession }

// cloudWide reports whether the call is about the cloud as a whole.
func (c *call) cloudWide() bool { return c.about == aboutCloud || c.about == aboutSession }

// repeatable reports whether sending the call twice has the same effect as once. A deletion
// is not: something else may have its id by then.
func (c *call) repeatable() bool { return c.method == http.MethodGet }

// answer is what a service sent to a call that it accepted.
type answer struct {
	status int
	header http.Header
}

// failure is why a try failed. status is that of the answer, 0 if there was none.
type failure struct {
	err    *cloud.Error
	status int
}

// do makes a call with the token of the session, and repeats it where that is safe and
// may help.
func (c *Client) do(ctx context.Context, call *call) *cloud.Error {
	if call.service == compute && call.changes() {
		defer c.hasChanged()
	}
	var uncertain bool
	for try := 1; ; try++ {
		failed := c.authorized(ctx, call)
		if failed == nil {
			return nil
		}
		// A later refusal does not undo what an earlier try may have done.
		uncertain = uncertain || failed.err.Uncertain
		failed.err.Uncertain = uncertain
		if try == transport.MaxTries || !call.repeatable() || !transport.Transient(failed.err, failed.status) {
			return failed.err
		}
		if !transport.Pause(ctx, try) {
			return failed.err
		}
	}
}

// hasChanged makes a watch ask what changed.
func (c *Client) hasChanged() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// authorized makes one try with a token. A 401 to a request that was sent once proves
// that nothing was done, so after a new login any call may be sent again.
func (c *Client) authorized(ctx context.Context, call *call) *failure {
	got, err := c.grant(ctx, call.op, nil)
	if err != nil {
		return &failure{err: err}
	}
	answer, err := c.exchange(ctx, call, got)
	if err == nil {
		return nil
	}
	if answer.status != http.StatusUnauthorized || err.Uncertain {
		return &failure{err: err, status: answer.status}
	}
	if got, err = c.grant(ctx, call.op, got); err != nil {
		return &failure{err: err}
	}
	if answer, err = c.exchange(ctx, call, got); err == nil {
		return nil
	}
	if answer.status == http.StatusUnauthorized {
		c.session.distrust(got)
		err.Detail = freshRefused
	}
	return &failure{err: err, status: answer.status}
}

// exchange sends a call once, through gophercloud, and reads the answer. The answer is
// that of a refusal too; its status is 0 if there was none.
func (c *Client) exchange(ctx context.Context, call *call, g *grant) (*answer, *cloud.Error) {
	limit := call.limit
	if limit == 0 {
		limit = maxBody
	}
	ctx, sent := transport.TraceSent(transport.WithCall(ctx, transport.Call{
		Route: call.route, CloudWide: call.cloudWide(), MaxBody: limit,
	}))
	target := g.services[call.service] + call.path
	if len(call.query) > 0 {
		target += "?" + call.query.Encode()
	}
	// Services log the id that they are given. The log of the transport has it too.
	id := "req-" + uuid.NewString()
	header := map[string]string{"X-Openstack-Request-Id": id, "X-Request-Id": id}
	maps.Copy(header, call.header)
	client := &gophercloud.ServiceClient{ProviderClient: c.provider(g.token), Endpoint: g.services[call.service]}
	if call.service == compute && g.microversion != "" {
		client.Type, client.Microversion = string(compute), cmp.Or(call.microversion, g.microversion)
	}
	resp, err := client.Request(ctx, call.method, target, &gophercloud.RequestOpts{
		JSONBody: call.body, MoreHeaders: header, KeepResponseBody: true,
		OkCodes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent},
	})
	if refused, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		e := c.classify(call, refused.Actual, refused.ResponseHeader, refused.Body, g.token)
		e.Uncertain = e.Uncertain || (sent() > 1 && call.changes())
		return &answer{status: refused.Actual, header: refused.ResponseHeader}, e
	}
	if err != nil {
		return &answer{}, c.noAnswer(ctx, call, err, sent() > 0)
	}
	defer func() { _ = resp.Body.Close() }()
	got := &answer{status: resp.StatusCode, header: resp.Header}
	return got, c.read(ctx, call, got, resp.Body)
}

// read reads the body of an answer that a service accepted.
func (c *Client) read(ctx context.Context, call *call, got *answer, body io.Reader) *cloud.Error {
	if call.stream != nil {
		return call.stream(&brokenBody{Reader: body, classify: func(err error) *cloud.Error { return c.noAnswer(ctx, call, err, true) }})
	}
	data, err := io.ReadAll(body)
	if call.out == nil {
		return nil // the status says all
	}
	if err != nil {
		return c.noAnswer(ctx, call, err, true)
	}
	if err := json.Unmarshal(data, call.out); err != nil {
		return unreadable(call, "the answer is not the JSON that the service defines, but "+media(got.header))
	}
	return nil
}

// brokenBody is a body that was not read to its end reports it as a cloud.Error.
type brokenBody struct {
	io.Reader
	classify func(error) *cloud.Error
}

func (b *brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.classify(err)
	}
	return n, err
}

// noAnswer is the error of a call to which no complete answer came. sent is whether the
// cloud may have got the request.
func (c *Client) noAnswer(ctx context.Context, call *call, err error, sent bool) *cloud.Error {
	e := c.transport.Classify(ctx, err)
	e.Op, e.Uncertain = call.op, sent && call.changes()
	return e
}

// unreadable is the error of an answer that cannot be understood. The call may have
// taken effect.
func unreadable(call *call, detail string) *cloud.Error {
	return &cloud.Error{Kind: cloud.Unreadable, Op: call.op, Detail: detail, Uncertain: call.changes()}
}

// media describes the body of an answer.
func media(header http.Header) string {
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	if kind = strings.TrimSpace(kind); kind == "" {
		return "a body without a content type"
	}
	return transport.Truncate(transport.Printable(kind), 64)
}
