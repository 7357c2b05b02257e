package cloud_test

import (
	"strings"
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

func TestAlikeIDs(t *testing.T) {
	const id = "5021d5b7-0a1b-4c2d-8e3f-0123456789ab"
	for name, tc := range map[string]struct {
		a, b string
		want bool
	}{
		"the same id":                       {id, id, false},
		"a UUID in upper case":              {id, strings.ToUpper(id), true},
		"a UUID without dashes":             {id, strings.ReplaceAll(id, "-", ""), true},
		"a UUID in braces":                  {id, "{" + id + "}", true},
		"leading zeros":                     {"6", "006", true},
		"leading zeros on both":             {"06", "006", true},
		"a number that ends with zeros":     {"6", "60", false},
		"zero":                              {"0", "00", false},
		"zeros before what is no number":    {"0a", "a", false},
		"upper case of an id of its own":    {"i-0abc", "I-0ABC", true},
		"a slash after it":                  {"i-1", "i-1/", true},
		"a path before it":                  {"i-1", "/api/servers/i-1", true},
		"a URL before it":                   {"i-1", "https://cloud.test/api/servers/i-1", true},
		"a URL before a UUID in upper case": {id, "https://cloud.test/servers/" + strings.ToUpper(id) + "/", true},
		"spaces around it":                  {"i-1", " i-1", true},
		"dashes of an id that is no UUID":   {"i-1-23", "i-12-3", false},
		"another id":                        {"i-1", "i-2", false},
		"a longer id":                       {"i-1", "i-10", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cloud.AlikeIDs(tc.a, tc.b); got != tc.want {
				t.Errorf("AlikeIDs(%q, %q) is %t, want %t", tc.a, tc.b, got, tc.want)
			}
			if got := cloud.AlikeIDs(tc.b, tc.a); got != tc.want {
				t.Errorf("AlikeIDs(%q, %q) is %t, want %t", tc.b, tc.a, got, tc.want)
			}
		})
	}
}
