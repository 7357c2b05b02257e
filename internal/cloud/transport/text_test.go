package transport

import "testing"

func TestPrintable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"one line: unchanged":                      {"one line", "one line"},
		"line ends and tabs: spaces":               {" a\r\nb\tc ", "a  b c"},
		"control characters: removed":              {"\x1b[31mred\x00", "[31mred"},
		"direction of the text: removed":           {"\u202eright to left", "right to left"},
		"letters and symbols of others: unchanged": {"сервер 🖥", "сервер 🖥"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Printable(test.text); got != test.want {
				t.Errorf("Printable(%q) = %q, want %q", test.text, got, test.want)
			}
		})
	}
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"empty": {"", ""}, "just short enough": {"abcd", "abcd"}, "one too many": {"abcde", "abc…"},
		"just short enough, of two bytes each": {"éééé", "éééé"}, "one too many, of two bytes each": {"ééééé", "ééé…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Truncate(test.text, 4); got != test.want {
				t.Errorf("Truncate(%q, 4) = %q, want %q", test.text, got, test.want)
			}
		})
	}
}
