package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

func TestManagerKilledOnCloudsWithQuirks(t *testing.T) {
	t.Parallel()
	from := seed(t)
	exploreQuirky(t, from, quirkySelected(quirkySelection(), quirkyEverything(), from))
}

// By default a few cases run with the same seed each time.
func TestManagerKilledBesideOtherClientsAndOnCloudsThatReuseIDs(t *testing.T) {
	t.Parallel()
	from := seed(t)
	cases := quirkySelected(othersSelection(), othersEverything(), from)
	if word := os.Getenv("FAULTS"); (word == "" || word == sample) && os.Getenv("FAULTS_SEED") == "" {
		from = 34
		t.Logf("quirks and kills are those of FAULTS_SEED=%d", from)
	}
	exploreQuirky(t, from, cases)
}

func exploreQuirky(t *testing.T, from uint64, cases []quirkyCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			if err := c.explore(t.Context(), sharedEnvironment(t), from, t.Logf); err != nil {
				t.Errorf("FAULTS_SEED=%d: %v", from, err)
			}
		})
	}
}

func TestManagerKilledRepeatedlyOnCloudsWithQuirks(t *testing.T) {
	t.Parallel()
	from, names := seed(t), named("odd", 12)
	settings := map[string]setting{}
	for _, p := range []profile{extended, core, unmarked, labelled} {
		quirks, err := randomQuirks(rand.New(rand.NewPCG(from, stream(p.name))), p)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: quirks %s", p.name, quirks)
		p.mock.Quirks = quirks
		settings[p.name] = setting{profile: p}
	}
	inWorlds(t, settings, func(ctx context.Context, w *world) error {
		random := rand.New(rand.NewPCG(from, uint64(len(w.profile.name))))
		for _, do := range []func(string) step{createOne, removeOne} {
			if err := errors.Join(w.killRepeatedly(ctx, random, 2, each(names, do)), w.verifyAtRest(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestRandomQuirks(t *testing.T) {
	on := map[string]bool{}
	for i := range uint64(200) {
		p := profile{unfit: []string{"replayResets"}}
		first, err := randomQuirks(rand.New(rand.NewPCG(i, 0)), p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := randomQuirks(rand.New(rand.NewPCG(i, 0)), p)
		if err != nil || again != first {
			t.Errorf("the same seed gives %s and %s, %v", first, again, err)
		}
		if time.Duration(max(first.ReadLag, first.ReplicaLag)) >= settleTime {
			t.Errorf("%s: a lag is not shorter than the settle time", first)
		}
		for _, name := range first.Names() {
			on[name] = true
		}
	}
	for _, q := range convergent {
		if want := q.name != "replayResets"; on[q.name] != want {
			t.Errorf("%s was on in some of 200 drawings: %t, want %t", q.name, on[q.name], want)
		}
	}
}
