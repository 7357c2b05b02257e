package rest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// session makes requests with credentials. It has the token that the cloud gave for a
// username and a password.
type session struct {
	exchange *exchange
	// credentials is a pointer, which fmt does not follow: it calls no String method on
	// unexported fields.
	credentials *Credentials
	ignored     *ignored
	login       *transport.Login

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

// stop prevents further logins. It returns the token of the session to end, empty if
// there is none.
func (s *session) stop() string {
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
func (s *session) authorized(ctx context.Context, call *call) (*answer, *failure) {
	if !s.credentials.session() {
		return s.exchange.once(ctx, call, s.credentials.Token)
	}
	token, failure := s.validToken(ctx, call, "")
	if failure != nil {
		return nil, failure
	}
	got, failure := s.exchange.once(ctx, call, token)
	if failure == nil || failure.status != http.StatusUnauthorized || failure.err.Uncertain {
		return got, failure
	}
	if token, failure = s.validToken(ctx, call, token); failure != nil {
		return nil, failure
	}
	return s.exchange.once(ctx, call, token)
}

// validToken returns the session's token, other than stale, logging in where there
// is none. At most one call logs in at a time.
func (s *session) validToken(ctx context.Context, call *call, stale string) (string, *failure) {
	token, refusal := s.current(stale)
	if token == "" && refusal == nil {
		end, err := s.login.Begin(ctx)
		if err != nil {
			return "", &failure{err: s.exchange.noAnswer(ctx, call, err, false)}
		}
		defer end()
		// Another call may have logged in meanwhile.
		if token, refusal = s.current(stale); token == "" && refusal == nil {
			token, refusal = s.logIn(ctx, call)
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
func (s *session) logIn(ctx context.Context, cause *call) (string, *failure) {
	login := &call{
		about: aboutSession, method: http.MethodPost, route: "/sessions", path: "/sessions",
		body:  encode(wireLogin{Username: s.credentials.Username, Password: s.credentials.Password}),
		limit: maxBody, op: "open session", id: cause.id,
	}
	got, refusal := s.exchange.once(ctx, login, "")
	if refusal == nil {
		opened, err := decodeSession(login, got, s.ignored)
		if err == nil {
			s.opened(opened.token, opened.expires)
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
		err.Detail = s.credentials.advice() + " (" + err.Detail + ")"
	}
	if refusal.err.Kind == cloud.Unauthorized {
		s.refused(refusal.err)
	}
	return "", refusal
}

// close ends the session, if there is one, and ignores the cloud's answer.
func (s *session) close(ctx context.Context) {
	token := s.stop()
	if token == "" {
		return
	}
	_, _ = s.exchange.once(ctx, &call{
		about: aboutSession, method: http.MethodDelete, route: "/sessions", path: "/sessions",
		op: "close session", id: newRequestID(),
	}, token)
}

// errClosed is the error of a call of a closed client.
func errClosed(op string) *cloud.Error {
	return refuse(op, cloud.Unavailable, "the client is closed; another has replaced it")
}
