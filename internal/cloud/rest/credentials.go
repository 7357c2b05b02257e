package rest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

// Credentials are a Token, or a Username and a Password that open a session,
// or nothing. They show no secret however they are printed, logged or encoded.
type Credentials struct {
	Token    string
	Username string
	Password string
}

// String returns what kind of credentials these are.
func (c Credentials) String() string {
	switch {
	case c.Token != "":
		return "token " + transport.Redacted
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

func (c Credentials) session() bool { return c.Username != "" }

// advice returns what to check when the cloud refuses the credentials.
func (c Credentials) advice() string {
	switch {
	case c.session():
		return "the cloud refuses the credentials: check username and password in the Secret"
	case c.Token != "":
		return "the cloud refuses the token: check the key token of the Secret"
	default:
		return "the cloud wants credentials: name a Secret in spec.credentialsSecretRef"
	}
}

// cleaned removes the line end that files and `echo` leave in a Secret, and
// refuses credentials that cannot work.
func (c Credentials) cleaned() (Credentials, error) {
	c.Token = strings.TrimSpace(c.Token)
	c.Username = strings.TrimRight(c.Username, "\r\n")
	c.Password = strings.TrimRight(c.Password, "\r\n")
	switch {
	case c.Token != "" && (c.Username != "" || c.Password != ""):
		return c, errors.New("credentials: hold both a token and a username or password; keep one of the two in the Secret")
	case (c.Username == "") != (c.Password == ""):
		return c, errors.New("credentials: need both username and password in the Secret")
	case !sendable(c.Token):
		return c, errors.New("credentials: the token holds spaces, line breaks or characters other than ASCII; check the key token of the Secret")
	}
	return c, nil
}

// sendable reports whether a token fits into an Authorization header.
func sendable(token string) bool {
	for _, r := range token {
		if r <= ' ' || r > '~' {
			return false
		}
	}
	return true
}
