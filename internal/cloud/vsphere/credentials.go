package vsphere

import (
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

// Credentials are a Username and a Password, a SAML Token, or a certificate with its
// key, both in PEM. They show no secret however they are printed, logged or encoded.
type Credentials struct {
	Username, Password string
	// Token is a bearer token of the vCenter's single sign-on. A session is opened with
	// it as long as it is valid.
	Token string
	// Certificate is that of a solution user, with an RSA key.
	Certificate, Key []byte
}

// String returns what kind of credentials these are.
func (c Credentials) String() string {
	switch {
	case c.Token != "":
		return "token " + transport.Redacted
	case len(c.Key) > 0 || len(c.Certificate) > 0:
		return "certificate " + transport.Redacted
	case c.Username != "" || c.Password != "":
		return "username and password " + transport.Redacted
	default:
		return "none"
	}
}

// GoString is String, for %#v.
func (c Credentials) GoString() string { return c.String() }

// Format covers the verbs that ask neither String nor GoString, such as %d.
func (c Credentials) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(c.String())) }

// MarshalLog is String, for logr.
func (c Credentials) MarshalLog() any { return c.String() }

// MarshalText is String, for JSON and YAML.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// CredentialKeys names the keys of a Secret with credentials, of which it has one kind.
const CredentialKeys = "username and password, or token, or tls.crt and tls.key"

// Validate returns an error if nobody can log in with these credentials.
func (c Credentials) Validate() error {
	_, err := c.cleaned()
	return err
}

// cleaned removes the line end that files and `echo` leave in a Secret, and refuses
// credentials that cannot work.
func (c Credentials) cleaned() (Credentials, error) {
	c.Token = strings.TrimSpace(c.Token)
	c.Username = strings.TrimRight(c.Username, "\r\n")
	c.Password = strings.TrimRight(c.Password, "\r\n")
	certificate := len(c.Certificate) > 0 || len(c.Key) > 0
	password := c.Username != "" || c.Password != ""
	kinds := 0
	for _, given := range []bool{password, c.Token != "", certificate} {
		if given {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		return c, errors.New("credentials: none are given; put " + CredentialKeys + " in the Secret")
	case kinds > 1:
		return c, errors.New("credentials: they are of several kinds; keep one of these in the Secret: " + CredentialKeys)
	case password && (c.Username == "" || c.Password == ""):
		return c, errors.New("credentials: need both username and password in the Secret")
	case c.Token != "" && !strings.HasPrefix(c.Token, "<"):
		return c, errors.New("credentials: the token is no SAML assertion; check the key token of the Secret")
	case certificate:
		_, err := c.pair()
		return c, err
	}
	return c, nil
}

// pair returns the certificate with its key. Its errors quote neither.
func (c Credentials) pair() (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(c.Certificate, c.Key)
	if err != nil {
		return nil, errors.New("credentials: tls.crt and tls.key are no PEM certificate with its key; check these keys of the Secret")
	}
	if _, ok := pair.PrivateKey.(*rsa.PrivateKey); !ok {
		return nil, errors.New("credentials: tls.key is no RSA key, which single sign-on of vCenter needs")
	}
	return &pair, nil
}
