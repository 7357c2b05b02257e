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

// WithoutQuotes returns text without its parts of 8 bytes or more that are parts of the
// user data or of its base64. A cloud that refuses user data may quote it.
func WithoutQuotes(text string, data []byte) string {
	if len(text) < window || len(data) < window {
		return text
	}
	encoded := []byte(base64.StdEncoding.EncodeToString(data))
	// Of each part, the first byte in text: a text is short, and the data is not.
	starts := map[string][]int{}
	for i := 0; i+window <= len(text); i++ {
		starts[text[i:i+window]] = append(starts[text[i:i+window]], i)
	}
	quoted := make([]bool, len(text))
	for _, form := range [][]byte{data, encoded} {
		for i := 0; i+window <= len(form); i++ {
			for _, start := range starts[string(form[i:i+window])] {
				for j := range window {
					quoted[start+j] = true
				}
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
