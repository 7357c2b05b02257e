package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"time"
)

const (
	dialTimeout = 10 * time.Second
	// maxHeader bounds the headers of an answer, in bytes.
	maxHeader = 64 << 10
)

// base has connections of its own, so that the credentials of one cloud never share a
// connection with another's.
type base struct {
	requests *http.Transport
	// polls has no timeout for the headers of an answer.
	polls *http.Transport
	proof proof
}

func (b *base) RoundTrip(req *http.Request) (*http.Response, error) {
	to := b.requests
	if callOf(req.Context()).LongPoll {
		to = b.polls
	}
	resp, err := to.RoundTrip(req)
	if err == nil {
		b.proof.answered.Store(true)
	}
	return resp, err
}

// CloseIdleConnections closes the connections that carry no request now.
func (b *base) CloseIdleConnections() {
	b.requests.CloseIdleConnections()
	b.polls.CloseIdleConnections()
}

func newBase(cfg Config, limits Limits, roots *x509.CertPool) *base {
	b := &base{requests: newRequestBase(cfg, limits, roots)}
	b.requests.TLSClientConfig.GetClientCertificate = b.proof.certificate
	b.polls = b.requests.Clone()
	b.polls.ResponseHeaderTimeout = 0
	return b
}

func newRequestBase(cfg Config, limits Limits, roots *x509.CertPool) *http.Transport {
	dialer := &net.Dialer{
		Timeout: dialTimeout,
		// A peer that no longer answers is noticed within half a minute.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(!cfg.HTTP1)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		Protocols:              &protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConns:           limits.MaxInFlight,
		MaxIdleConnsPerHost:    limits.MaxInFlight,
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

// parseCA returns the only certificates to trust; pem is not empty.
func parseCA(pem []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("ca: holds no PEM certificate; put the cloud's CA under ca.crt in the Secret, beginning with -----BEGIN CERTIFICATE-----")
	}
	return pool, nil
}
