package transport

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"
)

func TestConfigChoosesTheProtocol(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Proto)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for want, http1 := range map[string]bool{"HTTP/2.0": false, "HTTP/1.1": true} {
		t.Run(want, func(t *testing.T) {
			transport, err := New(Config{Name: "test", Host: at.Hostname(), CA: ca, Limits: fast, Timeout: 10 * time.Second, HTTP1: http1})
			if err != nil {
				t.Fatalf("New: %v", err)
			}
			defer transport.CloseIdleConnections()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := transport.Client().Do(req)
			if err != nil {
				t.Fatalf("Do: %v", err)
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != want {
				t.Errorf("the server got %q, %v; want %s", got, err, want)
			}
		})
	}
}
