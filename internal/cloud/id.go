package cloud

import (
	"fmt"
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

// FormOfIDs says how two ids differ that AlikeIDs compares.
const FormOfIDs = "they differ only in form (upper case, dashes, braces, leading zeros, a path before them or a slash after them): the cloud must give an id in one form"

// AlikeIDs reports whether two different ids are probably spellings of one.
func AlikeIDs(a, b string) bool { return a != b && NormalID(a) == NormalID(b) }

// NormalID returns the form that ids which are alike have in common. It identifies nothing:
// a cloud may have two servers whose ids are alike.
func NormalID(id string) string {
	id = strings.TrimRight(strings.TrimSpace(id), "/")
	id = strings.ToLower(CanonicalUUID(id[strings.LastIndexByte(id, '/')+1:]))
	if number := strings.TrimLeft(id, "0"); number != "" && strings.Trim(number, "0123456789") == "" {
		return number
	}
	return id
}

// OfAnotherID returns what is wrong with an answer about the resource of the id got, where asked was
// asked for. It quotes got only if it is alike.
func OfAnotherID(noun, asked, got string) string {
	if !AlikeIDs(asked, got) {
		return "the answer is about another " + noun
	}
	const maxQuoted = 256
	return fmt.Sprintf("the answer is about %s %q, not %q: %s", noun, got[:min(len(got), maxQuoted)], asked[:min(len(asked), maxQuoted)], FormOfIDs)
}
