package inventory

import (
	"strings"
	"testing"
)

func TestAlteredUID(t *testing.T) {
	t.Parallel()
	const uid = "3f2b8c1e-9a4d-4c57-8e21-0b6d7f5a9c33"
	for name, tc := range map[string]struct {
		label string
		want  bool
	}{
		"the UID itself":        {uid, false},
		"cut to 30":             {uid[:30], true},
		"cut after a dash":      {uid[:9], true},
		"cut to eight":          {uid[:8], true},
		"cut to seven":          {uid[:7], false},
		"upper case":            {strings.ToUpper(uid), true},
		"underscores":           {strings.ReplaceAll(uid, "-", "_"), true},
		"without dashes, cut":   {strings.ReplaceAll(uid, "-", "")[:20], true},
		"empty":                 {"", false},
		"dashes alone":          {"--------", false},
		"another UID":           {"3f2b8c1e-9a4d-4c57-8e21-0b6d7f5a9c34", false},
		"another one, cut":      {"3f2b8c1f-9a4d", false},
		"the UID with a suffix": {uid + "-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := AlteredUID(tc.label, uid); got != tc.want {
				t.Errorf("AlteredUID(%q): got %t, want %t", tc.label, got, tc.want)
			}
		})
	}
}
