package transport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	// Redacted stands in texts where a secret was.
	Redacted = "REDACTED"
	// maxDecodings is how many encodings may lie over one another, such as the
	// percent-encoded base64 of a secret.
	maxDecodings = 3
	// maxUnits bounds the bytes of all decoded forms of a text. A text that exceeds
	// it is redacted as a whole.
	maxUnits = 1 << 20
	// longSecret is the length from which a part of a secret is redacted, in bytes.
	longSecret = 8
)

// Redactor removes secrets from texts that a cloud wrote. However it is printed,
// no secret shows.
type Redactor struct {
	secrets []string
}

// NewRedactor returns a Redactor of these secrets; empty ones are ignored.
func NewRedactor(secrets ...string) *Redactor { return &Redactor{secrets: secrets} }

// Redact returns text without the secrets, and without those given here, also in
// the forms in which a cloud may quote them: percent-encoded, escaped as in JSON,
// other literals and HTML, in hexadecimal digits, in base64 of any alphabet together
// with other text, and combinations of these.
// Of a secret with 8 bytes or more, its first 8 bytes or its first half are
// redacted as well, because clouds cut texts off. The text must be Printable.
func (r *Redactor) Redact(text string, more ...string) string {
	secrets := needles(slices.Concat(more, r.secrets))
	if len(secrets) == 0 || text == "" {
		return text
	}
	streams := []decoded{plain(text)}
	var found []span
	units := 0
	for depth := 0; ; depth++ {
		for _, stream := range streams {
			if units += len(stream); units > maxUnits {
				return Redacted
			}
			for _, secret := range secrets {
				found = append(found, stream.find(secret)...)
			}
		}
		if depth == maxDecodings {
			break
		}
		var next []decoded
		for _, stream := range streams {
			next = append(next, stream.decode()...)
		}
		streams = next
	}
	return replace(text, found)
}

// Format covers every verb of fmt.
func (r *Redactor) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Redacted)) }

// needles returns each secret as it is and as it looks in a Printable text.
func needles(secrets []string) []string {
	var all []string
	for _, secret := range secrets {
		all = append(all, secret, Printable(secret))
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(all, func(secret string) bool { return secret == "" })
}

// enough returns how many of its first bytes give a secret away.
func enough(secret string) int {
	if len(secret) < longSecret {
		return len(secret)
	}
	return min(longSecret, (len(secret)+1)/2)
}

// span is a part of a text, in bytes.
type span struct{ from, to int }

// replace replaces the spans of a text, which may overlap.
func replace(text string, spans []span) string {
	if len(spans) == 0 {
		return text
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var out strings.Builder
	written := 0
	for i := 0; i < len(spans); {
		merged := spans[i]
		for i++; i < len(spans) && spans[i].from <= merged.to; i++ {
			merged.to = max(merged.to, spans[i].to)
		}
		out.WriteString(text[written:merged.from])
		out.WriteString(Redacted)
		written = merged.to
	}
	out.WriteString(text[written:])
	return out.String()
}
