package rest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// issuer is a CA for one test.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newIssuer(t *testing.T) issuer {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: t.Name()}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	key, der := sign(t, template, nil, nil)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

func sign(t *testing.T, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	return key, der
}

// serve returns the URL, under localhost, of a server with a certificate for
// the host until the given time, and the number of its requests.
func (i issuer) serve(t *testing.T, host string, until time.Time) (string, *scriptedServer) {
	t.Helper()
	key, der := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{host},
		NotBefore: until.Add(-48 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
	}, i.cert, i.key)
	answers := answering(reply{status: 201, body: `{"id":"i-1","name":"web"}`})
	server := httptest.NewUnstartedServer(answers)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.Config.ErrorLog = log.New(&strings.Builder{}, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "127.0.0.1", "localhost", 1), answers
}

// A request that fails because of the certificate was not sent, so a create is not
// uncertain.
func TestCertificates(t *testing.T) {
	t.Parallel()
	own, other := newIssuer(t), newIssuer(t)
	later := time.Now().Add(24 * time.Hour)
	for name, test := range map[string]struct {
		host     string
		until    time.Time
		ca       []byte
		insecure bool
		want     string
	}{
		"the right CA":              {"localhost", later, own.pem, false, ""},
		"no CA, no verification":    {"elsewhere", later, nil, true, ""},
		"another CA":                {"localhost", later, other.pem, false, "certificate signed by unknown authority: put the cloud's CA under ca.crt in the Secret"},
		"no CA: the system's roots": {"localhost", later, nil, false, "certificate signed by unknown authority: put the cloud's CA under ca.crt in the Secret"},
		"another host":              {"elsewhere.example", later, own.pem, false, "the certificate is not for localhost but for elsewhere.example: check the Cloud's endpoint"},
		"expired": {"localhost", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), own.pem, false,
			"the certificate is valid from 2025-12-31 to 2026-01-02 only: have the cloud renew it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, answers := own.serve(t, test.host, test.until)
			c := newClient(t, url, func(cfg *Config) { cfg.CA, cfg.InsecureSkipVerify = test.ca, test.insecure }).withCapabilities()
			err := verbs["create"](t.Context(), c)
			if test.want == "" {
				if err != nil || answers.count() != 1 {
					t.Errorf("%v after %d requests, want success", err, answers.count())
				}
				return
			}
			wantOutcome(t, err, outcome{Kind: cloud.Untrusted})
			wantText(t, err, `create server "web": `+test.want)
			if answers.count() != 0 {
				t.Errorf("%d requests were sent", answers.count())
			}
		})
	}
}

func TestWrongSchemeIsReported(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(answering(reply{status: 200}))
	t.Cleanup(plain.Close)
	c := newClient(t, "https"+strings.TrimPrefix(plain.URL, "http")).withCapabilities()
	err := verbs["create"](t.Context(), c)
	wantOutcome(t, err, outcome{Kind: cloud.Unavailable})
	wantText(t, err, `create server "web": the endpoint does not speak TLS: check whether the Cloud's endpoint begins with http://`)
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	server.Config.ErrorLog = log.New(&strings.Builder{}, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	c := newClient(t, server.URL, func(cfg *Config) { cfg.InsecureSkipVerify = true }).withCapabilities()
	wantOutcome(t, verbs["create"](t.Context(), c), outcome{Kind: cloud.Unavailable})
}
