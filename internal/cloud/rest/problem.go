package rest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/privatecloud/operator/internal/cloud/transport"
)

// maxDetail bounds what is quoted of the cloud's own reason, in runes.
const maxDetail = 256

// maxRedacted bounds what is searched for secrets of it, in runes: the search looks
// at all forms that a text may stand for, and a cloud may answer with a long one. A
// secret that the bound cuts is found by its beginning.
const maxRedacted = 4 * maxDetail

// wireProblem is RFC 9457 with a code. Other types of a field leave the field
// empty: the status still says what happened. Detail is also the reason of bodies with other members.
type wireProblem struct {
	Title  string
	Detail string
	Code   string
	// said are the texts of all fields that may say what the refusal is about, also those of an object "error".
	said string
}

// wordPattern is what a code looks like. Anything else is dropped: codes are
// shown in conditions and metrics.
var wordPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)

// problem reads a refusal. Of a body that is no problem document, only the text counts.
func (a *answer) problem() wireProblem {
	document := a.document()
	if document == nil && !a.html() {
		return wireProblem{said: transport.Truncate(transport.Printable(string(a.body)), maxDetail)}
	}
	return problemIn(document)
}

// document returns the body, nil if it is no JSON.
func (a *answer) document() []byte {
	body := bytes.TrimPrefix(a.body, byteOrderMark)
	if !a.json() || a.truncated || !json.Valid(body) {
		return nil
	}
	return body
}

// maxNested bounds how deep a reason is looked for in objects.
const maxNested = 3

// problemIn reads a problem from JSON whose syntax was checked.
func problemIn(body []byte) wireProblem {
	p := nestedProblem(body, maxNested)
	if !wordPattern.MatchString(p.Code) {
		p.Code = ""
	}
	return p
}

// nestedProblem reads a problem. Clouds that do not use RFC 9457 have the reason in other
// members, which take the place of an absent detail. The code is only read from code.
func nestedProblem(body []byte, depth int) wireProblem {
	var p wireProblem
	if body = trim(body); depth == 0 || len(body) == 0 {
		return p
	}
	if isText(body) {
		text := unquote(body)
		return wireProblem{Detail: text, said: transport.Truncate(text, maxDetail) + "\n"}
	}
	reasons, members := map[string]string{}, 0
	var last []byte
	fields(body, func(name, value []byte) {
		members++
		last = value
		switch string(name) {
		case "title", "detail", "code", "type", "message", "reason", "error", "error_description":
			nested := nestedProblem(value, depth-1)
			p.said += nested.said
			reasons[string(name)] = nested.reason()
		case "errors":
			reasons["errors"] = firstReason(value, depth-1)
		}
		if string(name) == "code" && isText(value) {
			p.Code = unquote(value)
		}
	})
	if members == 1 && len(reasons) == 0 && !isText(last) {
		nested := nestedProblem(last, depth-1) // such as badRequest of OpenStack
		p.said += nested.said
		reasons["detail"] = nested.reason()
	}
	p.Title = reasons["title"]
	for _, name := range []string{"detail", "message", "error_description", "error", "errors"} {
		if p.Detail = reasons[name]; p.Detail != "" {
			break
		}
	}
	return p
}

// firstReason returns the reason of the first of several problems.
func firstReason(list []byte, depth int) (reason string) {
	values(list, func(value []byte) {
		if reason == "" {
			reason = nestedProblem(value, depth).reason()
		}
	})
	return reason
}

// reason returns the text that says why, empty if there is none.
func (p wireProblem) reason() string {
	if strings.TrimSpace(p.Detail) != "" {
		return p.Detail
	}
	return p.Title
}

// timePattern is RFC 3339 or close to it. Times in a reason would make each error
// a different one.
var timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`)

// scrubber makes texts of the cloud fit for errors.
type scrubber struct {
	redactor *transport.Redactor
	// host finds the host of the endpoint in a text; nil if it could be any word.
	host *regexp.Regexp
}

// newScrubber returns a scrubber for a client with an endpoint on this host.
func newScrubber(host string, credentials Credentials) *scrubber {
	return &scrubber{redactor: transport.NewRedactor(credentials.Token, credentials.Password), host: hostPattern(host)}
}

// hostPattern matches a host in any spelling, with its port; nil if it may be a word
// of any text.
func hostPattern(host string) *regexp.Regexp {
	if !strings.ContainsAny(host, ".:-") {
		return nil
	}
	return regexp.MustCompile(`(?i)\[?` + regexp.QuoteMeta(host) + `\]?(:\d+)?`)
}

// reasonOf returns the cloud's reason in a form for errors: one line, bounded, without
// secrets, request ids, times and the host of the endpoint.
func (s *scrubber) reasonOf(p wireProblem, header http.Header, token, requestID string) string {
	return s.scrubbed(p.reason(), header, token, requestID)
}

// scrubbed returns a text of the cloud in the form of reasonOf.
func (s *scrubber) scrubbed(text string, header http.Header, token, requestID string) string {
	text = s.redactor.Redact(transport.Truncate(transport.Printable(text), maxRedacted), token)
	if s.host != nil {
		text = s.host.ReplaceAllString(text, "…")
	}
	for _, id := range []string{requestID, transport.Printable(header.Get("X-Request-Id"))} {
		if len(id) >= 8 {
			text = strings.ReplaceAll(text, id, "…")
		}
	}
	text = timePattern.ReplaceAllString(text, "…")
	return transport.Truncate(text, maxDetail)
}
