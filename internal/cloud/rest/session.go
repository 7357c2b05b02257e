package rest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// renewBefore is how long before its end a session is renewed; a tenth of its
	// life where that is less.
	renewBefore = 30 * time.Second
	// refusalHolds is how long refused credentials are not tried again, lest the
	// cloud locks the account.
	refusalHolds = 30 * time.Second
	// closeTimeout bounds the goodbye.
	closeTimeout = 5 * time.Second
)

// session is the token that a username and a password were exchanged for.
type session struct {
	// login is held by the one call that logs in; the others wait for it.
	login chan struct{}

	mu      sync.Mutex
	token   string
	renewAt time.Time
	// refusal is what the cloud said to the credentials, until refusedUntil.
	refusal      *cloud.Error
	refusedUntil time.Time
	// closed: nobody logs in any more, so that no session outlives the client.
	closed bool
}

func newSession() *session { return &session{login: make(chan struct{}, 1)} }

// current returns the token, empty when it must be had anew; stale is one that
// the cloud refused.
func (s *session) current(stale string) (string, *cloud.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.closed {
		return "", &cloud.Error{Kind: cloud.Unavailable, Detail: "another connection has taken this one's place"}
	}
	if s.refusal != nil && now.Before(s.refusedUntil) {
		return "", s.refusal
	}
	// renewAt is zero where the cloud told no expiry.
	if s.token == stale || !s.renewAt.IsZero() && !now.Before(s.renewAt) {
		return "", nil
	}
	return s.token, nil
}

func (s *session) opened(token string, expires time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.refusal, s.renewAt = token, nil, time.Time{}
	// An expiry in the past is a wrong clock, here or there: 401 will tell.
	if life := time.Until(expires); !expires.IsZero() && life > 0 {
		s.renewAt = expires.Add(-min(renewBefore, life/10))
	}
}

// close returns the token of the session to be ended, empty if there is none.
func (s *session) close() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.token
}

func (s *session) refused(err *cloud.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.refusal, s.refusedUntil = "", err, time.Now().Add(refusalHolds)
}

// authorized makes one try with credentials. A 401 proves that nothing was
// done, so after renewing the session any call may be sent again.
func (c *Client) authorized(ctx context.Context, call *call) (*answer, *cloud.Error) {
	if !c.credentials.session() {
		return c.attempt(ctx, call, c.credentials.Token)
	}
	token, err := c.token(ctx, call, "")
	if err != nil {
		return nil, err
	}
	got, err := c.attempt(ctx, call, token)
	if err == nil || err.Status != http.StatusUnauthorized {
		return got, err
	}
	if token, err = c.token(ctx, call, token); err != nil {
		return nil, err
	}
	return c.attempt(ctx, call, token)
}

// token returns the session's token, other than stale, logging in where there
// is none. At most one call logs in at a time.
func (c *Client) token(ctx context.Context, call *call, stale string) (string, *cloud.Error) {
	token, refusal := c.session.current(stale)
	if token == "" && refusal == nil {
		select {
		case c.session.login <- struct{}{}:
		case <-ctx.Done():
			return "", c.failure(ctx, call, ctx.Err(), false)
		}
		defer func() { <-c.session.login }()
		// Whoever was at it meanwhile did it for all.
		if token, refusal = c.session.current(stale); token == "" && refusal == nil {
			token, refusal = c.logIn(ctx, call)
		}
	}
	if refusal != nil {
		return "", loginFailed(call, refusal)
	}
	return token, nil
}

func loginFailed(call *call, cause *cloud.Error) *cloud.Error {
	e := *cause
	e.Op, e.Uncertain = call.op, false
	e.Detail = "logging in: " + e.Detail
	return &e
}

// logIn opens a session. The caller holds session.login.
func (c *Client) logIn(ctx context.Context, cause *call) (string, *cloud.Error) {
	login := &call{
		about: aboutSession, method: http.MethodPost, route: "/sessions", path: "/sessions",
		body:  encode(wireLogin{Username: c.credentials.Username, Password: c.credentials.Password}),
		limit: maxBody, op: "open session", id: cause.id,
	}
	got, err := c.attempt(ctx, login, "")
	if err == nil {
		var opened wireSession
		if opened, err = decodeSession(login, got); err == nil {
			c.session.opened(opened.Token, opened.ExpiresAt.Time)
			return opened.Token, nil
		}
	}
	switch {
	case err.Status == http.StatusNotFound || err.Status == http.StatusMethodNotAllowed:
		err.Kind = cloud.Unauthorized
		err.Detail = "this cloud has no sessions: put a token in the Secret instead of username and password"
	case err.Kind == cloud.Rejected:
		err.Kind = cloud.Unauthorized
		err.Detail = c.advice() + " (" + err.Detail + ")"
	}
	if err.Kind == cloud.Unauthorized {
		c.session.refused(err)
	}
	return "", err
}

// Close ends the session, if there is one, as well as it can within five
// seconds, and drops idle connections. Calls of those who still hold the client
// open no other.
func (c *Client) Close(ctx context.Context) {
	defer c.http.CloseIdleConnections()
	if !c.credentials.session() {
		return
	}
	token := c.session.close()
	if token == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	_, _ = c.attempt(ctx, &call{
		about: aboutSession, method: http.MethodDelete, route: "/sessions", path: "/sessions",
		op: "close session", id: newRequestID(),
	}, token)
}
