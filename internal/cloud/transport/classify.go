package transport

import (
	"compress/flate"
	"compress/gzip"
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

var errTimedOut = errors.New("timed out")

// Classify returns what a request that failed with err means: Kind, a Detail
// that stays the same from call to call (no ports, no times), and a cause in Err
// of which the same is true. The backend adds Op, and decides Uncertain. ctx is
// that of the request.
func (t *Transport) Classify(ctx context.Context, err error) *cloud.Error {
	if refused, ok := errors.AsType[*cloud.Error](err); ok {
		e := *refused
		return &e
	}
	if e := t.classifyContext(ctx); e != nil {
		return e
	}
	if text := t.untrusted(err); text != "" {
		return &cloud.Error{Kind: cloud.Untrusted, Detail: text}
	}
	if text := t.notConnected(err); text != "" {
		return &cloud.Error{Kind: cloud.Unavailable, Detail: text}
	}
	return t.classifyExchange(err)
}

// classifyContext returns nil while ctx has not ended.
func (t *Transport) classifyContext(ctx context.Context) *cloud.Error {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return &cloud.Error{Kind: cloud.Unavailable, Detail: "canceled", Err: context.Canceled}
	case errors.Is(context.Cause(ctx), errTimedOut):
		return t.timedOut()
	default:
		return &cloud.Error{Kind: cloud.Unavailable, Detail: "no time left for an answer", Err: context.DeadlineExceeded}
	}
}

func (t *Transport) timedOut() *cloud.Error {
	return &cloud.Error{
		Kind: cloud.Unavailable, Detail: fmt.Sprintf("timed out after %s", t.timeout), Err: context.DeadlineExceeded,
	}
}

// classifyExchange is about a connection that broke after it was made.
func (t *Transport) classifyExchange(err error) *cloud.Error {
	netErr, isNet := errors.AsType[net.Error](err)
	text := err.Error()
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &cloud.Error{Kind: cloud.Unreadable, Detail: "the answer is larger than " + size(tooLarge.Limit)}
	}
	if _, corrupt := errors.AsType[flate.CorruptInputError](err); corrupt || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return &cloud.Error{Kind: cloud.Unreadable, Detail: "the answer is not valid gzip, though its header Content-Encoding says that it is"}
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &cloud.Error{Kind: cloud.Unreadable, Detail: "the answer was cut short", Err: io.ErrUnexpectedEOF}
	case (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) && t.wantsProof():
		return &cloud.Error{Kind: cloud.Unavailable, Detail: "connection reset: " + mayWantProof, Err: syscall.ECONNRESET}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &cloud.Error{Kind: cloud.Unavailable, Detail: "connection reset", Err: syscall.ECONNRESET}
	case strings.Contains(text, "TLS handshake timeout"):
		return &cloud.Error{Kind: cloud.Unavailable, Detail: fmt.Sprintf("no TLS handshake within %s", dialTimeout)}
	case isNet && netErr.Timeout():
		return t.timedOut()
	case errors.Is(err, io.EOF):
		return &cloud.Error{Kind: cloud.Unavailable, Detail: "connection closed without an answer", Err: io.EOF}
	case strings.Contains(text, "response headers exceeded"), strings.Contains(text, "response header list larger"):
		return &cloud.Error{Kind: cloud.Unreadable, Detail: "the headers of the answer are larger than " + size(maxHeader)}
	case strings.Contains(text, "malformed HTTP"):
		return &cloud.Error{Kind: cloud.Unreadable, Detail: "the answer is not HTTP: check the port of the Cloud's endpoint"}
	default:
		return &cloud.Error{Kind: cloud.Unavailable, Detail: "connection broken"}
	}
}

func size(bytes int64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KiB", bytes>>10)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// notConnected returns why there is no connection, empty if there was one.
func (t *Transport) notConnected(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "no such host " + t.host + ": check the Cloud's endpoint"
		}
		return "the name " + t.host + " cannot be resolved now"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		return notDialed(op, err)
	}
	return t.notAgreed(err)
}

func notDialed(op *net.OpError, err error) string {
	proxy := ""
	if op.Op == "proxyconnect" {
		proxy = "proxy: "
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return proxy + "connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return proxy + "no route to the host"
	case op.Timeout():
		return proxy + fmt.Sprintf("no connection within %s", dialTimeout)
	default:
		return proxy + "cannot connect"
	}
}

// untrusted returns what is wrong with the certificate and what to do, empty if
// that is not why the request failed.
func (t *Transport) untrusted(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "certificate signed by unknown authority: put the cloud's CA under ca.crt in the Secret"
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("the certificate is not for %s but for %s: check the Cloud's endpoint",
			t.host, namesOf(e.Certificate))
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return fmt.Sprintf("the certificate is valid from %s to %s only: have the cloud renew it",
				e.Cert.NotBefore.UTC().Format("2006-01-02"), e.Cert.NotAfter.UTC().Format("2006-01-02"))
		}
		return "the certificate cannot be used for this: have the cloud replace it"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate cannot be verified"
	}
	return ""
}

// namesOf lists the names that a certificate is for, bounded.
func namesOf(cert *x509.Certificate) string {
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
	return Truncate(Printable(strings.Join(names, ", ")), 128)
}
