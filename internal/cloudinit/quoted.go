package cloudinit

import (
	"bytes"
	"encoding/base64"
)

const (
	// window is the length from which a part of the user data is removed, in bytes.
	window = 8
	// removed stands where a part of the user data was.
	removed = "…"
)

// WithoutQuotes returns text without its parts of 8 bytes or more that are parts of any of
// the data or of its base64. A cloud that refuses user data may quote it as it was sent or,
// since it can unpack a message of several parts, as it was before Compose.
func WithoutQuotes(text string, data ...[]byte) string {
	if len(text) < window {
		return text
	}
	// Of each part, the first byte in text: a text is short, and the data is not.
	starts := map[string][]int{}
	for i := 0; i+window <= len(text); i++ {
		starts[text[i:i+window]] = append(starts[text[i:i+window]], i)
	}
	quoted := make([]bool, len(text))
	for _, plain := range data {
		for _, form := range [][]byte{plain, base64.StdEncoding.AppendEncode(nil, plain)} {
			for i := 0; i+window <= len(form) && len(starts) > 0; i++ {
				part := form[i : i+window]
				for _, start := range starts[string(part)] {
					for j := range window {
						quoted[start+j] = true
					}
				}
				delete(starts, string(part)) // data that repeats itself marks it once
			}
		}
	}
	var out bytes.Buffer
	for i := range len(text) {
		switch {
		case !quoted[i]:
			out.WriteByte(text[i])
		case i == 0 || !quoted[i-1]:
			out.WriteString(removed)
		}
	}
	return out.String()
}
