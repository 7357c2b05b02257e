package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Decisions that are read are few and short.
func TestDecisionsAreFewAndShort(t *testing.T) {
	const folder, maxRecords, maxWords = "docs/decisions", 12, 300
	entries, err := os.ReadDir(filepath.Join(root, folder))
	if err != nil {
		t.Fatal(err)
	}
	index, records := read(t, folder+"/README.md"), 0
	for _, entry := range entries {
		if entry.Name() == "README.md" {
			continue
		}
		records++
		text := read(t, folder+"/"+entry.Name())
		if words := len(strings.Fields(text)); words > maxWords {
			t.Errorf("%s has %d words, want at most %d", entry.Name(), words, maxWords)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		if !strings.Contains(index, "["+title+"]("+entry.Name()+")") {
			t.Errorf("the index does not list %s as %q", entry.Name(), title)
		}
		if !strings.Contains(text, "\n## Rejected\n") || !strings.Contains(text, "\nSee [") {
			t.Errorf("%s does not say what was rejected, or which page has the design", entry.Name())
		}
	}
	if records == 0 || records > maxRecords {
		t.Errorf("%d records, want 1-%d", records, maxRecords)
	}
}
