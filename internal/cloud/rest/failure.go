package rest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"

	"github.com/privatecloud/operator/internal/cloud"
)

// failure turns the transport's error into ours. The text is made here, since
// the transport's holds local ports and, for some, the time.
func (c *Client) failure(ctx context.Context, call *call, err error, sent bool) *cloud.Error {
	e := &cloud.Error{Op: call.op, Uncertain: sent && call.changes()}
	e.Kind, e.Detail, e.Err = c.reason(ctx, err)
	return e
}

// reason returns the kind, the text and the cause, which is one without text
// that changes.
func (c *Client) reason(ctx context.Context, err error) (cloud.Kind, string, error) {
	timeout := fmt.Sprintf("timed out after %s", c.timeout)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return cloud.Unavailable, "canceled", context.Canceled
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), errTimedOut):
		return cloud.Unavailable, timeout, context.DeadlineExceeded
	case ctx.Err() != nil:
		return cloud.Unavailable, "no time left for an answer", context.DeadlineExceeded
	}
	if text, ok := c.untrusted(err); ok {
		return cloud.Untrusted, text, nil
	}
	if text := c.unconnected(err); text != "" {
		return cloud.Unavailable, text, nil
	}
	switch netErr, isNet := errors.AsType[net.Error](err); {
	case errors.Is(err, errTooLarge):
		return cloud.Unreadable, "the answer is too large", nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return cloud.Unreadable, "the answer was cut short", io.ErrUnexpectedEOF
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return cloud.Unavailable, "connection reset", syscall.ECONNRESET
	case isNet && netErr.Timeout():
		return cloud.Unavailable, timeout, context.DeadlineExceeded
	case errors.Is(err, io.EOF):
		return cloud.Unavailable, "connection closed without an answer", io.EOF
	case strings.Contains(err.Error(), "malformed HTTP"):
		return cloud.Unreadable, "the answer is not HTTP: check the port of the Cloud's endpoint", nil
	default:
		return cloud.Unavailable, "connection broken", nil
	}
}

// unconnected says why no connection came to be; it is empty where one did.
func (c *Client) unconnected(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "no such host " + c.host + ": check the Cloud's endpoint"
		}
		return "the name " + c.host + " cannot be resolved now"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		via := ""
		if op.Op == "proxyconnect" {
			via = "proxy: "
		}
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return via + "connection refused"
		case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
			return via + "no route to the host"
		case op.Timeout():
			return via + fmt.Sprintf("no connection within %s", dialTimeout)
		default:
			return via + "cannot connect"
		}
	}
	switch _, plain := errors.AsType[tls.RecordHeaderError](err); {
	case plain, errors.Is(err, http.ErrSchemeMismatch):
		return "the endpoint does not speak TLS: check whether the Cloud's endpoint begins with http://"
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return "the cloud refused the TLS handshake"
	}
	return ""
}

// untrusted says what is wrong with the certificate, and what to do.
func (c *Client) untrusted(err error) (string, bool) {
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		_ = unknown
		return "certificate signed by unknown authority: put the cloud's CA under ca.crt in the Secret", true
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("the certificate is not for %s but for %s: check the Cloud's endpoint",
			c.host, certified(e.Certificate)), true
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return fmt.Sprintf("the certificate is valid from %s to %s only: have the cloud renew it",
				e.Cert.NotBefore.UTC().Format("2006-01-02"), e.Cert.NotAfter.UTC().Format("2006-01-02")), true
		}
		return "the certificate cannot be used for this: have the cloud replace it", true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate cannot be verified", true
	}
	return "", false
}

// certified lists what a certificate is for, bounded.
func certified(cert *x509.Certificate) string {
	if cert == nil {
		return "another host"
	}
	names := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no host"
	}
	return truncate(printable(strings.Join(names, ", ")), 128)
}
