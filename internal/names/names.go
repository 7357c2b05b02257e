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

// owner is the number of hex digits that prove which object owns a name.
const owner = 12

// Owned returns a name in the cloud of at most limit bytes for the object of a cluster
// with this namespace, name and UID. It ends in "-" and twelve hex digits of a hash of
// cluster and UID, so that the name proves which object owns what has it. limit must be
// at least 14.
func Owned(limit int, cluster, namespace, name, uid string) string {
	sum := sha256.Sum256([]byte(cluster + "/" + uid))
	return Cut(limit-owner-1, namespace+"-"+name) + "-" + hex.EncodeToString(sum[:])[:owner]
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
