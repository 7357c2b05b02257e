package rest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// session is the token that the cloud gave for a username and a password.
type session struct {
	login *transport.Login

	mu      sync.Mutex
	token   string
	renewAt time.Time
	// closed is set when there is no further login, so that no session outlives
	// the client.
	closed bool
}

// current returns the token, empty when a login is needed; stale is one that
// the cloud refused.
func (s *session) current(stale string) (string, *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", &failure{err: errClosed("")}
	}
	if refusal := s.login.Refused(); refusal != nil {
		return "", &failure{err: refusal}
	}
	// renewAt is zero where the cloud gave no expiry.
	if s.token == stale || !s.renewAt.IsZero() && !time.Now().Before(s.renewAt) {
		return "", nil
	}
	return s.token, nil
}

func (s *session) opened(token string, expires time.Time) {
	s.login.Accept()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.renewAt = token, transport.RenewalTime(expires)
}

// close returns the token of the session to end, empty if there is none.
func (s *session) close() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.token
}

func (s *session) refused(refusal *cloud.Error) {
	s.login.Refuse(refusal)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = ""
}

// authorized makes one try with credentials. A 401 to a request that was sent once
// proves that nothing was done, so after renewing the session any call may be sent
// again.
func (c *Client) authorized(ctx context.Context, call *call) (*answer, *failure) {
	if !c.credentials.session() {
		return c.exchange.once(ctx, call, c.credentials.Token)
	}
	token, failure := c.token(ctx, call, "")
	if failure != nil {
		return nil, failure
	}
	got, failure := c.exchange.once(ctx, call, token)
	if failure == nil || failure.status != http.StatusUnauthorized || failure.err.Uncertain {
		return got, failure
	}
	if token, failure = c.token(ctx, call, token); failure != nil {
		return nil, failure
	}
	return c.exchange.once(ctx, call, token)
}

// token returns the session's token, other than stale, logging in where there
// is none. At most one call logs in at a time.
func (c *Client) token(ctx context.Context, call *call, stale string) (string, *failure) {
	token, refusal := c.session.current(stale)
	if token == "" && refusal == nil {
		end, err := c.session.login.Begin(ctx)
		if err != nil {
			return "", &failure{err: c.exchange.noAnswer(ctx, call, err, false)}
		}
		defer end()
		// Another call may have logged in meanwhile.
		if token, refusal = c.session.current(stale); token == "" && refusal == nil {
			token, refusal = c.logIn(ctx, call)
		}
	}
	if refusal != nil {
		return "", loginFailed(call, refusal)
	}
	return token, nil
}

// loginFailed returns what a failed login means for the call that needs it.
func loginFailed(call *call, cause *failure) *failure {
	e := *cause.err
	e.Op, e.Uncertain = call.op, false
	e.Detail = "logging in: " + e.Detail
	return &failure{err: &e, status: cause.status}
}

// logIn opens a session. The caller has begun a login.
func (c *Client) logIn(ctx context.Context, cause *call) (string, *failure) {
	login := &call{
		about: aboutSession, method: http.MethodPost, route: "/sessions", path: "/sessions",
		body:  encode(wireLogin{Username: c.credentials.Username, Password: c.credentials.Password}),
		limit: maxBody, op: "open session", id: cause.id,
	}
	got, refusal := c.exchange.once(ctx, login, "")
	if refusal == nil {
		opened, err := decodeSession(login, got, &c.ignored)
		if err == nil {
			c.session.opened(opened.token, opened.expires)
			return opened.token, nil
		}
		refusal = failed(got, err)
	}
	switch err := refusal.err; {
	case refusal.status == http.StatusNotFound || refusal.status == http.StatusMethodNotAllowed:
		err.Kind = cloud.Unauthorized
		err.Detail = "this cloud has no sessions: put a token in the Secret instead of username and password"
	case err.Kind == cloud.Rejected, err.Kind == cloud.Forbidden:
		err.Kind = cloud.Unauthorized
		err.Detail = c.credentials.advice() + " (" + err.Detail + ")"
	}
	if refusal.err.Kind == cloud.Unauthorized {
		c.session.refused(refusal.err)
	}
	return "", refusal
}

// Close waits for the calls under way, ends the session, if there is one, and
// closes idle connections. It ends with ctx, of which it leaves five seconds for
// the session, and ignores the cloud's answer. Later calls fail with Unavailable.
// The second Close does nothing.
func (c *Client) Close(ctx context.Context) {
	if !c.usage.Close(ctx) {
		return
	}
	defer c.transport.CloseIdleConnections()
	token := c.session.close()
	if token == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, transport.CloseTimeout)
	defer cancel()
	_, _ = c.exchange.once(ctx, &call{
		about: aboutSession, method: http.MethodDelete, route: "/sessions", path: "/sessions",
		op: "close session", id: newRequestID(),
	}, token)
}

// errClosed is the error of a call of a closed client.
func errClosed(op string) *cloud.Error {
	return refuse(op, cloud.Unavailable, "the client is closed; another has replaced it")
}
