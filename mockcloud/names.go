package mockcloud

import (
	"net/http"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the maximum length of a name in bytes.
const maxName = 255

func checkName(name string) error {
	switch {
	case name == "":
		return invalid("name is required")
	case len(name) > maxName:
		return invalid("name is longer than %d bytes", maxName)
	case !utf8.ValidString(name):
		return invalid("name is not UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return invalid("name contains control characters")
	}
	return nil
}

// admitName returns an error if a new server may not have the name. The caller
// holds mu for reading.
func (c *Cloud) admitName(name string) error {
	if c.prohibitedNames.match(name) {
		return problem(http.StatusForbidden, CodeNameProhibited, "the name %q is prohibited", name)
	}
	if c.has(UniqueNames) && len(c.st.byName[name]) > 0 {
		return problem(http.StatusConflict, CodeNameTaken, "the name %q is taken", name)
	}
	return nil
}

// handleCheck handles GET /check/{name}.
func (c *Cloud) handleCheck(w http.ResponseWriter, r *request) error {
	name := r.vars[0]
	if err := checkName(name); err != nil {
		return err
	}
	c.mu.RLock()
	err := c.admitName(name)
	c.mu.RUnlock()
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"name": name, "available": true})
}

// globs matches text against any of a list of names or globs.
type globs []*regexp.Regexp

// parseGlobs compiles globs: * matches any sequence of characters and ? one
// character. Every other character matches itself.
func parseGlobs(patterns []string) globs {
	var out globs
	for _, pattern := range patterns {
		quoted := regexp.QuoteMeta(pattern)
		quoted = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(quoted)
		out = append(out, regexp.MustCompile(`(?s)^`+quoted+`$`))
	}
	return out
}

func (g globs) match(text string) bool {
	for _, glob := range g {
		if glob.MatchString(text) {
			return true
		}
	}
	return false
}
