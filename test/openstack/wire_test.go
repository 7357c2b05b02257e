package openstack_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud/cloudtest"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// wire sends the requests of one client to the OpenStack. It loses the answers to those
// that match, once the cloud has carried them out.
type wire struct {
	mu   sync.Mutex
	sent int
	lose []pattern
	// every is which of the requests that match lose their answers; 0 for all of them.
	every, matched int
	// random loses one in three answers to changes and one in ten others; nil for none.
	random *rand.Rand
	// without is a service that is missing in the catalog; empty for none.
	without string
	// issued are the tokens by who logged in, expired those that no service accepts any
	// more, and revoked how many were revoked by their client.
	issued  map[string][]string
	expired map[string]bool
	revoked int
	// refused is how many questions for changes get no answer from now on.
	refused int
}

// pattern matches requests by method and path, in the form of path.Match.
type pattern struct{ method, path string }

// requests are those of each operation.
var requests = map[cloudtest.Op][]pattern{
	cloudtest.OpCreateServer:  {{http.MethodPost, "servers"}},
	cloudtest.OpUpdateServer:  {{http.MethodPost, "servers/*/action"}, {http.MethodPost, "servers/*/metadata"}},
	cloudtest.OpDeleteServer:  {{http.MethodDelete, "servers/*"}},
	cloudtest.OpCreateNetwork: {{http.MethodPost, "networks"}, {http.MethodPost, "subnets"}, {http.MethodPost, "routers"}},
	cloudtest.OpUpdateNetwork: {{http.MethodPut, "subnets/*"}},
	cloudtest.OpDeleteNetwork: {{http.MethodDelete, "networks/*"}},

	cloudtest.OpCreateSnapshot: {{http.MethodPost, "servers/*/action"}},
	cloudtest.OpRevert:         {{http.MethodPost, "servers/*/action"}},
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	switch refusal := w.refuses(req); {
	case refusal == nil:
	case refusal.StatusCode == 0:
		return nil, syscall.ECONNREFUSED
	default:
		return refusal, nil
	}
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return resp, err
	}
	if strings.HasSuffix(req.URL.Path, "/auth/tokens") {
		if err := w.loggedIn(req.Method, body, resp); err != nil {
			return nil, err
		}
	}
	if err := storeSnapshot(req, body, resp); err != nil {
		return nil, err
	}
	lost, random := w.loses(req)
	if !lost {
		return resp, nil
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if !random && req.Method == http.MethodDelete && strings.Contains(req.URL.Path, "/servers/") {
		awaitGone(req)
	}
	return nil, syscall.ECONNRESET
}

// refuses returns the answer to a request that is not sent to the OpenStack, without a
// status if it gets none; nil for all others.
func (w *wire) refuses(req *http.Request) *http.Response {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent++
	if w.refused > 0 && req.URL.Query().Has("changes-since") {
		w.refused--
		return &http.Response{}
	}
	if w.expired[req.Header.Get("X-Auth-Token")] {
		return &http.Response{
			Request: req, StatusCode: http.StatusUnauthorized, Status: "401 Unauthorized", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody,
		}
	}
	return nil
}

// loggedIn records a login or the end of a session, and leaves out what is to be missing
// in the catalog.
func (w *wire) loggedIn(method string, sent []byte, resp *http.Response) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if method == http.MethodDelete {
		w.revoked++
		return nil
	}
	if w.issued == nil {
		w.issued = map[string][]string{}
	}
	by := userOf(sent)
	w.issued[by] = append(w.issued[by], resp.Header.Get("X-Subject-Token"))
	if w.without == "" || resp.StatusCode != http.StatusCreated {
		return nil
	}
	return rewriteCatalog(resp, func(kind, target string) string {
		if kind == w.without {
			return ""
		}
		return target
	})
}

// userOf returns who logs in: the id of an application credential, or the name of a user.
func userOf(login []byte) string {
	var got struct {
		Auth struct {
			Identity struct {
				Credential struct{ ID string } `json:"application_credential"`
				Password   struct{ User struct{ Name string } }
			}
		}
	}
	_ = json.Unmarshal(login, &got)
	return cmp.Or(got.Auth.Identity.Credential.ID, got.Auth.Identity.Password.User.Name)
}

// rewriteCatalog replaces the URLs in the catalog of the answer to a login. A service
// without a URL is left out.
func rewriteCatalog(resp *http.Response, change func(kind, target string) string) error {
	var got map[string]map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		return err
	}
	_ = resp.Body.Close()
	catalog := []any{}
	all, _ := got["token"]["catalog"].([]any)
	for _, each := range all {
		entry, _ := each.(map[string]any)
		kind, _ := entry["type"].(string)
		endpoints, _ := entry["endpoints"].([]any)
		kept := []any{}
		for _, each := range endpoints {
			endpoint, _ := each.(map[string]any)
			target, _ := endpoint["url"].(string)
			if endpoint["url"] = change(kind, target); endpoint["url"] != "" {
				kept = append(kept, endpoint)
			}
		}
		if len(kept) > 0 {
			entry["endpoints"] = kept
			catalog = append(catalog, entry)
		}
	}
	got["token"]["catalog"] = catalog
	body, err := json.Marshal(got)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return err
}

// awaitGone waits until a deleted server is gone: the service answers before.
func awaitGone(deletion *http.Request) {
	for range 50 {
		again := deletion.Clone(context.WithoutCancel(deletion.Context()))
		again.Method, again.Body = http.MethodGet, io.NopCloser(bytes.NewReader(nil))
		again.ContentLength = 0
		resp, err := http.DefaultTransport.RoundTrip(again)
		if err != nil {
			return
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusNotFound {
			return
		}
		<-time.After(pollTime)
	}
}

// loses reports whether the answer to a request is lost, and whether that is by chance.
func (w *wire) loses(req *http.Request) (lost, random bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.random != nil {
		of := 3
		if req.Method == http.MethodGet || strings.HasSuffix(req.URL.Path, "/auth/tokens") {
			of = 10
		}
		return w.random.IntN(of) == 0, true
	}
	for _, p := range w.lose {
		of := req.URL.Path
		for _, version := range []string{"/v2.1/", "/v2.0/", "/v2/"} {
			_, after, found := strings.Cut(of, version)
			if found {
				of = after
			}
		}
		if matched, _ := path.Match(p.path, of); matched && p.method == req.Method {
			w.matched++
			return w.every == 0 || w.matched%w.every == 0, false
		}
	}
	return false, false
}

// loseRandomly loses answers by chance from now on, until restore is called.
func (w *wire) loseRandomly(seed uint64) (restore func()) {
	set := func(random *rand.Rand) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.random = random
	}
	set(rand.New(rand.NewPCG(seed, 1)))
	return func() { set(nil) }
}

// leaveOut leaves a service out of the catalog, none if it is empty.
func (w *wire) leaveOut(service string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.without = service
}

// expire makes all services refuse the tokens of one who logged in, as they do when they
// have not kept for some minutes that they accepted them.
func (w *wire) expire(by string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.expired == nil {
		w.expired = map[string]bool{}
	}
	for _, token := range w.issued[by] {
		w.expired[token] = true
	}
}

// logins returns how often somebody logged in, or tried to.
func (w *wire) logins(by string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.issued[by])
}

// ended returns how many sessions were ended by their client.
func (w *wire) ended() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.revoked
}

// loseAnswers loses the answers to requests that match, until restore is called.
func (w *wire) loseAnswers(patterns ...pattern) (restore func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lose, w.every = patterns, 0
	return func() { w.loseAnswers() }
}

// loseEvery loses the answer to each nth request that matches, until restore is called.
func (w *wire) loseEvery(n int, patterns ...pattern) (restore func()) {
	restore = w.loseAnswers(patterns...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.every, w.matched = n, 0
	return restore
}

// endWatches ends the watch under way: none of the tries of its next question is answered.
func (w *wire) endWatches() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = transport.MaxTries
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent
}

// loseOf is loseAnswers for an operation of the suite.
func (w *wire) loseOf(_ *testing.T, op cloudtest.Op) (restore func()) {
	return w.loseAnswers(requests[op]...)
}
