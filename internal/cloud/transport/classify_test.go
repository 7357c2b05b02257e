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
	"net/url"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	read := func(err error) error {
		return &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: 40123}, Err: err}
	}
	unavailable := func(detail string, cause error) *cloud.Error {
		return &cloud.Error{Kind: cloud.Unavailable, Detail: detail, Err: cause}
	}
	unreadable := func(detail string, cause error) *cloud.Error {
		return &cloud.Error{Kind: cloud.Unreadable, Detail: detail, Err: cause}
	}
	untrusted := func(detail string) *cloud.Error { return &cloud.Error{Kind: cloud.Untrusted, Detail: detail} }
	day := func(d int) time.Time { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC) }
	for name, test := range map[string]struct {
		err  error
		want *cloud.Error
	}{
		"a refusal by a wrapper": {
			&cloud.Error{Kind: cloud.Throttled, Detail: "d", RetryAfter: 7},
			&cloud.Error{Kind: cloud.Throttled, Detail: "d", RetryAfter: 7},
		},
		"connection refused":    {dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), unavailable("connection refused", nil)},
		"refused by the proxy":  {&net.OpError{Op: "proxyconnect", Err: dial(syscall.ECONNREFUSED)}, unavailable("proxy: connection refused", nil)},
		"no route":              {dial(syscall.EHOSTUNREACH), unavailable("no route to the host", nil)},
		"no network":            {dial(syscall.ENETUNREACH), unavailable("no route to the host", nil)},
		"dial times out":        {dial(os.ErrDeadlineExceeded), unavailable("no connection within 10s", nil)},
		"dial fails otherwise":  {dial(errors.New("port 40123")), unavailable("cannot connect", nil)},
		"no such host":          {dial(&net.DNSError{IsNotFound: true}), unavailable("no such host cloud.test: check the Cloud's endpoint", nil)},
		"resolver out of order": {dial(&net.DNSError{IsTemporary: true}), unavailable("the name cloud.test cannot be resolved now", nil)},
		"HTTP where TLS is expected": {
			tls.RecordHeaderError{Msg: "first record"},
			unavailable("the endpoint does not speak TLS: check whether the Cloud's endpoint begins with http://", nil),
		},
		"HTTP answer to HTTPS": {
			http.ErrSchemeMismatch,
			unavailable("the endpoint does not speak TLS: check whether the Cloud's endpoint begins with http://", nil),
		},
		"TLS alert":            {tls.AlertError(80), unavailable("the cloud refused the TLS handshake (internal error)", nil)},
		"no handshake in time": {handshakeTimeout{}, unavailable("no TLS handshake within 10s", nil)},
		"unknown authority": {
			&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
			untrusted("certificate signed by unknown authority: put the cloud's CA under ca.crt in the Secret"),
		},
		"another host": {
			&tls.CertificateVerificationError{Err: x509.HostnameError{Host: "x", Certificate: &x509.Certificate{
				DNSNames: []string{"a.test", "b.test"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)},
			}}},
			untrusted("the certificate is not for cloud.test but for a.test, b.test, 10.0.0.1: check the Cloud's endpoint"),
		},
		"no host at all": {
			x509.HostnameError{Host: "x", Certificate: &x509.Certificate{}},
			untrusted("the certificate is not for cloud.test but for no host: check the Cloud's endpoint"),
		},
		"expired": {
			x509.CertificateInvalidError{Reason: x509.Expired, Cert: &x509.Certificate{NotBefore: day(1), NotAfter: day(2)}},
			untrusted("the certificate is valid from 2026-01-01 to 2026-01-02 only: have the cloud renew it"),
		},
		"not for servers": {
			x509.CertificateInvalidError{Reason: x509.IncompatibleUsage},
			untrusted("the certificate cannot be used for this: have the cloud replace it"),
		},
		"another fault of the certificate": {
			&tls.CertificateVerificationError{Err: errors.New("x")}, untrusted("the certificate cannot be verified"),
		},
		"body too large":             {&http.MaxBytesError{Limit: 1 << 20}, unreadable("the answer is larger than 1 MiB", nil)},
		"error body too large":       {&http.MaxBytesError{Limit: MaxErrorBody}, unreadable("the answer is larger than 64 KiB", nil)},
		"no gzip":                    {gzip.ErrHeader, unreadable("the answer is not valid gzip, though its header Content-Encoding says that it is", nil)},
		"broken gzip":                {flate.CorruptInputError(7), unreadable("the answer is not valid gzip, though its header Content-Encoding says that it is", nil)},
		"cut short":                  {io.ErrUnexpectedEOF, unreadable("the answer was cut short", io.ErrUnexpectedEOF)},
		"reset":                      {read(os.NewSyscallError("read", syscall.ECONNRESET)), unavailable("connection reset", syscall.ECONNRESET)},
		"broken pipe":                {read(syscall.EPIPE), unavailable("connection reset", syscall.ECONNRESET)},
		"no headers in time":         {read(os.ErrDeadlineExceeded), unavailable("timed out after 10s", context.DeadlineExceeded)},
		"closed without an answer":   {io.EOF, unavailable("connection closed without an answer", io.EOF)},
		"not HTTP":                   {errors.New(`malformed HTTP response "SSH"`), unreadable("the answer is not HTTP: check the port of the Cloud's endpoint", nil)},
		"anything else, with a port": {read(errors.New("weird")), unavailable("connection broken", nil)},
	} {
		for wrapper, err := range map[string]error{
			"as it is":         test.err,
			"in a url.Error":   &url.Error{Op: "Get", URL: endpoint, Err: test.err},
			"in another error": fmt.Errorf("x: %w", test.err),
		} {
			t.Run(name+", "+wrapper, func(t *testing.T) {
				t.Parallel()
				got := newTransport(t, ok).Classify(t.Context(), err)
				if diff := cmp.Diff(*test.want, *got, cmpopts.EquateErrors()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// handshakeTimeout is what net/http returns for a handshake that takes too long.
type handshakeTimeout struct{}

func (handshakeTimeout) Error() string   { return "net/http: TLS handshake timeout" }
func (handshakeTimeout) Timeout() bool   { return true }
func (handshakeTimeout) Temporary() bool { return true }

func TestClassifyReturnsCopyOfRefusal(t *testing.T) {
	t.Parallel()
	refusal := &cloud.Error{Kind: cloud.Throttled}
	newTransport(t, ok).Classify(t.Context(), refusal).Op = "changed"
	if refusal.Op != "" {
		t.Error("the error of the wrapper was changed")
	}
}

func TestClassifyTellsTimeoutFromEndOfContext(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		context func(context.Context, *Transport) (context.Context, context.CancelFunc)
		detail  string
		cause   error
	}{
		"the transport's own timeout": {
			func(ctx context.Context, c *Transport) (context.Context, context.CancelFunc) {
				return c.WithTimeout(ctx)
			},
			"timed out after 10s", context.DeadlineExceeded,
		},
		"an earlier deadline of the caller": {
			func(ctx context.Context, c *Transport) (context.Context, context.CancelFunc) {
				ctx, stop := context.WithTimeout(ctx, time.Second)
				ctx, cancel := c.WithTimeout(ctx)
				return ctx, func() { cancel(); stop() }
			}, "no time left for an answer", context.DeadlineExceeded,
		},
		"a canceled context": {
			func(ctx context.Context, c *Transport) (context.Context, context.CancelFunc) {
				ctx, stop := context.WithCancel(ctx)
				time.AfterFunc(time.Second, stop)
				ctx, cancel := c.WithTimeout(ctx)
				return ctx, func() { cancel(); stop() }
			}, "canceled", context.Canceled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newTransport(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
				ctx, cancel := test.context(t.Context(), c)
				defer cancel()
				got := c.Classify(ctx, get(ctx, c))
				want := cloud.Error{Kind: cloud.Unavailable, Detail: test.detail, Err: test.cause}
				if diff := cmp.Diff(want, *got, cmpopts.EquateErrors()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestTraceSent(t *testing.T) {
	t.Parallel()
	c := newTransport(t, ok)
	ctx, sent := TraceSent(t.Context())
	if sent() > 0 {
		t.Error("sent before the request")
	}
	if err := get(ctx, c); err != nil || sent() != 1 {
		t.Errorf("%v, sent %d times; want it sent once", err, sent())
	}
	c.Hold(time.Minute)
	ctx, sent = TraceSent(t.Context())
	wantThrottled(t, get(ctx, c), heldDetail)
	if sent() > 0 {
		t.Error("a refused request counts as sent")
	}
}
