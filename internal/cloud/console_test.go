package cloud

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLastOfConsole(t *testing.T) {
	long := strings.Repeat("ü", MaxConsole/2)
	for _, c := range []struct {
		name, text string
		lines      int
		want       string
	}{
		{"nothing", "", 10, ""},
		{"no lines are asked for", "a\n", 0, ""},
		{"fewer than asked for", "a\nb\n", 3, "a\nb\n"},
		{"as many as asked for", "a\nb\n", 2, "a\nb\n"},
		{"more than asked for", "a\nb\nc\n", 2, "b\nc\n"},
		{"the last line has no end", "a\nb\nlogin: ", 2, "b\nlogin: "},
		{"the last line is empty", "a\nb\n\n", 2, "b\n\n"},
		{"empty lines alone", "\n\n\n", 2, "\n\n"},
		{"carriage returns stay", "a\r\nb\r\n", 1, "b\r\n"},
		{"not UTF-8", "a\xff\xfeb\n", 1, "a\ufffdb\n"},
		{"exactly the limit", long, 1, long},
		{"a character on the limit", long + "x", 1, long[2:] + "x"},
		{"replacements count", strings.Repeat("\xffa", MaxConsole/4), 1, strings.Repeat("\ufffda", MaxConsole/4)},
		{"replacements over the limit", strings.Repeat("\xffa", MaxConsole), 1, strings.Repeat("\ufffda", MaxConsole/4)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := LastOfConsole(c.text, c.lines); got != c.want {
				t.Errorf("got %d bytes %.60q, want %d bytes %.60q", len(got), got, len(c.want), c.want)
			}
		})
	}
}

func FuzzLastOfConsole(f *testing.F) {
	f.Add("a\nb\nlogin: ", 2, 1)
	f.Add("\xff\xfe\n\n", 1, 40<<10)
	f.Add("ü\r\n\x1b[2J", 1000, 30<<10)
	f.Fuzz(func(t *testing.T, text string, lines, repeat int) {
		if size := len(text) * repeat; repeat > 1 && size > 0 && size < 4*MaxConsole {
			text = strings.Repeat(text, repeat)
		}
		got := LastOfConsole(text, lines)
		switch {
		case len(got) > MaxConsole:
			t.Errorf("%d bytes", len(got))
		case !utf8.ValidString(got):
			t.Error("not UTF-8")
		case !strings.HasSuffix(strings.ToValidUTF8(text, "\ufffd"), got):
			t.Error("not the end of the text")
		case countLines(got) > max(lines, 0):
			t.Errorf("%d lines, asked for %d", countLines(got), lines)
		case utf8.ValidString(text) && countLines(text) <= lines && len(text) <= MaxConsole && got != text:
			t.Error("less than the whole text, which fits")
		}
	})
}

func countLines(text string) int {
	if text == "" {
		return 0
	}
	return strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
}
