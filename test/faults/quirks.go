package faults

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

// quirk is a quirk of the mock cloud under which the operator reaches its goals.
type quirk struct {
	name string
	// value returns a random value; there is none if it is nil.
	value func(*rand.Rand) string
}

// convergent are all such quirks. Lags are shorter than the settle time.
var convergent = []quirk{
	{"readLag", shortLag}, {"replicaLag", shortLag},
	{"normalizeNames", nil}, {"numericIDs", nil}, {"extraFields", nil}, {"wrongTypes", nil}, {"lowerCaseStates", nil},
	{"contentType", oneOf("text/json", "application/octet-stream", "none")},
	{"plain404", oneOf("empty", "json", "html", "text")},
	{"noCodes", nil}, {"longHost", nil}, {"replayResets", nil},
}

func shortLag(random *rand.Rand) string {
	return fmt.Sprintf("%dms", settleTime.Milliseconds()*(1+random.Int64N(6))/8)
}

func oneOf(values ...string) func(*rand.Rand) string {
	return func(random *rand.Rand) string { return values[random.IntN(len(values))] }
}

// randomQuirks returns some of the quirks that fit the profile, at least one.
func randomQuirks(random *rand.Rand, p profile) (mockcloud.Quirks, error) {
	texts := append([]string{fmt.Sprintf("seed=%d", 1+random.Uint32())}, p.always...)
	fit := slices.DeleteFunc(slices.Clone(convergent), func(q quirk) bool { return slices.Contains(p.unfit, q.name) })
	random.Shuffle(len(fit), func(i, j int) { fit[i], fit[j] = fit[j], fit[i] })
	for _, q := range fit[:1+random.IntN(len(fit)/2)] {
		text := q.name
		if q.value != nil {
			text += "=" + q.value(random)
		}
		texts = append(texts, text)
	}
	return mockcloud.ParseQuirks(strings.Join(texts, ","))
}

// accent ends the names of VMs on a cloud that decomposes names.
const accent = "-\u00e9"

// spelled returns the vmname for a name. On a cloud that normalizes or decomposes names it
// is not the form that the cloud shows.
func (w *world) spelled(name string) string {
	if w.profile.mock.Quirks.NormalizeNames {
		name = strings.ToUpper(name[:1]) + name[1:]
	}
	if w.profile.mock.Quirks.DecomposedNames {
		name += accent
	}
	return name
}

// declared returns core clouds whose answers to GET /capabilities are of no use.
func declared(answers ...string) (profiles []profile) {
	for _, answer := range answers {
		profiles = append(profiles, profile{
			name: "core with declared capabilities, " + answer, exact: true,
			rest: &pcapi.RESTCloud{ExclusiveNames: true, Capabilities: []pcapi.RESTCapability{}},
			mock: mockcloud.Options{Profile: mockcloud.Core}, always: []string{"capabilities=" + answer},
		})
	}
	return profiles
}

// normalizing is a core cloud that normalizes names in each run.
var normalizing = profile{
	name: "core that normalizes names", exact: true, rest: exclusive, mock: core.mock,
	always: []string{"normalizeNames"}, unfit: []string{"normalizeNames"},
}

// quirkyCase is a scenario on a kind of cloud with random quirks.
type quirkyCase struct {
	profile  profile
	scenario scenario
	// kills is how many runs there are with a kill at a random effect, each with
	// quirks of its own, after one without a kill.
	kills int
}

func (c quirkyCase) String() string { return c.scenario.name + "; " + c.profile.name }

func quirkyCases(p profile, kills int, scenarios ...scenario) []quirkyCase {
	var made []quirkyCase
	for _, s := range scenarios {
		made = append(made, quirkyCase{profile: p, scenario: s, kills: kills})
	}
	return made
}

// quirkySelection is what runs by default.
func quirkySelection() (all []quirkyCase) {
	const kills = 2
	all = append(all, quirkyCases(extended, kills, edited, slowDeletedWhileDown, groupCreated, networkWithVM)...)
	all = append(all, quirkyCases(core, kills, recreated, deletedWhileDown)...)
	all = append(all, quirkyCases(declared("500")[0], kills, recreated)...)
	all = append(all, quirkyCases(normalizing, kills, recreated)...)
	all = append(all, quirkyCases(notExclusive, kills, undecidedDeletedWhileDown)...)
	all = append(all, quirkyCases(keyless, kills, slow)...)
	all = append(all, quirkyCases(unmarked, kills, edited)...)
	all = append(all, quirkyCases(keyed, kills, recreated)...)
	all = append(all, quirkyCases(labelled, kills, edited)...)
	all = append(all, quirkyCases(reporting, kills, edited, slowDeletedWhileDown)...)
	all = append(all, quirkyCases(reportingOne, kills, recreated)...)
	return append(all, quirkyCases(bare, kills, undecidedCreate)...)
}

// quirkyEverything is what runs with FAULTS=full.
func quirkyEverything() (all []quirkyCase) {
	const kills = 8
	all = append(all, quirkyCases(normalizing, kills, recreated, slow, deletedWhileDown, orphaned, nameTaken)...)
	for _, p := range append(declared("400", "401", "403", "405", "500", "501", "html", "empty"), extended, core, keyless, unmarked, labelled, reporting, reportingOne) {
		all = append(all, quirkyCases(p, kills, recreated, slow, deletedWhileDown, slowDeletedWhileDown, renamedWhileDown, imported, orphaned)...)
		if p.mock.Profile != mockcloud.Core {
			all = append(all, quirkyCases(p, kills, edited, editedWhileDown, diskGrown, groupCreated, groupShrunk, groupRolled, groupDeleted)...)
			all = append(all, quirkyCases(p, kills, networkEdited, networkWithVM, networkDeletedWhileDown)...)
		}
		if !p.sharedNames {
			all = append(all, quirkyCases(p, kills, nameTaken, equalNames)...)
		}
	}
	all = append(all, quirkyCases(keyed, kills, recreated, edited, undecidedEditedWhileDown, undecidedDeletedWhileDown, imported, orphaned)...)
	for _, p := range []profile{notExclusive, bare} {
		all = append(all, quirkyCases(p, kills, undecidedCreate, undecidedDeletedWhileDown, undecidedRenamedWhileDown)...)
	}
	return all
}

// quirkySelected returns the cases that FAULTS selects; see doc.go.
func quirkySelected(selection, everything []quirkyCase, seed uint64) []quirkyCase {
	switch word := os.Getenv("FAULTS"); word {
	case "", sample:
		return third(selection, seed, "quirks")
	case "full":
		return everything
	default:
		return slices.DeleteFunc(everything, func(c quirkyCase) bool { return !strings.Contains(c.String(), word) })
	}
}

// explore runs the scenario without a kill and then with kills, each run with its
// own quirks. The same seed repeats the quirks; the effects can still differ.
func (c quirkyCase) explore(ctx context.Context, env *environment, seed uint64, logf func(string, ...any)) error {
	var errs []error
	effects, phases := 0, 3
	if c.profile.recycles {
		phases = 2 // a DELETE that is late would delete the server of whoever has the id then
	}
	for i := range c.kills + 1 {
		random := rand.New(rand.NewPCG(seed, stream(fmt.Sprint(c, " ", i))))
		k, at := 0, before
		if i > 0 && effects > 0 {
			k, at = 1+random.IntN(effects), phase(random.IntN(phases))
		}
		p := c.profile
		var err error
		if p.mock.Quirks, err = randomQuirks(random, p); err != nil {
			return err
		}
		runSlots <- struct{}{}
		out := c.scenario.run(ctx, env, p, k, at)
		<-runSlots
		effects = max(effects, len(out.effects))
		outcome := "ok"
		if out.err != nil {
			errs = append(errs, fmt.Errorf("run %d, quirks %s, killed %s effect %d (%s): %w\n%s", i, p.mock.Quirks, at, k, out.killed, out.err, out.report))
			outcome = "FAILED"
		}
		logf("run %d, quirks %s, killed %s effect %d (%s): %s after %s", i, p.mock.Quirks, at, k, out.killed, outcome, out.took)
	}
	return errors.Join(errs...)
}

// stream makes the random numbers of what has a name independent of those of the others.
func stream(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}
