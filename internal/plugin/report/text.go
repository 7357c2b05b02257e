package report

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// redactor replaces what may be secret. The zero value knows no endpoints.
type redactor struct {
	// hidden finds the hosts and users of endpoints, nil for none.
	hidden *regexp.Regexp
	hosts  []string
}

// hide makes text replace the parts of an endpoint wherever they are.
func (r *redactor) hide(endpoint string) {
	parsed, err := url.Parse(endpoint)
	if err != nil {
		return
	}
	parts := []string{parsed.Hostname()}
	if parsed.User != nil {
		password, _ := parsed.User.Password()
		parts = append(parts, parsed.User.Username(), password)
	}
	for _, part := range parts {
		if part != "" && !slices.Contains(r.hosts, part) {
			r.hosts = append(r.hosts, part)
		}
	}
	if len(r.hosts) == 0 {
		return
	}
	quoted := make([]string, len(r.hosts))
	for i, host := range r.hosts {
		quoted[i] = regexp.QuoteMeta(host)
		if !strings.ContainsAny(host, ".:") { // a short name may be part of other words
			quoted[i] = `\b` + quoted[i] + `\b`
		}
	}
	slices.SortFunc(quoted, func(a, b string) int { return len(b) - len(a) })
	r.hidden = regexp.MustCompile(`(?i)(` + strings.Join(quoted, "|") + `)(:\d+)?`)
}

// secretName finds names of fields whose values are secrets.
var secretName = regexp.MustCompile(`(?i)(token|passw(or)?d|secret|api[_-]?key|private[_-]?key|authorization|cookie|credential)`)

// rules are what is replaced in texts, in this order. The first group of a pattern stays. A
// text without any of the hints of a rule, in lower case, is not searched for it.
var rules = []struct {
	hints   []string
	pattern *regexp.Regexp
	with    string
}{
	{[]string{"-----begin"}, regexp.MustCompile(`()-{5}BEGIN [^-]+-{5}[\s\S]*?(-{5}END [^-]+-{5}|$)`), "${1}" + redacted},
	// Pages of this project, to which messages refer, stay.
	{[]string{"://"}, regexp.MustCompile(`(?i)(https://github\.com/privatecloud/operator/[\w./#-]*)|(\b[a-z][a-z0-9+.-]*://)[^\s"'<>\\` + "`" + `]+`), ""},
	{[]string{"bearer", "basic"}, regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[\w.~+/=-]{4,}`), "${1}" + redacted},
	{[]string{"eyj"}, regexp.MustCompile(`()\beyJ[\w-]+\.[\w-]+(\.[\w-]*)?`), "${1}" + redacted},
	{
		[]string{"token", "passw", "secret", "key", "authorization", "cookie", "credential"},
		regexp.MustCompile(`(?i)([\w-]*(?:token|passw(?:or)?d|secret|api[_-]?key|private[_-]?key|authorization|cookie|credential)[\w-]*\\?["']?\s*[:=]\s*)(\\"(?:[^"\\])*\\"|"(?:[^"\\]|\\.)*"|'[^']*'|(?:bearer |basic )?[^\s,;"'}&]+)`),
		"${1}" + redacted,
	},
	{[]string{"lookup "}, regexp.MustCompile(`(\blookup )[^\s:]+`), "${1}" + redacted},
	{[]string{"certificate is valid for"}, regexp.MustCompile(`(certificate is valid for ).*?, not [^\s"\\]+`), "${1}" + redacted},
	{[]string{":"}, regexp.MustCompile(`()\b(?:\d{1,3}\.){3}\d{1,3}:\d+`), "${1}" + redacted},
	{[]string{"]:"}, regexp.MustCompile(`()\[[0-9a-fA-F:.%]+\]:\d+`), "${1}" + redacted},
}

// text replaces what may be secret in a message, a log line or a value.
func (r *redactor) text(text string) string {
	if r.hidden != nil {
		text = r.hidden.ReplaceAllString(text, redacted)
	}
	lower := strings.ToLower(text)
	for i := range rules {
		rule := &rules[i]
		if !slices.ContainsFunc(rule.hints, func(hint string) bool { return strings.Contains(lower, hint) }) {
			continue
		}
		if rule.with == "" {
			text = rule.pattern.ReplaceAllStringFunc(text, urlOf)
			continue
		}
		text = rule.pattern.ReplaceAllString(text, rule.with)
	}
	return text
}

// urlOf keeps the scheme of a URL, and pages of this project.
func urlOf(found string) string {
	if strings.HasPrefix(strings.ToLower(found), "https://github.com/privatecloud/operator/") {
		return found
	}
	return endpoint(found)
}
