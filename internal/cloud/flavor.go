package cloud

import (
	"fmt"
	"slices"
	"strings"
)

// FlavorPending is the flavor of a server with a resize that is not complete. It is the name of no flavor, and the change
// that began the resize goes on with it.
const FlavorPending = "resize not complete"

// CodeFlavorUnknown is the code of the error of UnknownFlavor.
const CodeFlavorUnknown = "flavorUnknown"

// UnknownFlavor returns the error of a call that names a flavor which does not exist. There
// says which ones exist.
func UnknownFlavor(op, flavor, there string) *Error {
	return &Error{Kind: Rejected, Code: CodeFlavorUnknown, Op: op, Detail: fmt.Sprintf("no flavor is named %q; %s", flavor, there)}
}

// MatchesFlavor reports whether the name of a flavor is as one of the patterns says, in which * stands for any characters.
func MatchesFlavor(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchesPattern(pattern, name) })
}

// matchesPattern reports whether a text is as a pattern says.
func matchesPattern(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == text
	}
	text, begins := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1:last] {
		var found bool
		if _, text, found = strings.Cut(text, part); !found {
			return false
		}
	}
	return begins && strings.HasSuffix(text, parts[last])
}
