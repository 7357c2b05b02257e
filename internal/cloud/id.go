package cloud

import (
	"strings"

	"github.com/google/uuid"
)

// CanonicalUUID returns a UUID in lower case with dashes, which is how clouds that use UUIDs as
// ids spell them. It accepts other common forms: upper case, braces, no dashes, urn:uuid: before it,
// spaces around it. Any other text is returned as it is.
func CanonicalUUID(text string) string {
	trimmed := strings.TrimSpace(text)
	if uuid.Validate(trimmed) != nil {
		return text
	}
	return uuid.MustParse(trimmed).String()
}
