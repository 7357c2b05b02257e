package mockcloud

import (
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// access has the credentials. It has a lock of its own, so that a token can be
// rotated during a call.
type access struct {
	mu                 sync.Mutex
	token              string
	username, password string
	ttl                time.Duration
	// sessions has the time when each token expires. Sessions are not stored:
	// clients have to log in again after a restart.
	sessions map[string]time.Time
}

func equal(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// open reports whether calls need no authentication. The caller holds mu.
func (a *access) open() bool { return a.token == "" && a.username == "" }

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// check returns an error unless the call has a valid token.
func (a *access) check(r *http.Request, now time.Time) error {
	token := bearer(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open() || (a.token != "" && equal(token, a.token)) {
		return nil
	}
	expires, known := a.sessions[token]
	switch {
	case known && now.Before(expires):
		return nil
	case known:
		return problem(http.StatusUnauthorized, CodeUnauthorized, "the session has expired")
	case token == "":
		return problem(http.StatusUnauthorized, CodeUnauthorized, "a bearer token is required")
	}
	return problem(http.StatusUnauthorized, CodeUnauthorized, "the token is not valid")
}

type session struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expiresAt"`
}

func (a *access) login(username, password string, now time.Time) (session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.open() && (a.username == "" || !equal(username, a.username) || !equal(password, a.password)) {
		return session{}, problem(http.StatusUnauthorized, CodeUnauthorized, "wrong username or password")
	}
	for token, expires := range a.sessions {
		// An expired token is kept for a day, so that it has an error of its own.
		if now.Sub(expires) > 24*time.Hour {
			delete(a.sessions, token)
		}
	}
	s := session{Token: uuid.NewString(), ExpiresAt: now.Add(a.ttl)}
	a.sessions[s.Token] = s.ExpiresAt
	return s, nil
}

// handleLogin handles POST /sessions.
func (c *Cloud) handleLogin(w http.ResponseWriter, r *request) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	var body struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	if err := decodeStrict(data, &body); err != nil {
		return err
	}
	if body.Username == "" {
		return invalid("username is required")
	}
	s, err := c.access.login(body.Username, body.Password, c.core.now())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, s)
}

// handleLogout handles DELETE /sessions: it ends the session of the bearer token.
func (c *Cloud) handleLogout(w http.ResponseWriter, r *request) error {
	token := bearer(r.Request)
	c.access.mu.Lock()
	_, known := c.access.sessions[token]
	delete(c.access.sessions, token)
	c.access.mu.Unlock()
	if !known {
		return problem(http.StatusUnauthorized, CodeUnauthorized, "the token does not belong to a session")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// SetToken replaces the bearer token that does not expire; empty means none.
// Without a token and credentials, calls need no authentication.
func (c *Cloud) SetToken(token string) {
	c.access.mu.Lock()
	defer c.access.mu.Unlock()
	c.access.token = token
}

// SetCredentials replaces the username and password of sessions; empty means
// none. Open sessions stay open.
func (c *Cloud) SetCredentials(username, password string) {
	c.access.mu.Lock()
	defer c.access.mu.Unlock()
	c.access.username, c.access.password = username, password
}

// SetSessionTTL sets the lifetime of new sessions.
func (c *Cloud) SetSessionTTL(ttl time.Duration) {
	c.access.mu.Lock()
	defer c.access.mu.Unlock()
	c.access.ttl = ttl
}

// ExpireSessions expires all open sessions.
func (c *Cloud) ExpireSessions() {
	now := c.core.now()
	c.access.mu.Lock()
	defer c.access.mu.Unlock()
	for token := range c.access.sessions {
		c.access.sessions[token] = now
	}
}
