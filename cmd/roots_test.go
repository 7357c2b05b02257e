package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"
)

func TestPublicCAsAreTrustedWithoutAFileOfCAs(t *testing.T) {
	// A process reads the CAs of the system once.
	const inside = "TEST_WITHOUT_CA_FILES"
	if os.Getenv(inside) == "" {
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), inside+"=1", "SSL_CERT_FILE="+os.DevNull, "SSL_CERT_DIR="+t.TempDir())
		if output, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		return
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	if roots.Equal(x509.NewCertPool()) {
		t.Error("there are no CAs: calls to a cloud with a public certificate would fail")
	}
}
