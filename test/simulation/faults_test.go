package simulation

import (
	"slices"
	"strings"
	"testing"
)

// TestFaultsOfUsersAndCloudsHappen reports whether the faults happen that are not errors of a call or a process. What
// they violate is not looked at.
func TestFaultsOfUsersAndCloudsHappen(t *testing.T) {
	d, p := readCRDs(t), profileNamed(t, "names")
	var all []string
	for s := uint64(1); s <= 8; s++ {
		all = append(all, simulate(t, p, d, deciderOf(s)).trace...)
	}
	for _, name := range []string{"user: replace VM ", "the listing leaves out ", "somebody else: create a server, which gets the id "} {
		if !slices.ContainsFunc(all, func(done string) bool { return strings.HasPrefix(done, name) }) {
			t.Errorf("%q does not happen in 8 runs", name)
		}
	}
}
