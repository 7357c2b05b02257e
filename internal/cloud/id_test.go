package cloud_test

import (
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestCanonicalUUID(t *testing.T) {
	const canonical = "5021d5b7-0a1b-4c2d-8e3f-0123456789ab"
	for name, tc := range map[string]struct{ text, want string }{
		"as clouds spell it":         {canonical, canonical},
		"upper case":                 {"5021D5B7-0A1B-4C2D-8E3F-0123456789AB", canonical},
		"braces, as Windows has it":  {"{5021D5B7-0A1B-4C2D-8E3F-0123456789AB}", canonical},
		"without dashes":             {"5021d5b70a1b4c2d8e3f0123456789ab", canonical},
		"as a URN":                   {"urn:uuid:" + canonical, canonical},
		"spaces around it":           {" " + canonical + " ", canonical},
		"other signs around it":      {"<" + canonical + ">", "<" + canonical + ">"},
		"too short":                  {canonical[1:], canonical[1:]},
		"an id that is no UUID":      {"i-0ABC", "i-0ABC"},
		"a number, as of Proxmox VE": {"104", "104"},
		"nothing":                    {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cloud.CanonicalUUID(tc.text); got != tc.want {
				t.Errorf("CanonicalUUID(%q) is %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}
