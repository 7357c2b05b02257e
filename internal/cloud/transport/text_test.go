package transport

import "testing"

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"one line":            "one line",
		" a\r\nb\tc ":         "a  b c",
		"\x1b[31mred\x00":     "[31mred",
		"\u202eright to left": "right to left",
		"сервер 🖥":            "сервер 🖥",
	} {
		if got := Printable(text); got != want {
			t.Errorf("Printable(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "abcd": "abcd", "abcde": "abc…", "éééé": "éééé", "ééééé": "ééé…"} {
		if got := Truncate(text, 4); got != want {
			t.Errorf("Truncate(%q, 4) = %q, want %q", text, got, want)
		}
	}
}
