package rest

import (
	"net/url"
	"strings"
)

// join returns the path of the segments, each escaped so that it arrives as
// one segment whatever it holds.
func join(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(escape(s))
	}
	return b.String()
}

// escape also hides the dots of "." and "..", which url.PathEscape leaves as
// they are and which servers and proxies resolve.
func escape(segment string) string {
	if segment == "." || segment == ".." {
		return strings.ReplaceAll(segment, ".", "%2E")
	}
	return url.PathEscape(segment)
}
