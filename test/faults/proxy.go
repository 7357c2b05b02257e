package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

const (
	kubernetesSide = "kubernetes"
	cloudSide      = "cloud"
)

// worldLabel is the label of Clouds and VMClasses whose value is the name of their world.
const worldLabel = "world"

// proxy is in front of a server and passes effects through the gate.
type proxy struct {
	*httptest.Server
	away atomic.Bool

	mu sync.Mutex
	// credentials are the values of Authorization headers that were sent.
	credentials []string
}

// disconnect refuses all calls until connect, and closes every connection. It may
// be called within a call.
func (p *proxy) disconnect() {
	p.away.Store(true)
	go p.CloseClientConnections()
}

func (p *proxy) connect() { p.away.Store(false) }

// newProxy returns a proxy of target. rewrite changes requests before they are
// forwarded; name returns the effect of a request, and whether it is one.
func newProxy(target *url.URL, to http.RoundTripper, rewrite func(*http.Request), g *gate, name func(*http.Request) (effect, bool)) *proxy {
	p := &proxy{}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			rewrite(r.Out)
			r.SetURL(target)
		},
		Transport:     gated{to: to, gate: g, name: name},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.record(r.Header.Get("Authorization"))
		if p.away.Load() {
			panic(http.ErrAbortHandler)
		}
		// Without this, an answer without a content type would get one here.
		w.Header()["Content-Type"] = nil
		forward.ServeHTTP(w, r)
	}))
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.Start()
	return p
}

func (p *proxy) record(credential string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if credential != "" && !slices.Contains(p.credentials, credential) {
		p.credentials = append(p.credentials, credential)
	}
}

func (p *proxy) seenCredentials() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.credentials)
}

// gated forwards reads at once, and effects when the gate allows it. An effect
// that was forwarded completes even if its sender has ended.
type gated struct {
	to   http.RoundTripper
	gate *gate
	name func(*http.Request) (effect, bool)
}

func (t gated) RoundTrip(r *http.Request) (*http.Response, error) {
	e, changes := t.name(r)
	to := t.to
	if t.gate.intercept != nil {
		to = intercepted(func(r *http.Request) (*http.Response, error) { return t.gate.intercept(e.side, t.to, r) })
	}
	if !changes {
		resp, err := to.RoundTrip(r)
		if err == nil && e.side == cloudSide && e.path == "/servers" && resp.StatusCode == http.StatusOK {
			t.gate.listed()
		}
		return resp, err
	}
	forward, _, err := buffered(to, r)
	if err != nil {
		return nil, err
	}
	return t.gate.pass(e, forward)
}

// intercepted sends a request.
type intercepted func(*http.Request) (*http.Response, error)

func (send intercepted) RoundTrip(r *http.Request) (*http.Response, error) { return send(r) }

// buffered returns a function that sends a request, even if its sender has ended, and reads the whole answer; and
// the body of the request.
func buffered(to http.RoundTripper, r *http.Request) (send func() (*http.Response, error), body []byte, err error) {
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, nil, fmt.Errorf("reading the body of a request: %w", err)
		}
	}
	return func() (*http.Response, error) {
		out := r.Clone(context.WithoutCancel(r.Context()))
		out.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := to.RoundTrip(out)
		if err != nil {
			return nil, err
		}
		whole, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(whole))
		return resp, err
	}, body, nil
}

func changes(method string) bool {
	return slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}, method)
}

// kubernetesProxy returns a proxy of the API server of config, with its credentials.
// It shows only the objects of one world, its namespace, those in it, and the Clouds and VMClasses
// with its label, so that the managers of many runs can share an API server. An empty world is all objects.
func kubernetesProxy(config *rest.Config, g *gate, world string) (*proxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, errors.New("the API server has no URL")
	}
	const group = "/apis/samplecontroller.k8s.io/v1alpha1/"
	narrow := func(r *http.Request) {
		kind, ofGroup := strings.CutPrefix(r.URL.Path, group)
		switch {
		case world == "":
		case r.Method == http.MethodGet && r.URL.Path == "/api/v1/namespaces":
			query := r.URL.Query()
			query.Set("fieldSelector", "metadata.name="+world)
			r.URL.RawQuery = query.Encode()
		case r.Method != http.MethodGet || !ofGroup || strings.Contains(kind, "/"):
		case kind == "clouds", kind == "vmclasses":
			query := r.URL.Query()
			query.Set("labelSelector", worldLabel+"="+world)
			r.URL.RawQuery = query.Encode()
		default:
			r.URL.Path = group + "namespaces/" + world + "/" + kind
		}
	}
	shorten := strings.NewReplacer(group, "", "/apis/", "", "/api/v1/", "", "namespaces/"+world+"/", "")
	return newProxy(target, transport, narrow, g, func(r *http.Request) (effect, bool) {
		path := shorten.Replace(r.URL.Path)
		aside := strings.Contains(path, "leases") || strings.Contains(path, "events")
		return effect{side: kubernetesSide, method: r.Method, path: path}, changes(r.Method) && !aside
	}), nil
}

// cloudProxy returns a proxy of the mock cloud. rewrite may be nil.
func cloudProxy(target string, g *gate, rewrite func(*http.Request)) (*proxy, error) {
	at, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("reach the mock cloud: %w", err)
	}
	if rewrite == nil {
		rewrite = func(*http.Request) {}
	}
	return newProxy(at, &http.Transport{MaxIdleConnsPerHost: 16}, rewrite, g, func(r *http.Request) (effect, bool) {
		return effect{side: cloudSide, method: r.Method, path: r.URL.Path}, changes(r.Method) && r.URL.Path != "/sessions"
	}), nil
}
