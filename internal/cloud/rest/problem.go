package rest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// maxDetail bounds what is told of the cloud's own reason, in runes.
const maxDetail = 256

// wireProblem is RFC 9457 with a code. Other types of a field leave the field
// empty: the status still says what happened.
type wireProblem struct {
	Title  string
	Detail string
	Code   string
}

func (p *wireProblem) UnmarshalJSON(data []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	for name, into := range map[string]*string{"title": &p.Title, "detail": &p.Detail, "code": &p.Code} {
		if json.Unmarshal(fields[name], into) != nil {
			*into = ""
		}
	}
	return nil
}

// wordPattern is what a code looks like. Anything else is dropped: codes end
// in conditions and metrics.
var wordPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)

// problem reads a refusal. What is no problem document yields a zero one.
func (a *answer) problem() wireProblem {
	var p wireProblem
	if !a.json() || a.cut || json.Unmarshal(a.body, &p) != nil {
		return wireProblem{}
	}
	if !wordPattern.MatchString(p.Code) {
		p.Code = ""
	}
	return p
}

// timePattern is RFC 3339 or near it. Times in a reason would make each error
// a new one.
var timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`)

// reasonOf is the cloud's reason, fit for an error: one line, bounded, without
// secrets, request ids and times.
func (c *Client) reasonOf(p wireProblem, header http.Header, token, requestID string) string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	text = c.redact(printable(text), token)
	for _, id := range []string{requestID, printable(header.Get("X-Request-Id"))} {
		if len(id) >= 8 {
			text = strings.ReplaceAll(text, id, "…")
		}
	}
	text = timePattern.ReplaceAllString(text, "…")
	return truncate(text, maxDetail)
}

// redact hides the client's secrets and the token of this try, also in the
// forms in which a cloud may quote them.
func (c *Client) redact(text, token string) string {
	for _, secret := range []string{token, c.credentials.Token, c.credentials.Password} {
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			if form = printable(form); form != "" {
				text = strings.ReplaceAll(text, form, redacted)
			}
		}
	}
	return text
}

// printable returns text on one line, without control characters and what
// turns the direction of writing.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		default:
			return -1
		}
	}, text)
	return strings.TrimSpace(text)
}
