package vsphere

import (
	"strings"
	"testing"
)

func TestNamesOfVMsThatAreHostNames(t *testing.T) {
	label := strings.Repeat("a", 63)
	for name, tc := range map[string]struct {
		name string
		is   bool
	}{
		"a label":                                 {"web-1", true},
		"with a domain":                           {"web-1.example.com", true},
		"upper case":                              {"Web.Example.COM", true},
		"a label of 63 characters":                {label, true},
		"a label of 64 characters":                {label + "a", false},
		"64 characters with the domain":           {strings.Repeat("a", 52) + ".example.com", true},
		"65 characters with the domain":           {strings.Repeat("a", 53) + ".example.com", false},
		"a number":                                {"104", true},
		"a version at its end":                    {"app-1.2", false},
		"an address":                              {"10.0.0.5", false},
		"a label that begins with a digit":        {"1.example.com", true},
		"an empty label":                          {"web..example.com", false},
		"a dot at its end":                        {"web.example.com.", false},
		"a label that ends with a hyphen":         {"web-.example.com", false},
		"a domain whose label ends with a hyphen": {"web.example-", false},
		"an underscore":                           {"web_1.example.com", false},
		"a space":                                 {"web 1", false},
		"another script":                          {"сервер.example.com", false},
		"nothing":                                 {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isHostname(tc.name); got != tc.is {
				t.Errorf("%q: %t, want %t", tc.name, got, tc.is)
			}
		})
	}
}
