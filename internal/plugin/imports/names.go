package imports

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

const (
	// maxName is the most characters of a name: it becomes the value of a label in the cloud.
	maxName = 63
	// suffixLength is that of what makes a name unique, with its dash.
	suffixLength = 9
	// nameless is the beginning of names of servers whose name has nothing that a name of an
	// object may have.
	nameless = "server"
)

// names are names of objects that are in use.
type names map[string]bool

// next returns a name for a server that is not in use, and uses it. The name is that of the
// server as far as names of objects allow, and else has a suffix made from its id, so that
// it is the same in each run.
func (n names) next(server, id string) string {
	name := objectName(server)
	if name == "" || n[name] {
		if name == "" {
			name = nameless
		}
		name = strings.TrimRight(name[:min(len(name), maxName-suffixLength)], "-")
		base := name
		for i := 0; i == 0 || n[name]; i++ {
			digest := sha256.Sum256(fmt.Appendf(nil, "%d/%s", i, id))
			name = fmt.Sprintf("%s-%x", base, digest[:(suffixLength-1)/2])
		}
	}
	n[name] = true
	return name
}

// objectName returns a name as one of a DNS label: lower-case ASCII letters and digits, and
// dashes for all else, inside. It is empty if nothing is left.
func objectName(server string) string {
	var name strings.Builder
	dash := false
	for _, r := range strings.ToLower(server) {
		if r < 'a' || r > 'z' {
			if r < '0' || r > '9' {
				dash = name.Len() > 0
				continue
			}
		}
		if dash {
			name.WriteByte('-')
		}
		dash = false
		name.WriteRune(r)
	}
	text := name.String()
	return strings.TrimRight(text[:min(len(text), maxName)], "-")
}
