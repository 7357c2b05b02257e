package transport

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns text on one line, without control characters and without
// characters that change the direction of writing.
func Printable(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		default:
			return -1
		}
	}, text)
	return strings.TrimSpace(text)
}

// Truncate cuts text after limit runes.
func Truncate(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}
