package docs_test

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFileMapNamesTheFoldersOfTheTree(t *testing.T) {
	// Each folder in these has a line.
	parents := []string{".", "api", "internal", "internal/cloud", "internal/controller"}
	// Folders that only contain others, and builds.
	without := []string{"api", "internal", "internal/controller", "bin", "dist"}
	var want []string
	for _, parent := range parents {
		entries, err := os.ReadDir(filepath.Join(root, parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			folder := path.Join(parent, entry.Name())
			if !entry.IsDir() || strings.HasPrefix(folder, ".") || slices.Contains(without, folder) {
				continue
			}
			want = append(want, folder)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, mapped(t, "README.md")); diff != "" {
		t.Errorf("README.md: folders of the file map (-tree +page):\n%s", diff)
	}
}

func TestFileMapNamesEachFolderOfTests(t *testing.T) {
	_, line, found := strings.Cut(read(t, "README.md"), "\ntest/ ")
	if !found {
		t.Fatal("README.md: the file map has no line test/")
	}
	line, _, _ = strings.Cut(line, "\n")
	entries, err := os.ReadDir(filepath.Join(root, "test"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name := entry.Name() + "/"; entry.IsDir() && !regexp.MustCompile(`\b`+name).MatchString(line) {
			t.Errorf("README.md: the line test/ of the file map does not name %s", name)
		}
	}
}

func TestOnlyTheREADMEHasAFileMap(t *testing.T) {
	for _, page := range pages(t) {
		if page == "README.md" {
			continue
		}
		t.Run(page, func(t *testing.T) {
			if text := read(t, page); strings.Count(text, "\ninternal/") > 1 || strings.Count(text, "\n| `internal/") > 4 {
				t.Errorf("%s lists the packages; link to README.md#file-map instead", page)
			}
		})
	}
}

// mapped returns the folders that the file map of a page names at the start of a line.
func mapped(t *testing.T, page string) []string {
	t.Helper()
	for _, block := range fenced(read(t, page), "") {
		if !strings.Contains(block, "api/v1alpha1/") {
			continue
		}
		var folders []string
		for line := range strings.Lines(block) {
			for word := range strings.FieldsSeq(line) {
				folder, ok := strings.CutSuffix(word, "/")
				if !ok || strings.HasPrefix(line, " ") {
					break
				}
				folders = append(folders, folder)
			}
		}
		slices.Sort(folders)
		return folders
	}
	t.Fatalf("%s has no file map", page)
	return nil
}

// filesWithoutList is how many files an internal package may have without a list
// of them.
const filesWithoutList = 3

// A package comment can list the files of its package in lines that are
// indented by a tab. Such a comment has to name all of them:
//
//	name.go            what is in it
//	one.go, two.go     more than one
//	one.go             what is in it; two.go likewise
//	prefix_*.go        those for several platforms
func TestPackageCommentsListTheFilesOfThePackage(t *testing.T) {
	lists := 0
	for folder, sources := range packages(t) {
		listed := listedFiles(t, sources)
		needed := strings.HasPrefix(folder, "internal/") && len(sources) > filesWithoutList
		if len(listed) == 0 && !needed {
			continue
		}
		lists++
		t.Run(folder, func(t *testing.T) {
			var unlisted []string
			for _, source := range sources {
				name := path.Base(source)
				if name != "doc.go" && !strings.HasPrefix(name, "zz_generated") && !slices.ContainsFunc(listed, func(pattern string) bool { return matchesFile(t, pattern, name) }) {
					unlisted = append(unlisted, name)
				}
			}
			missing := slices.DeleteFunc(listed, func(pattern string) bool {
				return slices.ContainsFunc(sources, func(source string) bool { return matchesFile(t, pattern, path.Base(source)) })
			})
			if len(unlisted)+len(missing) > 0 {
				t.Errorf("the package comment does not list %q, and lists %q, which do not exist", unlisted, missing)
			}
		})
	}
	if lists == 0 {
		t.Error("found no package comment with a list of files")
	}
}

// packages returns the Go files of each folder, without tests.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, file := range files(t, ".") {
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			found[path.Dir(file)] = append(found[path.Dir(file)], file)
		}
	}
	return found
}

var (
	list     = regexp.MustCompile(`(?m)^\t[\w*]+\.go\b`)
	indented = regexp.MustCompile(`(?m)^\t.*`)
	fileName = regexp.MustCompile(`[\w*]+\.go\b`)
)

// listedFiles returns the files that the package comment in one of the files lists.
func listedFiles(t *testing.T, sources []string) []string {
	t.Helper()
	var listed []string
	for _, source := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, source), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		comment := file.Doc.Text()
		if !list.MatchString(comment) {
			continue
		}
		for _, line := range indented.FindAllString(comment, -1) {
			listed = append(listed, fileName.FindAllString(line, -1)...)
		}
	}
	return listed
}

func matchesFile(t *testing.T, pattern, name string) bool {
	t.Helper()
	ok, err := path.Match(pattern, name)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}
