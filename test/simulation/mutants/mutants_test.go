package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	traces := map[string]string{}
	for _, m := range mutants {
		traces[m.corpus()] = m.name
	}
	t.Chdir("..")
	files, err := filepath.Glob(filepath.Join("testdata", "corpus", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(string(text), "\nmutant:")
		name, _, _ = strings.Cut(name, "\n")
		if name = strings.TrimSpace(name); name != "" && traces[file] != name {
			t.Errorf("%s: no mutant has the name %q and this file", file, name)
		}
	}
}
