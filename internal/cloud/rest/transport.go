package rest

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	dialTimeout  = 10 * time.Second
	maxRedirects = 3
	// maxHeader bounds the headers of an answer, in bytes.
	maxHeader = 64 << 10
)

// newTransport returns a transport of this client's own. Credentials of one
// cloud never share a connection with another's.
func newTransport(cfg Config, roots *x509.CertPool) *http.Transport {
	dialer := &net.Dialer{
		Timeout: dialTimeout,
		// A peer that is gone without a word is noticed within half a minute.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConns:           cfg.Limits.MaxInFlight,
		MaxIdleConnsPerHost:    cfg.Limits.MaxInFlight,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  cfg.Timeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeader,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			RootCAs:            roots,
			InsecureSkipVerify: cfg.InsecureSkipVerify, //nolint:gosec // The user asks for it, by name.
		},
	}
}

// checkRedirect follows a GET within the same scheme, host and port, three
// times at most. Any other redirect becomes the answer: a change sent twice,
// or credentials sent elsewhere, are worse than an error.
func checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet || len(via) > maxRedirects || !sameOrigin(next.URL, first.URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// trimSlash returns the endpoint as text that a path can follow.
func trimSlash(endpoint *url.URL) string {
	return strings.TrimRight(endpoint.String(), "/")
}
