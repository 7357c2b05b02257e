package cloud_test

import (
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestNameProvesOwner(t *testing.T) {
	const owned = "team-a-web-0123456789ab"
	for name, want := range map[string]bool{
		owned: true, "TEAM-A-WEB-0123456789AB": true, " " + owned + " ": true, owned + ".cloud.example.com": true, "tenant-" + owned: true, "tenant/" + owned: true,
		"team_a_web_0123456789ab": true, "team-a-web-012345": true,
		"team-a-web-01234": false, "team-a-web": false, "": false, "0123456789ab": false, "x" + owned: false, owned + "2": false,
		owned + "-manual": false, owned + "-2-ba9876543210": false, owned + ".b-ba9876543210": false, owned + ".b-ba9876": false, owned + ".b-ba9876543210.cloud.example.com": false,
		"team-a-web-ba9876543210": false,
	} {
		if got := cloud.ProvesOwner(name, owned); got != want {
			t.Errorf("ProvesOwner(%q) is %v, want %v", name, got, want)
		}
	}
}

func TestIsNamed(t *testing.T) {
	const owned = "team-a-network-of-web-0123456789ab"
	for _, tc := range []struct {
		name, recorded string
		want           bool
	}{
		{owned, "", true}, {owned, "team-a-network-", true}, {"team-a-network-", "team-a-network-", true}, {"TEAM-A-NETWORK-", "team-a-network-", true},
		{"team-a-network-", "", false}, {"backbone", "backbone", false}, {"backbone", owned, false}, {"", "", false},
	} {
		if got := cloud.IsNamed(tc.name, owned, tc.recorded); got != tc.want {
			t.Errorf("IsNamed(%q, %q) is %v, want %v", tc.name, tc.recorded, got, tc.want)
		}
	}
}
