package plugin_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/privatecloud/operator/internal/plugin"
)

func TestOutputHasNoTerminalSequences(t *testing.T) {
	var out, errOut bytes.Buffer
	env := plugin.NewEnv(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, "v1")
	for text, want := range map[string]string{
		"NAME\tAGE\nüñ😀\n":       "NAME\tAGE\nüñ😀\n",
		"x\x1b[2J\x1b]0;owned\a": "x�[2J�]0;owned�",
		"over\rwritten\b":        "over�written�",
		"c1 \u009b2J \u0085":     "c1 �2J �",
		"raw \x9b2J":             "raw �2J",
		"\u202egnp.exe\u2066":    "�gnp.exe�",
		"\x00\x7f":               "��",
	} {
		for name, stream := range map[string]struct {
			to  fmt.Stringer
			put func(string) (int, error)
		}{
			"output": {&out, func(s string) (int, error) { return env.Out.Write([]byte(s)) }},
			"errors": {&errOut, func(s string) (int, error) { return env.ErrOut.Write([]byte(s)) }},
		} {
			before := stream.to.String()
			n, err := stream.put(text)
			if got := strings.TrimPrefix(stream.to.String(), before); err != nil || n != len(text) || got != want {
				t.Errorf("%s: %q became %q, %d bytes of %d, %v; want %q", name, text, got, n, len(text), err, want)
			}
		}
	}
}
