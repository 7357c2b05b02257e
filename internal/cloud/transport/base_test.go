package transport

import (
	"context"
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

func TestLongPollLastsWhileOtherRequestsAreSentAndTimeOut(t *testing.T) {
	t.Parallel()
	polled, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/poll":
			close(polled)
			<-release
		case "/slow":
			<-release
		}
	}))
	defer server.Close()
	c, err := New(Config{Name: "test", Limits: Limits{RequestsPerSecond: 1000, Burst: 100, MaxInFlight: 1}, Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	defer c.CloseIdleConnections()
	answered := make(chan error, 1)
	go func() {
		_, _, err := fetch(WithCall(context.Background(), Call{LongPoll: true}), c.Client(), http.MethodPost, server.URL+"/poll")
		answered <- err
	}()
	<-polled
	if _, _, err := fetch(t.Context(), c.Client(), http.MethodGet, server.URL); err != nil {
		t.Errorf("a request during the long poll, with one slot: %v", err)
	}
	_, _, err = fetch(t.Context(), c.Client(), http.MethodPost, server.URL+"/slow")
	if err == nil || c.Classify(t.Context(), err).Detail != "timed out after 100ms" {
		t.Errorf("a request that is no long poll: %v, want it to time out", err)
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("a long poll that lasts longer than other requests may: %v", err)
	}
}
