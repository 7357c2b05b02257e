package docs_test

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// TestGoCodeInPagesIsPartOfAGoFile finds each block of Go code of a page in a Go
// file, which the compiler checks. Only indentation may differ.
func TestGoCodeInPagesIsPartOfAGoFile(t *testing.T) {
	var sources []string
	for _, file := range files(t, ".") {
		if path.Ext(file) != ".go" || strings.Contains(file, "testdata/") {
			continue
		}
		if source := read(t, file); !strings.Contains(source, "//go:build ignore") {
			sources = append(sources, unindented(source))
		}
	}
	checked := 0
	for _, page := range pages(t) {
		for _, block := range fencedBlocks(read(t, page), "go") {
			checked++
			if n := differs(sources, block.text); n > 0 {
				t.Errorf("%s:%d: no Go file has this line after those before it in the block: %s", page, block.line+n-1, strings.Split(block.text, "\n")[n-1])
			}
		}
	}
	const least = 7
	if checked < least {
		t.Errorf("found %d blocks of Go code, want at least %d", checked, least)
	}
}

// differs returns the number of the first line of a block up to which no source has
// the block; 0 if a source has all of it.
func differs(sources []string, block string) int {
	n, part := 0, "\n"
	for line := range strings.Lines(block) {
		n++
		part += strings.TrimLeft(line, " \t")
		sources = slices.DeleteFunc(slices.Clone(sources), func(source string) bool { return !strings.Contains(source, part) })
		if len(sources) == 0 {
			return n
		}
	}
	return 0
}

// unindented returns the lines of a text without the spaces and tabs before them,
// and with a newline before the first.
func unindented(text string) string {
	var found strings.Builder
	found.WriteByte('\n')
	for line := range strings.Lines(text) {
		found.WriteString(strings.TrimLeft(line, " \t"))
	}
	return found.String()
}

func TestDiffersComparesWholeLines(t *testing.T) {
	sources := []string{unindented("func f() {\n\tif x {\n\t\ty()\n\t}\n}\n"), unindented("if x {\n}\n")}
	for block, want := range map[string]int{
		"if x {\n\ty()\n}\n":  0,
		"if x {\n}\n":         0,
		"func f() {\n":        0,
		"f() {\n":             1,
		"func f() {\n}\n":     2,
		"if x {\n\ty(z)\n}\n": 2,
	} {
		if got := differs(sources, block); got != want {
			t.Errorf("%q: line %d, want %d", block, got, want)
		}
	}
}

func TestPageAboutKindsNamesEachOptionAndMethod(t *testing.T) {
	page := read(t, "docs/development/add-a-kind.md")
	for name, names := range map[string][]string{
		"external.Options":  members(t, "internal/external/lifecycle.go", "Options"),
		"external.Kind":     members(t, "internal/external/kind.go", "Kind"),
		"external.Optional": members(t, "internal/external/kind.go", "Optional"),
	} {
		for _, member := range names {
			if !explained(page, member) {
				t.Errorf("docs/development/add-a-kind.md does not have `%s` of %s", member, name)
			}
		}
	}
}

func TestFieldsOfTheFixtureAreInTheTable(t *testing.T) {
	var listed []string
	for _, row := range rows(t, "docs/cloud-api.md", "field of the fixture", "description") {
		listed = append(listed, codes(row[0])...)
	}
	fields := members(t, "internal/cloud/cloudtest/suite.go", "Fixture")
	slices.Sort(listed)
	slices.Sort(fields)
	if !slices.Equal(fields, listed) {
		t.Errorf("docs/cloud-api.md has the fields %q, want %q", listed, fields)
	}
}

// members returns the names of the fields of a struct of a file, or of the methods
// of an interface. What it embeds is left out.
func members(t *testing.T, file, kind string) []string {
	t.Helper()
	var names []string
	ast.Inspect(parse(t, file), func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != kind {
			return true
		}
		switch definition := spec.Type.(type) {
		case *ast.StructType:
			names = namesOf(definition.Fields)
		case *ast.InterfaceType:
			names = namesOf(definition.Methods)
		}
		return false
	})
	if len(names) == 0 {
		t.Fatalf("%s has no type %s with members", file, kind)
	}
	return names
}
