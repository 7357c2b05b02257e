package simulation

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestCorpus replays the traces that were recorded when a bug was found, or put into the code.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "corpus", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	d := readCRDs(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			r, err := readRecording(file)
			if err != nil {
				t.Fatal(err)
			}
			checkRecording(t, d, r)
		})
	}
}

func checkRecording(t *testing.T, d defaults, r *recording) {
	decide := &replay{names: r.trace}
	w := simulate(t, profileNamed(t, r.profile), d, decide)
	t.Log(w.report())
	switch {
	case w.violated() == r.invariant:
		t.Errorf("caught by the trace: %s", w.violations[0])
	case w.violated() != "":
		t.Errorf("caught by another invariant than %q: %s", r.invariant, w.violations[0])
	case 4*decide.leftOut > len(r.trace):
		t.Errorf("%d of the %d decisions cannot be made: record the trace again", decide.leftOut, len(r.trace))
	}
	if r.about == "" {
		t.Error("the line about: has to say in a sentence what happens")
	}
}
