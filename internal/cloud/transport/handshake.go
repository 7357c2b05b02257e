package transport

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// Alerts of RFC 8446 by which a server refuses a handshake.
const (
	alertHandshakeFailure    tls.AlertError = 40
	alertBadCertificate      tls.AlertError = 42
	alertProtocolVersion     tls.AlertError = 70
	alertInsufficient        tls.AlertError = 71
	alertCertificateRequired tls.AlertError = 116
)

const (
	oldVersion = "the cloud does not offer TLS 1.2 or later, which the operator needs: have the cloud enable it"
	wantsProof = "the cloud wants a client certificate, which the operator does not present: have the cloud accept requests without one, " +
		"or put a proxy that presents it between the operator and the cloud"
	mayWantProof = "the cloud asked for a client certificate, which the operator does not present, and may require one: if it does, have it accept requests " +
		"without one, or put a proxy that presents it between the operator and the cloud"
	nothingShared = "the TLS handshake failed: the cloud offers no cipher, curve or certificate type that the operator accepts: have the cloud enable those of TLS 1.2 with ECDHE, or TLS 1.3"
)

// proof observes whether the server asks for a client certificate.
type proof struct{ asked, answered atomic.Bool }

// certificate is for tls.Config.GetClientCertificate: it presents none.
func (p *proof) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	p.asked.Store(true)
	return &tls.Certificate{}, nil
}

// missing reports whether the server asked for a certificate and has not answered a request without one.
func (p *proof) missing() bool { return p.asked.Load() && !p.answered.Load() }

// wantsProof reports whether a client certificate may be why no request is answered.
func (t *Transport) wantsProof() bool {
	base, ok := t.base.(*base)
	return ok && base.proof.missing()
}

// notAgreed returns why there was no TLS connection, empty if that is not why the request failed.
func (t *Transport) notAgreed(err error) string {
	if _, plain := errors.AsType[tls.RecordHeaderError](err); plain || errors.Is(err, http.ErrSchemeMismatch) {
		return "the endpoint does not speak TLS: check whether the Cloud's endpoint begins with http://"
	}
	if strings.Contains(err.Error(), "server selected unsupported protocol version") {
		return oldVersion
	}
	text := alertOf(err)
	switch text {
	case "":
		return ""
	case alertProtocolVersion.Error():
		return oldVersion
	case alertCertificateRequired.Error(), alertBadCertificate.Error():
		return wantsProof
	}
	switch {
	case t.wantsProof():
		return wantsProof
	case text == alertHandshakeFailure.Error(), text == alertInsufficient.Error():
		return nothingShared
	default:
		return "the cloud refused the TLS handshake (" + strings.TrimPrefix(text, "tls: ") + ")"
	}
}

// alertOf returns the text of the alert by which the server ended the connection, empty if there is none.
func alertOf(err error) string {
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return alert.Error()
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" && op.Err != nil {
		return op.Err.Error()
	}
	return ""
}
