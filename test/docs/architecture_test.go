package docs_test

import (
	"strings"
	"testing"
)

const (
	architecture = "docs/architecture.md"
	// maxWords is what a newcomer reads in about ten minutes.
	maxWords = 1500
	maxTerms = 12
)

func TestArchitectureIsShort(t *testing.T) {
	if words := len(strings.Fields(read(t, architecture))); words > maxWords {
		t.Errorf("%s has %d words, want at most %d: details belong into docs/design", architecture, words, maxWords)
	}
}

func TestGlossaryIsShort(t *testing.T) {
	_, glossary, found := strings.Cut(read(t, architecture), "\n## Glossary\n")
	if !found {
		t.Fatalf("%s has no glossary", architecture)
	}
	glossary, _, _ = strings.Cut(glossary, "\n## ")
	terms := -2 // the heading of the table
	for line := range strings.Lines(glossary) {
		if strings.HasPrefix(line, "|") {
			terms++
		}
	}
	if terms < 1 || terms > maxTerms {
		t.Errorf("the glossary of %s has %d terms, want 1 to %d", architecture, terms, maxTerms)
	}
}
