package simulation

import (
	"testing"

	"github.com/privatecloud/operator/test/corpus"
)

// TestCorpus replays the traces that were recorded when a bug was found, or put into the code.
func TestCorpus(t *testing.T) {
	recordings, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	d := readCRDs(t)
	for _, r := range recordings {
		t.Run(r.Name, func(t *testing.T) { checkRecording(t, d, r) })
	}
}

func checkRecording(t *testing.T, d defaults, r *corpus.Recording) {
	decide, p := &replay{names: r.Trace}, profileNamed(t, r.Profile)
	w := simulate(t, p, d, decide)
	t.Log(w.report())
	switch {
	case w.violated() == r.Invariant:
		t.Errorf("caught by the trace: %s", w.violations[0])
	case w.violated() != "":
		t.Errorf("caught by another invariant than %q: %s", r.Invariant, w.violations[0])
	case 4*decide.leftOut > len(r.Trace):
		t.Errorf("%d of the %d decisions cannot be made: record the trace again", decide.leftOut, len(r.Trace))
	}
	if w.violated() == "" && w.ending != r.End {
		t.Errorf("the run ends in another state than the line end: says:\nend: %s", w.ending)
	}
	if r.About == "" {
		t.Error("the line about: has to say in a sentence what happens")
	}
}
