package openstack_test

import (
	"bytes"
	"context"
	"io"
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
	cloudtest.OpCreateNetwork: {{http.MethodPost, "networks"}, {http.MethodPost, "subnets"}},
	cloudtest.OpUpdateNetwork: {{http.MethodPut, "subnets/*"}},
	cloudtest.OpDeleteNetwork: {{http.MethodDelete, "networks/*"}},
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.sent++
	refuse := w.refused > 0 && req.URL.Query().Has("changes-since")
	if refuse {
		w.refused--
	}
	w.mu.Unlock()
	if refuse {
		return nil, syscall.ECONNREFUSED
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || !w.loses(req) {
		return resp, err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if req.Method == http.MethodDelete && strings.Contains(req.URL.Path, "/servers/") {
		awaitGone(req)
	}
	return nil, syscall.ECONNRESET
}

// awaitGone waits until a deleted server is gone: the service answers before.
func awaitGone(deletion *http.Request) {
	for range 200 {
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
		<-time.After(50 * time.Millisecond)
	}
}

func (w *wire) loses(req *http.Request) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
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
			return w.every == 0 || w.matched%w.every == 0
		}
	}
	return false
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
