package cloud

import "testing"

func TestPatternsOfFlavors(t *testing.T) {
	for pattern, tc := range map[string]struct{ yes, no []string }{
		"m1.small": {[]string{"m1.small"}, []string{"m1.small2", "m1xsmall", ""}},
		"m1.*":     {[]string{"m1.", "m1.small", "m1.a/b"}, []string{"m1", "xm1.small"}},
		"*":        {[]string{"", "m1.small"}, nil},
		"*.small":  {[]string{"m1.small", ".small"}, []string{"m1.small.x", "small"}},
		"a*b*c":    {[]string{"abc", "axxbxxc", "abbc", "abcbc"}, []string{"ac", "acb", "abcx", "bc"}},
		"a*a":      {[]string{"aa", "aba"}, []string{"a"}},
		"[a-z]?":   {[]string{"[a-z]?"}, []string{"bc", "a"}},
	} {
		for _, name := range tc.yes {
			if !MatchesFlavor([]string{"other", pattern}, name) {
				t.Errorf("%q does not match %q", pattern, name)
			}
		}
		for _, name := range tc.no {
			if MatchesFlavor([]string{"other", pattern}, name) {
				t.Errorf("%q matches %q", pattern, name)
			}
		}
	}
	if MatchesFlavor(nil, "m1.small") {
		t.Error("no pattern matches a name")
	}
}
