package cloud_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestNameProvesOwner(t *testing.T) {
	const owned = "team-a-web-0123456789ab"
	for name, want := range map[string]bool{
		owned: true, "TEAM-A-WEB-0123456789AB": true, " " + owned + " ": true, owned + ".cloud.example.com": true, "tenant-" + owned: true, "tenant/" + owned: true,
		"team_a_web_0123456789ab": true, "team-a-web-012345": true,
		"team-a-web-01234": false, "team-a-web": false, "": false, "0123456789ab": false, "x" + owned: false, owned + "2": false,
		owned + "-manual": false, owned + "-2-ba9876543210": false, owned + ".b-ba9876543210": false, owned + ".b-ba9876": false, owned + ".b-ba9876543210.cloud.example.com": false,
		"team-a-web-ba9876543210": false, owned + ".dc-facade.example.com": true,
	} {
		if got := cloud.ProvesOwner(name, owned); got != want {
			t.Errorf("ProvesOwner(%q) is %v, want %v", name, got, want)
		}
	}
}

func TestMadeFrom(t *testing.T) {
	const owned = "team-a-network-of-web-0123456789ab"
	for name, want := range map[string]bool{
		owned: true, owned + ".cloud.example.com": true, "team-a-network-": true, owned + "-dc1": true, owned + " (1)": true, owned + "_tenant": true,
		"team-a-network": false, "backbone": false, "": false, owned + "-20241127": true, owned + "-facade": true,
	} {
		if got := cloud.MadeFrom(name, owned); got != want {
			t.Errorf("MadeFrom(%q) is %v, want %v", name, got, want)
		}
	}
}

func TestOfOwnerReturnsNamesOfOneForm(t *testing.T) {
	const owned = "team-a-web-0123456789ab"
	for name, tc := range map[string]struct{ found, want []string }{
		"the name itself":            {[]string{"other", owned, owned}, []string{owned, owned}},
		"the name itself and others": {[]string{"old-" + owned, owned, owned + ".bak"}, []string{owned}},
		"a form of the cloud, twice": {[]string{owned + ".example.com", "old-" + owned, owned + ".example.com"}, []string{owned + ".example.com", owned + ".example.com"}},
		"none":                       {[]string{"other"}, nil},
	} {
		if diff := cmp.Diff(tc.want, cloud.OfOwner(tc.found, owned, func(name string) string { return name })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
