package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-logr/logr"
	"github.com/go-resty/resty/v2"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// answer is what the cloud sent, read to its end or to its bound.
type answer struct {
	status int
	header http.Header
	body   []byte
	// truncated is set when the body of a refusal could not be read completely.
	truncated bool
	// repeated is set when the request was written more than once: the answer is
	// about the last of them, and says nothing of the others.
	repeated bool
	// token is the one that the request had, which must not be quoted.
	token string
	// scrub removes secrets and what differs between calls from a text of the answer; nil for none.
	scrub func(string) string
	// secret is set when the answer may have a secret that scrub does not know.
	secret bool
	// target is the host that a redirect points to, without secrets, else empty.
	target string
}

// media returns the media type of the body, lower case and without parameters, which
// may be invalid.
func (a *answer) media() string {
	media, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return media
}

// json reports whether the body is JSON. Where the media type does not say so, the
// first character of the body decides.
func (a *answer) json() bool { return a.jsonType() || !a.html() && startsAsJSON(a.body) }

// jsonType reports whether the media type is one of JSON.
func (a *answer) jsonType() bool {
	media := a.media()
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// html reports whether the answer comes from a proxy, a portal or a firewall:
// the cloud was asked for JSON. A page may lack the media type of one.
func (a *answer) html() bool {
	media := a.media()
	return media == "text/html" || media == "application/xhtml+xml" || !a.jsonType() && startsAsHTML(a.body)
}

func (a *answer) successful() bool { return a.status >= 200 && a.status < 300 }

// failure is why a try failed.
type failure struct {
	err *cloud.Error
	// status is that of the answer that err is about, 0 if there was none. Where
	// the login failed, that answer is the one to the login.
	status int
}

// failed returns the failure that err is, nil if err is; got may be nil.
func failed(got *answer, err *cloud.Error) *failure {
	switch {
	case err == nil:
		return nil
	case got == nil:
		return &failure{err: err}
	default:
		return &failure{err: err, status: got.status}
	}
}

// exchange sends single requests, and reads and classifies the answers.
type exchange struct {
	// endpoint is without a trailing slash.
	endpoint   string
	agent      string
	transport  *transport.Transport
	resty      *resty.Client
	classifier *classifier
	scrubber   *scrubber
	log        logr.Logger
}

// newExchange returns the exchange of a client with cfg.
func newExchange(t *transport.Transport, endpoint *url.URL, cfg Config) *exchange {
	texts := newScrubber(endpoint.Hostname(), cfg.Credentials)
	return &exchange{
		endpoint:   strings.TrimRight(endpoint.String(), "/"),
		agent:      fmt.Sprintf("private-cloud-operator/%s", cfg.Version),
		transport:  t,
		resty:      resty.NewWithClient(t.Client()).SetLogger(silent{}).SetRetryCount(0),
		classifier: &classifier{scrubber: texts, transport: t, advice: cfg.Credentials.advice()},
		scrubber:   texts,
		log:        cfg.Log.WithValues("cloud", cfg.Name),
	}
}

// silent keeps resty from logging: its lines may hold addresses and headers.
type silent struct{}

func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Debugf(string, ...any) {}

// once sends the call once and classifies the answer.
func (x *exchange) once(ctx context.Context, call *call, token string) (*answer, *failure) {
	got, err := x.send(ctx, call, token)
	if err == nil {
		err = x.classifier.classify(call, got, token)
	}
	if err != nil {
		err.Uncertain = err.Uncertain || (got != nil && got.repeated && call.changes())
		x.log.V(1).Info("the call failed", "requestID", call.id, "kind", err.Kind, "uncertain", err.Uncertain)
	}
	return got, failed(got, err)
}

// send sends the call and reads the answer, whatever it says.
func (x *exchange) send(ctx context.Context, call *call, token string) (*answer, *cloud.Error) {
	ctx, sent := transport.TraceSent(transport.WithCall(ctx, transport.Call{
		Route: call.route, CloudWide: call.cloudWide(), MaxBody: cmp.Or(call.limit, transport.MaxErrorBody), Stream: call.events != nil,
	}))
	resp, err := x.request(ctx, call, token).Execute(call.method, x.endpoint+call.path)
	if err != nil {
		return nil, x.noAnswer(ctx, call, err, sent() > 0)
	}
	raw := resp.RawResponse
	defer func() { _ = raw.Body.Close() }()
	got := &answer{status: raw.StatusCode, header: raw.Header, repeated: sent() > 1, token: token, secret: call.about == aboutSession}
	got.scrub = func(text string) string { return x.scrubber.scrubbed(text, got.header, token, call.id) }
	if location, err := raw.Location(); err == nil {
		got.target = x.scrubber.redactor.Redact(transport.Truncate(transport.Printable(location.Host), maxRedacted), token)
	}
	media := transport.Truncate(transport.Printable(got.header.Get("Content-Type")), maxRedacted)
	if x.scrubber.redactor.Redact(media, token) != media {
		got.header.Del("Content-Type") // errors quote it
	}
	accepted := accepts(call, got)
	if accepted && call.stream != nil {
		return got, x.readStream(ctx, call, got, raw.Body)
	}
	if accepted && call.events != nil {
		return got, call.events(got, raw.Body)
	}
	var from io.Reader = raw.Body
	if !accepted {
		// A success that the call does not accept is as bounded as a refusal.
		from = io.LimitReader(from, transport.MaxErrorBody)
	}
	body, err := io.ReadAll(from)
	switch {
	case err == nil:
		got.body = body
	case call.limit == 0 || !got.successful():
		got.truncated = true
	default:
		return got, x.noAnswer(ctx, call, err, true)
	}
	return got, nil
}

// request prepares one exchange. Resty leaves the body of the answer alone, so
// that it is read within its bound.
func (x *exchange) request(ctx context.Context, call *call, token string) *resty.Request {
	r := x.resty.R().SetContext(ctx).SetDoNotParseResponse(true).
		SetHeader("Accept", "application/json").
		SetHeader("User-Agent", x.agent).
		SetHeader("X-Request-Id", call.id)
	if call.events != nil {
		r.SetHeader("Accept", "text/event-stream").SetHeader("Accept-Encoding", "identity") // compression may hold events back
	}
	if token != "" {
		r.SetHeader("Authorization", "Bearer "+token)
	}
	if call.key != "" {
		r.SetHeader("Idempotency-Key", call.key)
	}
	if call.body != nil {
		r.SetHeader("Content-Type", "application/json").SetBody(call.body)
	}
	if len(call.query) > 0 {
		r.SetQueryParamsFromValues(call.query)
	}
	return r
}

// noAnswer is the error of a call to which no complete answer came. sent is
// whether the cloud may have got the request.
func (x *exchange) noAnswer(ctx context.Context, call *call, err error, sent bool) *cloud.Error {
	e := x.transport.Classify(ctx, err)
	e.Op, e.Uncertain = call.op, sent && call.changes()
	return e
}
