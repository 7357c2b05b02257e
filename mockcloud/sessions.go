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
	core               *core
	mu                 sync.Mutex
	token              string
	username, password string
	ttl                time.Duration
	// sessions has the time when each token expires. Sessions are not stored:
	// clients have to log in again after a restart.
	sessions map[string]time.Time
}

func newAccess(c *core, opts Options) *access {
	return &access{
		core: c, token: opts.Token, username: opts.Username, password: opts.Password,
		ttl: time.Duration(opts.SessionTTL), sessions: map[string]time.Time{},
	}
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
func (a *access) handleLogin(w http.ResponseWriter, r *request) error {
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
	s, err := a.login(body.Username, body.Password, a.core.now())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, s)
}

// handleLogout handles DELETE /sessions: it ends the session of the bearer token.
func (a *access) handleLogout(w http.ResponseWriter, r *request) error {
	token := bearer(r.Request)
	a.mu.Lock()
	_, known := a.sessions[token]
	delete(a.sessions, token)
	a.mu.Unlock()
	if !known {
		return problem(http.StatusUnauthorized, CodeUnauthorized, "the token does not belong to a session")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *access) setToken(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.token = token
}

func (a *access) setCredentials(username, password string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.username, a.password = username, password
}

func (a *access) setTTL(ttl time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ttl = ttl
}

func (a *access) expire() {
	now := a.core.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for token := range a.sessions {
		a.sessions[token] = now
	}
}

// handleSet handles PUT /admin/auth. Absent fields are switched off, except
// sessionTTL, which is kept.
func (a *access) handleSet(w http.ResponseWriter, r *request) error {
	var body struct {
		Token      string   `json:"token"`
		Username   string   `json:"username"`
		Password   string   `json:"password"`
		SessionTTL Duration `json:"sessionTTL"`
	}
	if err := readInto(r, &body); err != nil {
		return err
	}
	a.setToken(body.Token)
	a.setCredentials(body.Username, body.Password)
	if body.SessionTTL > 0 {
		a.setTTL(time.Duration(body.SessionTTL))
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
