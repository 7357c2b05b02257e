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
		"what fits stays whole":                     {20, "web-frontend", "web-frontend"},
		"what fits exactly stays whole":             {12, "web-frontend", "web-frontend"},
		"what fits may end as it likes":             {20, "web-", "web-"},
		"one more is cut, and told apart by a hash": {20, "web-frontend-for-all!", "web-fronten-0ce043ef"},
		"the cut does not end in a separator":       {13, "web-frontend-for-all", "web-942198a8"},
		"nor in several":                            {14, "web.-frontend-for-all", "web-2f31e86b"},
		"a character is never split":                {14, "größenwahnsinnig", "grö-767360e7"},
		"empty":                                     {10, "", ""},
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

func TestLongTextsThatBeginAlikeStayApart(t *testing.T) {
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
		"what fits stays":                     {20, "web-1", "web-1"},
		"but for a separator at the end":      {20, "web-", "web"},
		"cut":                                 {3, "web-1", "web"},
		"cut before a separator":              {4, "web-1", "web"},
		"a character with its mark is a word": {4, "e\u0301t", "e\u0301t"},
		"a character is never split":          {2, "aö", "a"},
		"no room":                             {0, "web", ""},
		"less than no room":                   {-1, "web", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Cut(test.limit, test.text); got != test.want {
				t.Errorf("Cut(%d, %q) = %q, want %q", test.limit, test.text, got, test.want)
			}
		})
	}
}
