package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestLinksLeadToPagesAndHeadings(t *testing.T) {
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) {
			for _, target := range links(t, page) {
				checkTarget(t, page, target)
			}
		})
	}
}

func TestEveryPageIsLinkedFromTheREADME(t *testing.T) {
	reached := []string{"README.md"}
	for i := 0; i < len(reached); i++ {
		for _, target := range links(t, reached[i]) {
			file, _, _ := strings.Cut(target, "#")
			if strings.HasSuffix(file, ".md") && !slices.Contains(reached, file) && exists(file) {
				reached = append(reached, file)
			}
		}
	}
	want := pages(t)
	slices.Sort(reached)
	if diff := cmp.Diff(want, reached); diff != "" {
		t.Errorf("pages that can be reached by links (-pages +reached):\n%s", diff)
	}
}

// Comments and alerts refer to pages by their path in the repository.
func TestPathsOfPagesInOtherFilesExist(t *testing.T) {
	reference := regexp.MustCompile(`\bdocs/[\w/-]+\.md(#[\w-]+)?`)
	found := 0
	for _, file := range files(t, ".") {
		if strings.HasSuffix(file, ".md") || strings.HasPrefix(file, "test/docs/") || !isText(file) {
			continue
		}
		targets := reference.FindAllString(read(t, file), -1)
		if len(targets) == 0 {
			continue
		}
		found++
		t.Run(file, func(t *testing.T) {
			for _, target := range targets {
				checkTarget(t, file, target)
			}
		})
	}
	if found == 0 {
		t.Error("found no reference to a page, want at least that of the alerts")
	}
}

// links returns the targets of the relative links of a page, seen from the root.
func links(t *testing.T, page string) []string {
	t.Helper()
	var targets []string
	for _, match := range link.FindAllStringSubmatch(withoutCode(read(t, page)), -1) {
		target := match[1]
		switch {
		case strings.Contains(target, "://"):
		case strings.HasPrefix(target, "#"):
			targets = append(targets, page+target)
		default:
			targets = append(targets, path.Join(path.Dir(page), target))
		}
	}
	return targets
}

func checkTarget(t *testing.T, from, target string) {
	t.Helper()
	file, anchor, _ := strings.Cut(target, "#")
	if !exists(file) {
		t.Errorf("%s links to %s, which does not exist", from, target)
		return
	}
	if anchor != "" && !slices.Contains(anchors(read(t, file)), anchor) {
		t.Errorf("%s links to %s, where there is no such heading", from, target)
	}
}

func exists(file string) bool {
	_, err := os.Stat(filepath.Join(root, file))
	return err == nil
}

// pages returns all pages of the repository, sorted.
func pages(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(files(t, "."), func(file string) bool { return !strings.HasSuffix(file, ".md") })
}

// files returns the files of a folder of the repository, or the file itself,
// sorted. It leaves out what is built and hidden folders except .ci.
func files(t *testing.T, folder string) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(root), folder, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			found = append(found, file)
		case file == "bin", file == "dist", file != "." && file != ".ci" && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// isText reports whether people write the file by hand.
func isText(file string) bool {
	return slices.Contains([]string{".go", ".sh", ".yaml", ".yml", ".json", ".md"}, path.Ext(file)) ||
		path.Base(file) == "Makefile" || strings.HasPrefix(file, ".ci/")
}

// withoutCode returns a page without its code blocks and code spans.
func withoutCode(page string) string {
	page = regexp.MustCompile("(?ms)^ *```.*?\n *```$").ReplaceAllString(page, "")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(page, "")
}

// anchors returns the headings of a page as links name them.
func anchors(page string) []string {
	var found []string
	code := false
	for line := range strings.Lines(page) {
		code = code != strings.HasPrefix(strings.TrimSpace(line), "```")
		heading, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimSpace(line), "#"), " ")
		if code || !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		heading = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(heading), "")
		anchor := strings.ReplaceAll(heading, " ", "-")
		unique := anchor
		for n := 1; slices.Contains(found, unique); n++ {
			unique = fmt.Sprintf("%s-%d", anchor, n)
		}
		found = append(found, unique)
	}
	return found
}
