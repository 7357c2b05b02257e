package simulation

import (
	"slices"
	"strings"
	"testing"
)

// TestExtendedProfilesHaveMoreFaultsAndOthersNone reports whether the faults that the flag -extended adds happen. What
// they violate is not looked at.
func TestExtendedProfilesHaveMoreFaultsAndOthersNone(t *testing.T) {
	d, p := readCRDs(t), profileNamed(t, "names")
	tracesOf := func(extended bool) (all []string) {
		p.extended = extended
		for s := uint64(1); s <= 8; s++ {
			all = append(all, simulate(t, p, d, deciderOf(s, p)).trace...)
		}
		return all
	}
	usual, extended := tracesOf(false), tracesOf(true)
	for _, name := range []string{"user: replace VM ", "the listing leaves out ", "somebody else: create a server, which gets the id "} {
		is := func(done string) bool { return strings.HasPrefix(done, name) }
		if !slices.ContainsFunc(extended, is) {
			t.Errorf("%q does not happen in 8 runs of an extended profile", name)
		}
		if slices.ContainsFunc(usual, is) {
			t.Errorf("%q happens on a profile that is not extended", name)
		}
	}
}
