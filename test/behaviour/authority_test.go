package behaviour_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"

	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// authority is a certificate authority.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newAuthority(t *T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	t.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: fmt.Sprintf("CA %d", clouds.Add(1))},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(2 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	t.Expect(err).NotTo(HaveOccurred())
	certificate, err := x509.ParseCertificate(der)
	t.Expect(err).NotTo(HaveOccurred())
	return &authority{certificate, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// certify returns a certificate for a host that is valid until a time.
func (a *authority) certify(t *T, host string, until time.Time) *tls.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	t.Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	t.Expect(err).NotTo(HaveOccurred())
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serveTLS serves a cloud over TLS. It presents the first certificate until
// present is called with another one.
func serveTLS(t *T, first *tls.Certificate) (server *testkit.CloudServer, present func(*tls.Certificate)) {
	t.Helper()
	var current atomic.Pointer[tls.Certificate]
	current.Store(first)
	server, err := testkit.ServeCloud(mockcloud.Options{}, func(server *httptest.Server) {
		server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return &tls.Config{Certificates: []tls.Certificate{*current.Load()}}, nil
		}}
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
	})
	t.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { t.Expect(server.Close()).To(Succeed()) })
	return server, current.Store
}
