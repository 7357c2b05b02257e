package docs_test

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	security = "SECURITY.md"
	// promises is the section of SECURITY.md whose rows each name a test.
	promises = "## What is promised"
)

// evidence is a link to a test: [`TestName/case`](path) for a test function or one
// of its cases, or [`text`](path) for a spec.
var evidence = regexp.MustCompile("\\[`([^`]+)`\\]\\(([^)#\\s]+\\.go)\\)")

func TestEveryClaimNamesATest(t *testing.T) {
	_, section, found := strings.Cut(read(t, security), "\n"+promises+"\n")
	if !found {
		t.Fatalf("%s has no section %q", security, promises)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	claims := 0
	rows := regexp.MustCompile(`(?m)^\|.*\|$`).FindAllString(section, -1)
	for i, row := range rows {
		// A heading is followed by a row of dashes.
		if isRule(row) || i+1 < len(rows) && isRule(rows[i+1]) {
			continue
		}
		claims++
		if !evidence.MatchString(row) {
			t.Errorf("%s: the claim names no test: %s", security, row)
		}
	}
	const least = 20
	if claims < least {
		t.Errorf("%s: found %d claims, want at least %d", security, claims, least)
	}
}

func TestEachActorIsTriedWithATest(t *testing.T) {
	for _, row := range rows(t, security, "actor", "can", "is trusted with", "tried with") {
		tried := row[len(row)-1]
		if !evidence.MatchString(tried) && !strings.HasPrefix(tried, "not tried, because ") {
			t.Errorf("%s: no test tries what a %s can do", security, row[0])
		}
	}
}

func isRule(row string) bool { return strings.HasPrefix(row, "|--") }

func TestPagesNameTestsThatExist(t *testing.T) {
	equal := func(literal, name string) bool { return literal == name }
	for page, matches := range map[string]func(literal, name string) bool{
		security: equal,
		contract: equal,
		// Its table has the part of a name by which a case is found.
		"docs/development/add-a-backend.md": strings.Contains,
	} {
		links := evidence.FindAllStringSubmatch(read(t, page), -1)
		if len(links) == 0 {
			t.Fatalf("%s names no test", page)
		}
		for _, link := range links {
			name, file := link[1], path.Join(path.Dir(page), link[2])
			t.Run(page+" "+caseName(name), func(t *testing.T) {
				if !exists(file) {
					t.Fatalf("%s does not exist", file)
				}
				checkTestExists(t, file, name, matches)
			})
		}
	}
}

// caseName is a name of a subtest that has no levels for -run.
func caseName(name string) string { return strings.ReplaceAll(name, "/", ".") }

// checkTestExists checks that a file has a test, or a case of which matches reports that
// its name is the one that is looked for.
func checkTestExists(t *testing.T, file, name string, matches func(literal, name string) bool) {
	t.Helper()
	source := parse(t, file)
	function, inner, _ := strings.Cut(name, "/")
	if !regexp.MustCompile(`^(Test|Fuzz)\w+$`).MatchString(function) {
		function, inner = "", name
	}
	if function != "" && !slices.ContainsFunc(source.Decls, func(decl ast.Decl) bool {
		f, ok := decl.(*ast.FuncDecl)
		return ok && f.Recv == nil && f.Name.Name == function
	}) {
		t.Errorf("%s has no test %s", file, function)
	}
	if inner != "" && !slices.ContainsFunc(literals(t, source), func(literal string) bool { return matches(literal, inner) }) {
		t.Errorf("%s has no case %q", file, inner)
	}
}

// literals returns the string literals of a file, among which are the names of its cases.
func literals(t *testing.T, file *ast.File) []string {
	t.Helper()
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, text)
		}
		return true
	})
	return found
}
