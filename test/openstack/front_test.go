package openstack_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// newFront serves the OpenStack at one address, through a wire, for managers that are
// processes. It returns the URL of the identity service. A request goes on when its client
// dies, as in a cloud.
func newFront(t *testing.T, w *wire) string {
	t.Helper()
	services := admin().services
	var front *httptest.Server
	front = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		kind, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
		base, err := url.Parse(services[kind])
		if err != nil || base.Host == "" {
			out.WriteHeader(http.StatusNotFound)
			return
		}
		target := base.Scheme + "://" + base.Host + "/" + rest
		if r.URL.RawQuery != "" {
			target += "?" + r.URL.RawQuery
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			hangUp(out)
			return
		}
		req, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, target, strings.NewReader(string(body)))
		if err != nil {
			hangUp(out)
			return
		}
		req.Header = r.Header.Clone()
		resp, err := w.RoundTrip(req)
		if err != nil {
			hangUp(out)
			return
		}
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/auth/tokens") && resp.StatusCode == http.StatusCreated {
			err = rewriteCatalog(resp, func(kind, target string) string {
				if at, err := url.Parse(target); err == nil && services[kind] != "" {
					return front.URL + "/" + kind + at.EscapedPath()
				}
				return ""
			})
		}
		if err != nil {
			hangUp(out)
			return
		}
		defer resp.Body.Close()
		maps.Copy(out.Header(), resp.Header)
		out.Header().Del("Connection")
		out.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(out, resp.Body)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front.URL + "/identity/v3"
}

// hangUp ends a connection without an answer.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = conn.Close()
	}
}
