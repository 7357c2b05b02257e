// Package names makes names that fit what Kubernetes and the cloud allow.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// hashed is the number of hex digits that stand for what was cut off.
const hashed = 8

// Bounded returns text if it has at most limit bytes, which must be at least
// 10. Else it is cut between two characters and ends in "-" and eight hex digits
// of the SHA-256 of the whole text, so that two long texts that begin alike stay
// apart. What is left before them ends in a letter or a digit, with its marks.
func Bounded(limit int, text string) string {
	if len(text) <= limit {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return Cut(limit-hashed-1, text) + "-" + hex.EncodeToString(sum[:])[:hashed]
}

// Cut returns as much of the beginning of text as fits into limit bytes and
// ends in a letter or a digit, with its marks.
func Cut(limit int, text string) string {
	if len(text) > limit {
		text = text[:max(0, limit)]
	}
	return strings.TrimRightFunc(strings.ToValidUTF8(text, ""), func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.N, unicode.M)
	})
}
