package cloud

import (
	"strings"
	"testing"
)

func TestChosenFrom(t *testing.T) {
	long := "frontend-of-the-shop"
	tests := []struct {
		chosen, asked string
		want          bool
	}{
		{"web.example.com", "web", true}, {"WEB.example.com", "web", true}, {"web.", "web", true},
		{"tenant-web", "web", true}, {"tenant/web", "web", true}, {"tenantweb", "web", false},
		{"web-server", "web server", true}, {"web_1", "web-1", true},
		{long[:15], long, true}, {long[:14], long, false}, {strings.ToUpper(long[:18]), long, true},
		{"web", "web", false}, {"WEB", "web", false}, {"web2", "web", false}, {"web", "web2", false}, {"", "web", false}, {"-", "--", false},
	}
	for _, tc := range tests {
		if got := ChosenFrom(tc.asked)(tc.chosen); got != tc.want {
			t.Errorf("%q may be made of %q: %t, want %t", tc.chosen, tc.asked, got, tc.want)
		}
	}
}
