package transport

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Redacted stands in texts where a secret was.
const Redacted = "REDACTED"

// Redactor removes secrets from texts that a cloud wrote. However it is printed,
// no secret shows.
type Redactor struct {
	secrets []string
}

// NewRedactor returns a Redactor of these secrets; empty ones are ignored.
func NewRedactor(secrets ...string) *Redactor { return &Redactor{secrets: secrets} }

// Redact returns text without the secrets, and without those given here, also
// in the forms in which a cloud may quote them. The text must be Printable.
func (r *Redactor) Redact(text string, more ...string) string {
	for _, secret := range slices.Concat(more, r.secrets) {
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			if form = Printable(form); form != "" {
				text = strings.ReplaceAll(text, form, Redacted)
			}
		}
	}
	return text
}

// Format covers every verb of fmt.
func (r *Redactor) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Redacted)) }
