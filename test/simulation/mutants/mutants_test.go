package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/privatecloud/operator/test/corpus"
)

// A mutant that does not apply shows nothing: the text that it replaces has to be in its file once.
func TestMutantsApply(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", ".."))
	names := map[string]bool{}
	for _, m := range mutants {
		text, err := os.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), m.old); n != 1 {
			t.Errorf("mutant %q: %s has the text %d times: %s", m.name, m.file, n, m.old)
		}
		if names[m.name] || m.old == m.new {
			t.Errorf("mutant %q: another one has the name, or nothing is replaced", m.name)
		}
		names[m.name] = true
	}
}

// A trace of which the mutant does not exist any more is replayed for nothing.
func TestTracesHaveMutants(t *testing.T) {
	names := map[string]string{}
	for _, m := range mutants {
		names[m.slug()] = m.name
	}
	recordings, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recordings {
		if r.Mutant != "" && names[r.Name] != r.Mutant {
			t.Errorf("%s: no mutant has the name %q and this file", r.Name, r.Mutant)
		}
	}
}
