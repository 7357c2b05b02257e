package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority is a certificate authority.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	key := newKey(t)
	return &authority{certificate: sign(t, template, template, key, key), key: key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// certify returns a certificate of the authority for this machine.
func (a *authority) certify(t *testing.T, usage x509.ExtKeyUsage, until time.Time) tls.Certificate {
	t.Helper()
	key := newKey(t)
	certificate := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, a.certificate, key, a.key)
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

func write(t *testing.T, folder, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serveWebhook serves /review with the flags until the test ends, and returns its address.
func serveWebhook(t *testing.T, ca *authority, clientCA string) string {
	t.Helper()
	folder, serving := t.TempDir(), ca.certify(t, x509.ExtKeyUsageServerAuth, time.Now().Add(time.Hour))
	write(t, folder, "tls.crt", "CERTIFICATE", serving.Certificate[0])
	key, err := x509.MarshalECPrivateKey(serving.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder, "tls.key", "EC PRIVATE KEY", key)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	server, err := webhookServer(flags{webhookAddr: address, webhookCertPath: folder, webhookClientCA: clientCA})
	if err != nil {
		t.Fatal(err)
	}
	server.Register("/review", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "reviewed") }))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the webhook server ended with %v", err)
		}
	})
	check, patience := webhookStarted(server, clientCA != ""), time.NewTimer(30*time.Second)
	defer patience.Stop()
	for again := time.NewTicker(10 * time.Millisecond); check(nil) != nil; {
		select {
		case <-again.C:
		case <-patience.C:
			t.Fatal("the webhook server did not start within 30 s")
		}
	}
	return address
}

func TestWebhookServesTheClientOfTheAPIServerOnly(t *testing.T) {
	ca, clients, others := newAuthority(t), newAuthority(t), newAuthority(t)
	file := write(t, t.TempDir(), "ca.crt", "CERTIFICATE", clients.certificate.Raw)
	required, open := serveWebhook(t, ca, file), serveWebhook(t, ca, "")
	inTime := time.Now().Add(time.Hour)
	for name, tc := range map[string]struct {
		address string
		client  []tls.Certificate
		served  bool
	}{
		"a certificate of the CA: served":          {required, []tls.Certificate{clients.certify(t, x509.ExtKeyUsageClientAuth, inTime)}, true},
		"no certificate: refused":                  {required, nil, false},
		"a certificate of another CA: refused":     {required, []tls.Certificate{others.certify(t, x509.ExtKeyUsageClientAuth, inTime)}, false},
		"a certificate of the serving CA: refused": {required, []tls.Certificate{ca.certify(t, x509.ExtKeyUsageClientAuth, inTime)}, false},
		"a certificate for servers: refused":       {required, []tls.Certificate{clients.certify(t, x509.ExtKeyUsageServerAuth, inTime)}, false},
		"an expired certificate: refused":          {required, []tls.Certificate{clients.certify(t, x509.ExtKeyUsageClientAuth, time.Now().Add(-time.Minute))}, false},
		"no flag, no certificate: served":          {open, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			roots := x509.NewCertPool()
			roots.AddCert(ca.certificate)
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: tc.client}}
			defer transport.CloseIdleConnections()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+tc.address+"/review", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := transport.RoundTrip(request)
			if err == nil {
				if err := response.Body.Close(); err != nil {
					t.Error(err)
				}
			}
			if served := err == nil && response.StatusCode == http.StatusOK; served != tc.served {
				t.Errorf("served: %t (%v), want %t", served, err, tc.served)
			}
		})
	}
}

func TestWebhookServerRefusesFlagsThatDoNotWork(t *testing.T) {
	folder := t.TempDir()
	for name, tc := range map[string]struct{ address, clientCA string }{
		"an address without a port":      {"127.0.0.1", ""},
		"a port that is none":            {"127.0.0.1:0", ""},
		"a file of CAs that is missing":  {"127.0.0.1:9443", filepath.Join(folder, "nowhere")},
		"a file that has no certificate": {"127.0.0.1:9443", write(t, folder, "ca.crt", "PRIVATE KEY", []byte("x"))},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := webhookServer(flags{webhookAddr: tc.address, webhookCertPath: folder, webhookClientCA: tc.clientCA}); err == nil {
				t.Error("it was accepted")
			}
		})
	}
}
