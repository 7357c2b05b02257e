package transport

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// serveTLS returns the URL of a server with this configuration, of which the handshakes may fail.
func serveTLS(t *testing.T, h http.HandlerFunc, http2 bool, cfg *tls.Config) string {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2, server.TLS = http2, cfg
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// over returns why a GET fails over real connections.
func over(t *testing.T, url string) *cloud.Error {
	t.Helper()
	tr := newTransport(t, nil, func(cfg *Config) { cfg.Base, cfg.InsecureSkipVerify = nil, true })
	t.Cleanup(tr.CloseIdleConnections)
	_, _, err := fetch(t.Context(), tr.Client(), http.MethodGet, url+"/servers")
	if err == nil {
		t.Fatal("no error")
	}
	got := tr.Classify(t.Context(), err)
	got.Op = "x"
	return got
}

const (
	wantNoClientCertificate = "the cloud wants a client certificate, which the operator does not present: have the cloud accept requests without one, " +
		"or put a proxy that presents it between the operator and the cloud"
	mayRequireClientCertificate = "the cloud asked for a client certificate, which the operator does not present, and may require one: if it does, have it accept requests " +
		"without one, or put a proxy that presents it between the operator and the cloud"
	wantVersion = "the cloud does not offer TLS 1.2 or later, which the operator needs: have the cloud enable it"
	wantShared  = "the TLS handshake failed: the cloud offers no cipher, curve or certificate type that the operator accepts: have the cloud enable those of TLS 1.2 with ECDHE, or TLS 1.3"
)

func TestFailedHandshakeNamesItsCause(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		cfg  *tls.Config
		want string
	}{
		"TLS 1.1 at most": {&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, wantVersion},
		"a client certificate, TLS 1.3": {
			&tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}, wantNoClientCertificate,
		},
		"a client certificate, TLS 1.2": {
			&tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}, wantNoClientCertificate,
		},
		"no cipher in common": {
			&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_RC4_128_SHA}}, wantShared,
		},
		"an unknown name": {
			&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
				return nil, errors.New("no such host")
			}},
			"the cloud refused the TLS handshake (internal error)",
		},
	} {
		for protocol, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
			t.Run(name+", "+protocol, func(t *testing.T) {
				t.Parallel()
				got := over(t, serveTLS(t, ok, http2, test.cfg))
				want := test.want
				if strings.HasPrefix(got.Detail, "connection reset: ") && want == wantNoClientCertificate {
					want = "connection reset: " + mayRequireClientCertificate // the alert was lost with the connection
				}
				if got.Kind != cloud.Unavailable || got.Detail != want {
					t.Errorf("%s %q, want Unavailable and %q", got.Kind, got.Detail, want)
				}
				if public := cloud.PublicMessage(got); strings.Contains(public, "certificate") || strings.Contains(public, "TLS") {
					t.Errorf("tenants read %q", public)
				}
			})
		}
	}
}

// A server that asks for a client certificate and does not require one may reset connections for
// another reason.
func TestResetOfAConnectionWithoutAClientCertificateIsWordedAsAPossibility(t *testing.T) {
	t.Parallel()
	reset := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if tcp, ok := conn.(*tls.Conn).NetConn().(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
		}
	}
	got := over(t, serveTLS(t, reset, false, &tls.Config{ClientAuth: tls.RequestClientCert}))
	if want := "connection reset: " + mayRequireClientCertificate; got.Kind != cloud.Unavailable || got.Detail != want {
		t.Errorf("%s %q, want Unavailable and %q", got.Kind, got.Detail, want)
	}
}

// Some servers do not refuse a version with an alert, but select one that was not offered.
func TestServerThatSelectsOldVersionIsNamed(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			// A ServerHello of TLS 1.0: version, random, no session, a cipher, no compression.
			hello := append([]byte{3, 1}, make([]byte, 32)...)
			hello = append(hello, 0, 0xc0, 0x13, 0)
			hello = append([]byte{2, 0, 0, byte(len(hello))}, hello...)
			_, _ = conn.Write(append([]byte{22, 3, 1, 0, byte(len(hello))}, hello...))
			_, _ = conn.Read(make([]byte, 16)) // the alert
			_ = conn.Close()
		}
	}()
	if got := over(t, "https://"+listener.Addr().String()); got.Kind != cloud.Unavailable || got.Detail != wantVersion {
		t.Errorf("%s %q, want Unavailable and %q", got.Kind, got.Detail, wantVersion)
	}
}

func TestLargeHeadersAreNamed(t *testing.T) {
	t.Parallel()
	const want = "the headers of the answer are larger than 64 KiB"
	large := func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			w.Header().Add("X-Large", strings.Repeat("x", 1<<10))
		}
	}
	for name, url := range map[string]string{
		"HTTP/1.1": serveTLS(t, large, false, nil), "HTTP/2": serveTLS(t, large, true, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := over(t, url); got.Kind != cloud.Unreadable || got.Detail != want {
				t.Errorf("%s %q, want Unreadable and %q", got.Kind, got.Detail, want)
			}
		})
	}
}
