// Package names makes names that fit the limits of Kubernetes and of the cloud.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// hashed is the number of hex digits that replace the part that was cut off.
const hashed = 8

// Bounded returns text if it has at most limit bytes. Longer text is cut between
// two characters, and "-" and eight hex digits of the SHA-256 of the whole text
// are appended, so that long texts with a common prefix stay different. The part
// before the "-" ends in a letter or a digit, with its combining marks. limit
// must be at least 10.
func Bounded(limit int, text string) string {
	if len(text) <= limit {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return Cut(limit-hashed-1, text) + "-" + hex.EncodeToString(sum[:])[:hashed]
}

// Cut returns the longest prefix of text that has at most limit bytes and ends in
// a letter or a digit, with its combining marks.
func Cut(limit int, text string) string {
	if len(text) > limit {
		text = text[:max(0, limit)]
	}
	return strings.TrimRightFunc(strings.ToValidUTF8(text, ""), func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.N, unicode.M)
	})
}
