package mockcloud

import (
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// access is who may call. It has its own lock, so that a token can be rotated
// in the middle of a call.
type access struct {
	mu                 sync.Mutex
	token              string
	username, password string
	ttl                time.Duration
	// sessions holds when each token expires. They do not survive a restart: a
	// client has to log in again, as it would elsewhere.
	sessions map[string]time.Time
}

func same(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// open tells whether anybody may call. The caller holds mu.
func (a *access) open() bool { return a.token == "" && a.username == "" }

func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// check refuses callers without a good token.
func (a *access) check(r *http.Request, now time.Time) error {
	token := bearer(r)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open() || (a.token != "" && same(token, a.token)) {
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
	if !a.open() && (a.username == "" || !same(username, a.username) || !same(password, a.password)) {
		return session{}, problem(http.StatusUnauthorized, CodeUnauthorized, "wrong username or password")
	}
	for token, expires := range a.sessions {
		// A day of grace lets an expired token be told from a foreign one.
		if now.Sub(expires) > 24*time.Hour {
			delete(a.sessions, token)
		}
	}
	s := session{Token: uuid.NewString(), ExpiresAt: now.Add(a.ttl)}
	a.sessions[s.Token] = s.ExpiresAt
	return s, nil
}

// handleLogin answers POST /sessions.
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
	s, err := c.access.login(body.Username, body.Password, c.now())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, s)
}

// handleLogout answers DELETE /sessions: it ends the session of the bearer token.
func (c *Cloud) handleLogout(w http.ResponseWriter, r *request) error {
	token := bearer(r.Request)
	c.access.mu.Lock()
	_, known := c.access.sessions[token]
	delete(c.access.sessions, token)
	c.access.mu.Unlock()
	if !known {
		return problem(http.StatusUnauthorized, CodeUnauthorized, "the token is of no session")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// SetToken replaces the bearer token that never expires; empty means none. With
// neither a token nor credentials anybody may call.
func (c *Cloud) SetToken(token string) {
	c.access.mu.Lock()
	defer c.access.mu.Unlock()
	c.access.token = token
}

// SetCredentials replaces the username and password of sessions; empty means
// none. Sessions that are open stay so.
func (c *Cloud) SetCredentials(username, password string) {
	c.access.mu.Lock()
	defer c.access.mu.Unlock()
	c.access.username, c.access.password = username, password
}

// SetSessionTTL sets how long sessions last that are opened from now on.
func (c *Cloud) SetSessionTTL(ttl time.Duration) {
	c.access.mu.Lock()
	defer c.access.mu.Unlock()
	c.access.ttl = ttl
}

// ExpireSessions makes every open session expire at once.
func (c *Cloud) ExpireSessions() {
	now := c.now()
	c.access.mu.Lock()
	defer c.access.mu.Unlock()
	for token := range c.access.sessions {
		c.access.sessions[token] = now
	}
}
