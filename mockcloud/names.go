package mockcloud

import (
	"net/http"
	"regexp"
	"slices"
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

// names decides which names servers and networks may have.
type names struct {
	core *core
}

// admit returns an error if a new server may not have the name. The caller
// holds core.mu for reading.
func (n *names) admit(name, folder string) error {
	if n.core.prohibitedNames.match(name) {
		return problem(http.StatusForbidden, CodeNameProhibited, "the name %q is prohibited", name)
	}
	if n.core.has(UniqueNames) && (len(n.namesakes(name, folder)) > 0 || n.beingCreated(name, folder)) {
		return problem(http.StatusConflict, CodeNameTaken, "the name %q is taken", name)
	}
	return nil
}

// namesakes returns the servers of a name, oldest first, of the folder alone if names
// are unique per folder. The caller holds core.mu.
func (n *names) namesakes(name, folder string) []*record {
	sets := []map[string]struct{}{n.core.st.byName[name]}
	if n.core.quirks.Load().NormalizeNames {
		sets = nil
		for other, ids := range n.core.st.byName {
			if normalized(other) == normalized(name) {
				sets = append(sets, ids)
			}
		}
	}
	var found []*record
	for _, ids := range sets {
		for id := range ids {
			if r := n.core.st.servers[id]; n.sameFolder(r.Folder, folder) {
				found = append(found, r)
			}
		}
	}
	slices.SortFunc(found, func(a, b *record) int { return a.position().compare(b.position()) })
	return found
}

// sameFolder reports whether names of two folders exclude each other.
func (n *names) sameFolder(a, b string) bool { return a == b || !n.core.has(FolderNames) }

// beingCreated reports whether an open operation creates a server of the name. The
// caller holds core.mu.
func (n *names) beingCreated(name, folder string) bool {
	same := func(other string) bool { return other == name }
	if n.core.quirks.Load().NormalizeNames {
		same = func(other string) bool { return normalized(other) == normalized(name) }
	}
	for _, o := range n.core.st.operations {
		if o.Create != nil && !o.Done && same(o.Create.Name) && n.sameFolder(deref(o.Create.Folder, ""), folder) {
			return true
		}
	}
	return false
}

// shown returns a name as answers have it.
func (n *names) shown(name string) string {
	if n.core.quirks.Load().NormalizeNames {
		return normalized(name)
	}
	return name
}

// handleCheck handles GET /check/{name}.
func (n *names) handleCheck(w http.ResponseWriter, r *request) error {
	name := r.vars[0]
	if err := checkName(name); err != nil {
		return err
	}
	n.core.mu.RLock()
	err := n.admit(name, r.URL.Query().Get("folder"))
	n.core.mu.RUnlock()
	if err != nil {
		return err
	}
	body := map[string]any{"name": n.shown(name), "available": true}
	return writeJSON(w, http.StatusOK, n.core.quirks.Load().shapeList(body, "Name", "AVAILABLE"))
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
