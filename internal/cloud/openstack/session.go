package openstack

import (
	"context"
	"net/http"
	"strings"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// session makes calls to the services of the project, until it is closed.
type session struct {
	exchange *exchange
	auth     *auth
	usage    *transport.Usage
	// changed has an element after a call that may have changed a server.
	changed chan struct{}
}

// newSession returns a session that has not logged in yet.
func newSession(cfg Config) (*session, error) {
	endpoint, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	if err := cfg.checkAuthURL(endpoint); err != nil {
		return nil, err
	}
	credentials := cfg.Credentials
	held := cfg.Holds.Of(cfg.Name, cfg.Endpoint, append(credentials.identity(), cfg.Project)...)
	t, err := transport.New(transport.Config{
		Name: cfg.Name, Host: endpoint.Hostname(), CA: cfg.CA, InsecureSkipVerify: cfg.InsecureSkipVerify,
		Limits: cfg.Limits, Timeout: cfg.Timeout, Metrics: cfg.Metrics, Tracer: cfg.Tracer, Log: cfg.Log, Base: cfg.Base, Hold: &held.Requests,
	})
	if err != nil {
		return nil, err
	}
	x := &exchange{
		transport: t, http: t.Client(), redactor: transport.NewRedactor(credentials.secrets()...),
		version: cfg.Version, advice: credentials.advice(),
	}
	return &session{
		exchange: x, usage: transport.NewUsage(), changed: make(chan struct{}, 1),
		auth: &auth{
			exchange: x, credentials: credentials, project: cfg.Project, login: &held.Login,
			services: locator{
				endpoint: strings.TrimRight(endpoint.String(), "/"), encrypted: endpoint.Scheme == "https", host: endpoint.Hostname(),
				region: cfg.Region, catalogInterface: cfg.Interface, overrides: cfg.Endpoints, allowHTTP: cfg.AllowHTTP,
			},
		},
	}, nil
}

// begin starts a call: it ends with the client's timeout, and end must be called.
func (s *session) begin(ctx context.Context, op string) (bounded context.Context, end func(), err *cloud.Error) {
	if !s.usage.Begin() {
		return nil, nil, refuse(op, cloud.Unavailable, "the client is closed; another has replaced it")
	}
	if ctx.Err() != nil {
		s.usage.End()
		return nil, nil, s.ended(ctx, op)
	}
	bounded, cancel := s.exchange.transport.WithTimeout(ctx)
	return bounded, func() { cancel(); s.usage.End() }, nil
}

// beginAbout is begin for a call about one server or network. With an empty id it would
// be about all of them, and one that is no id would change the path.
func (s *session) beginAbout(ctx context.Context, op, id string) (bounded context.Context, end func(), err *cloud.Error) {
	switch {
	case id == "":
		return nil, nil, refuse(op, cloud.Rejected, "no id was given")
	case ctx.Err() == nil && !isID(id):
		return nil, nil, refuse(op, cloud.NotFound, "no id of this cloud looks like that")
	}
	return s.begin(ctx, op)
}

// ended is the error of a call whose context has ended.
func (s *session) ended(ctx context.Context, op string) *cloud.Error {
	e := s.exchange.transport.Classify(ctx, ctx.Err())
	e.Op = op
	return e
}

// project returns the id of the project.
func (s *session) project(ctx context.Context, op string) (string, *cloud.Error) {
	got, err := s.auth.grant(ctx, op, nil)
	if err != nil {
		return "", err
	}
	return got.project, nil
}

// failure is why a try failed. status is that of the answer, 0 if there was none.
type failure struct {
	err    *cloud.Error
	status int
}

// do makes a call with the token of the session, and repeats it where that is safe and
// may help.
func (s *session) do(ctx context.Context, call *call) *cloud.Error {
	if call.service == compute && call.changes() {
		defer s.hasChanged()
	}
	var uncertain bool
	for try := 1; ; try++ {
		failed := s.authorized(ctx, call)
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

// hasChanged notifies a watch, which asks what changed.
func (s *session) hasChanged() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// authorized makes one try with a token. A 401 to a request that was sent once proves
// that nothing was done, so after a new login any call may be sent again.
func (s *session) authorized(ctx context.Context, call *call) *failure {
	got, err := s.auth.grant(ctx, call.op, nil)
	if err != nil {
		return &failure{err: err}
	}
	answer, err := s.exchange.send(ctx, call, got)
	if err == nil {
		return nil
	}
	if answer.status != http.StatusUnauthorized || err.Uncertain {
		return &failure{err: err, status: answer.status}
	}
	if got, err = s.auth.grant(ctx, call.op, got); err != nil {
		return &failure{err: err}
	}
	if answer, err = s.exchange.send(ctx, call, got); err == nil {
		return nil
	}
	if answer.status == http.StatusUnauthorized {
		s.auth.distrust(got)
		err.Detail = freshRefused
	}
	return &failure{err: err, status: answer.status}
}

// close waits for the calls under way, ends the session, if there is one, and closes
// idle connections. Later calls fail with Unavailable. The second close does nothing.
func (s *session) close(ctx context.Context) {
	if !s.usage.Close(ctx) {
		return
	}
	defer s.exchange.transport.CloseIdleConnections()
	s.auth.revoke(ctx)
}
