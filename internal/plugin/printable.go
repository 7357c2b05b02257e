package plugin

import (
	"io"
	"strings"
	"unicode"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// printable returns streams whose output has no character that controls a terminal: names, annotations, messages and
// manifests are what users and clouds wrote.
func printable(streams genericiooptions.IOStreams) genericiooptions.IOStreams {
	streams.Out, streams.ErrOut = &printableWriter{streams.Out}, &printableWriter{streams.ErrOut}
	return streams
}

// printableWriter writes "�" for each control character but line feeds and tabs, for each character that changes
// the direction of writing, and for each byte that is no UTF-8. A character must be written at once.
type printableWriter struct{ to io.Writer }

func (w *printableWriter) Write(text []byte) (int, error) {
	_, err := io.WriteString(w.to, strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, string(text)))
	if err != nil {
		return 0, err
	}
	return len(text), nil
}
