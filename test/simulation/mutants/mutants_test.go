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
