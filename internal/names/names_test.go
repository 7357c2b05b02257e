package names

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limit      int
		text, want string
	}{
		"shorter than the limit: unchanged":                 {20, "web-frontend", "web-frontend"},
		"as long as the limit: unchanged":                   {12, "web-frontend", "web-frontend"},
		"shorter than the limit: may end in a separator":    {20, "web-", "web-"},
		"one byte too long: cut, with a hash":               {20, "web-frontend-for-all!", "web-fronten-0ce043ef"},
		"cut after a separator: separator is removed":       {13, "web-frontend-for-all", "web-942198a8"},
		"cut after two separators: both are removed":        {14, "web.-frontend-for-all", "web-2f31e86b"},
		"cut inside a character: the character is left out": {14, "größenwahnsinnig", "grö-767360e7"},
		"empty: unchanged":                                  {10, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Bounded(test.limit, test.text)
			if got != test.want {
				t.Errorf("Bounded(%d, %q) = %q, want %q", test.limit, test.text, got, test.want)
			}
			if len(got) > test.limit || !utf8.ValidString(got) {
				t.Errorf("%q has %d bytes, want at most %d of valid UTF-8", got, len(got), test.limit)
			}
		})
	}
}

func TestBoundedKeepsLongTextsWithACommonPrefixDifferent(t *testing.T) {
	t.Parallel()
	common := strings.Repeat("a", 100)
	if one, two := Bounded(63, common+"1"), Bounded(63, common+"2"); one == two {
		t.Errorf("both are %q", one)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limit      int
		text, want string
	}{
		"shorter than the limit: unchanged":                 {20, "web-1", "web-1"},
		"ends in a separator: separator is removed":         {20, "web-", "web"},
		"cut before a separator: ends in a letter":          {3, "web-1", "web"},
		"cut after a separator: separator is removed":       {4, "web-1", "web"},
		"letter with a combining mark: kept together":       {4, "e\u0301t", "e\u0301t"},
		"cut inside a character: the character is left out": {2, "aö", "a"},
		"limit 0: empty":        {0, "web", ""},
		"negative limit: empty": {-1, "web", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Cut(test.limit, test.text); got != test.want {
				t.Errorf("Cut(%d, %q) = %q, want %q", test.limit, test.text, got, test.want)
			}
		})
	}
}
