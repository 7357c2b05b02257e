package openstack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

const (
	someID     = "d739201c-0d8d-4598-bf32-1cc4b55730d8"
	otherID    = "5b7ff4f0-5cf9-4ac6-a1c2-3a3f3a4d2a10"
	projectID  = "e5dddce003c544e8925e2cc5af766e6e"
	passphrase = "correct-horse-battery"
)

// stub is an OpenStack that answers each request as a test says. It serves all services
// at one address.
type stub struct {
	*httptest.Server
	t *testing.T

	mu sync.Mutex
	// answers are by method and path, such as "GET compute/servers/x".
	answers map[string]http.HandlerFunc
	// network answers all requests to the network service; nil for answers.
	network http.Handler
	// block answers all requests to the block storage service; nil for answers.
	block http.Handler
	// sent are the requests other than logins, with their bodies.
	sent   []string
	logins int
	// login is the body of the last login.
	login string
	// given is a token that the identity service knows from elsewhere.
	given string
	// token is the one that the services accept.
	token string
	// refuse is the status of logins; 0 accepts them.
	refuse int
	// versions are the least and the greatest microversion.
	versions [2]string
	// catalog is the catalog of services; nil for the usual one.
	catalog []any
	expires time.Time
}

func newStub(t *testing.T) *stub {
	t.Helper()
	s := &stub{t: t, answers: map[string]http.HandlerFunc{}, versions: [2]string{"2.1", "2.93"}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	s.on("GET compute/flavors/detail", `{"flavors": [
		{"id": "f1", "name": "small", "vcpus": 1, "ram": 1024}, {"id": "f2", "name": "large", "vcpus": 4, "ram": 8192}]}`)
	s.on("GET network/routers", `{"routers": []}`)
	s.on("GET image/images", `{"images": [{"id": "`+otherID+`", "name": "debian", "owner": "`+projectID+`"}]}`)
	return s
}

// on sets the answer to requests: a body, with 200, or after a status.
func (s *stub) on(request, body string, status ...int) {
	s.handle(request, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(append(status, http.StatusOK)[0])
		_, _ = io.WriteString(w, body)
	})
}

func (s *stub) handle(request string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[request] = h
}

func (s *stub) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch r.URL.Path {
	case "/v3/auth/tokens":
		s.logIn(w, r)
		return
	case "/compute/v2.1/":
		fmt.Fprintf(w, `{"version": {"version": %q, "min_version": %q}}`, s.versions[1], s.versions[0])
		return
	}
	_, rest, _ = strings.Cut(rest, "/") // the version
	request := r.Method + " " + kind + "/" + rest
	s.mu.Lock()
	s.sent = append(s.sent, strings.TrimSpace(request+" "+string(body)))
	answer, known := s.answers[request]
	if s.network != nil && kind == "network" {
		answer, known = s.network.ServeHTTP, true
	}
	if s.block != nil && kind == "volume" {
		answer, known = s.block.ServeHTTP, true
	}
	accepted := r.Header.Get("X-Auth-Token") == s.token
	s.mu.Unlock()
	switch {
	case !accepted:
		w.WriteHeader(http.StatusUnauthorized)
	case !known:
		s.t.Errorf("unexpected request %s", request)
		w.WriteHeader(http.StatusTeapot)
	default:
		answer(w, r)
	}
}

func (s *stub) logIn(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodDelete {
		s.token = ""
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.logins++
	body, _ := io.ReadAll(r.Body)
	s.login = string(body)
	if r.Method == http.MethodGet && (r.Header.Get("X-Subject-Token") != s.given || r.Header.Get("X-Auth-Token") != s.given) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if s.refuse != 0 {
		w.WriteHeader(s.refuse)
		_, _ = io.WriteString(w, `{"error": {"message": "wrong: `+passphrase+`", "title": "Unauthorized"}}`)
		return
	}
	catalog := s.catalog
	if catalog == nil {
		for kind, version := range map[string]string{"compute": "v2.1", "network": "", "image": ""} {
			catalog = append(catalog, service1(kind, "RegionOne", s.URL+"/"+kind+"/"+version))
		}
	}
	status := http.StatusCreated
	if s.token = fmt.Sprintf("token-%d-of-a-session", s.logins); r.Method == http.MethodGet {
		s.token, status = s.given, http.StatusOK
	}
	w.Header().Set("X-Subject-Token", s.token)
	w.WriteHeader(status)
	token := map[string]any{"catalog": catalog, "project": map[string]any{
		"id": projectID, "name": "demo", "domain": map[string]any{"id": "default", "name": "Default"},
	}}
	if !s.expires.IsZero() {
		token["expires_at"] = s.expires.UTC().Format(time.RFC3339)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"token": token})
}

// service1 is an entry of a catalog.
func service1(kind, region, url string) any {
	return map[string]any{"type": kind, "endpoints": []any{
		map[string]any{"interface": "internal", "region": region, "url": "http://internal.invalid/"},
		map[string]any{"interface": "public", "region": region, "url": url},
	}}
}

// taken returns the requests since the last call.
func (s *stub) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.sent
	s.sent = nil
	return taken
}

// client returns a client of the stub.
func (s *stub) client(change ...func(*Config)) *Client {
	s.t.Helper()
	config := Config{
		Name: "test", Endpoint: s.URL + "/v3", Project: "demo", Credentials: Credentials{Username: "u", Password: passphrase},
		Image: "debian", Flavor: "small", TagLabel: "owner/uid", Timeout: 10 * time.Second,
		Limits: transport.Limits{RequestsPerSecond: 10000, Burst: 10000, MaxInFlight: 100},
	}
	for _, apply := range change {
		apply(&config)
	}
	client, err := New(config)
	if err != nil {
		s.t.Fatalf("New: %v", err)
	}
	return client
}

// cut ends the connection without an answer.
func cut(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// outcome is what tests compare of an error.
type outcome struct {
	Kind      cloud.Kind
	Uncertain bool
}

func outcomeOf(err error) outcome { return outcome{cloud.KindOf(err), cloud.Uncertain(err)} }

// serverJSON is a server with fields that are added or replaced.
func serverJSON(fields ...string) string {
	base := fmt.Sprintf(`{"id": %q, "name": "web", "status": "ACTIVE", "OS-EXT-STS:task_state": null,
		"flavor": {"original_name": "small", "vcpus": 1, "ram": 1024}, "created": "2026-01-02T03:04:05Z"`, someID)
	for _, field := range fields {
		base += ", " + field
	}
	return base + "}"
}

func oneServer(fields ...string) string { return `{"server": ` + serverJSON(fields...) + `}` }
