// Package docs_test holds what the pages say against the code: each name that
// users meet is in the page where they would look for it, and what the pages
// show can be used as it stands.
package docs_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/transport"
	_ "github.com/privatecloud/operator/internal/controller/cloud" // registers its metrics
	_ "github.com/privatecloud/operator/internal/webhook/v1alpha1" // likewise
)

const (
	// root is the module's folder, seen from this package's.
	root       = "../.."
	monitoring = "config/overlays/monitoring/"
)

func TestNamesThatUsersMeetAreExplained(t *testing.T) {
	pages := map[string]string{}
	for _, name := range []string{"vm", "vmgroup", "network", "gpuinfo", "cloud", "operations"} {
		pages[name] = read(t, "docs/"+name+".md")
	}
	tests := map[string]struct {
		pages string
		names []string
	}{
		"conditions and reasons of a VM, since kubectl shows them without a word of what to do": {"vm", constants(t, "vm_types.go", "Condition", "Reason")},
		"conditions and reasons of a GPUInfo, likewise":                                         {"gpuinfo", constants(t, "gpuinfo_types.go", "Condition", "Reason")},
		"fields of a GPUInfo's spec":                                                            {"gpuinfo", fields(reflect.TypeFor[v1alpha1.GPUInfoSpec]())},
		"fields of a GPUInfo's status":                                                          {"gpuinfo", fields(reflect.TypeFor[v1alpha1.GPUInfoStatus]())},
		"conditions and reasons of a Cloud, likewise":                                           {"cloud", constants(t, "cloud_types.go", "Condition", "Reason")},
		"reasons of a Network that no other kind has, likewise":                                 {"network", constants(t, "network_types.go", "Condition", "Reason")},
		"what a VM says of its Network":                                                         {"vm", []string{v1alpha1.NetworkNotReadyReason}},
		"fields of a Network's spec":                                                            {"network", fields(reflect.TypeFor[v1alpha1.NetworkSpec]())},
		"fields of a Network's status":                                                          {"network", fields(reflect.TypeFor[v1alpha1.NetworkStatus]())},
		"what both kinds have in common":                                                        {"vm", constants(t, "conditions.go", "Condition", "Reason")},
		"the states of a VM, which kubectl get shows":                                           {"vm", constants(t, "vm_types.go", "VMState")},
		"fields of a VM's spec":                                                                 {"vm", fields(reflect.TypeFor[v1alpha1.VMSpec]())},
		"fields of a VM's status":                                                               {"vm", fields(reflect.TypeFor[v1alpha1.VMStatus]())},
		"fields of a Cloud's spec":                                                              {"cloud", fields(reflect.TypeFor[v1alpha1.CloudSpec]())},
		"fields of a Cloud's status":                                                            {"cloud", fields(reflect.TypeFor[v1alpha1.CloudStatus]())},
		"reasons of a VmGroup":                                                                  {"vmgroup", constants(t, "vmgroup_types.go", "Reason")},
		"the phases of a VmGroup, which kubectl get shows":                                      {"vmgroup", constants(t, "vmgroup_types.go", "VmGroup")},
		"labels and annotations of members":                                                     {"vmgroup", constants(t, "vmgroup_types.go", "Label", "Annotation")},
		"fields of a VmGroup's spec":                                                            {"vmgroup", fields(reflect.TypeFor[v1alpha1.VmGroupSpec]())},
		"fields of a VmGroup's status":                                                          {"vmgroup", fields(reflect.TypeFor[v1alpha1.VmGroupStatus]())},
		"flags of the manager":                                                                  {"operations", flags(t)},
		"metrics, without which nobody can write an alert":                                      {"operations", metricNames(t)},
		"alerts, which send people there":                                                       {"operations", matches(t, monitoring+"rules.yaml", `alert: (\w+)`)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if len(tc.names) == 0 {
				t.Fatal("found no names to look for")
			}
			for _, name := range tc.names {
				if !explained(pages[tc.pages], name) {
					t.Errorf("docs/%s.md does not have `%s`", tc.pages, name)
				}
			}
		})
	}
}

// explained tells whether a name stands in code font, alone, after its parents
// or before what it holds (cloudRef.name) or is set to (powerState: Off).
func explained(page, name string) bool {
	return regexp.MustCompile("`([a-zA-Z.]*\\.)?" + regexp.QuoteMeta(name) + "([.=:{][^`]*)?`").MatchString(page)
}

func TestAlertsAndDashboardAskForMetricsThatExist(t *testing.T) {
	known := metricNames(t)
	for _, file := range []string{"rules.yaml", "dashboard.json"} {
		for _, name := range matches(t, monitoring+file, `(privatecloud_\w+)`) {
			if !slices.Contains(known, strings.TrimSuffix(name, "_bucket")) {
				t.Errorf("%s asks for %s, which nobody measures", file, name)
			}
		}
	}
}

func TestManifestsInThePagesHaveNoFieldThatDoesNotExist(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	found := map[string]bool{}
	for _, page := range pages(t) {
		for _, block := range fenced(read(t, page), "yaml") {
			if !strings.HasPrefix(block, "apiVersion: "+v1alpha1.GroupVersion.Group) {
				continue
			}
			_, kind, err := decoder.Decode([]byte(block), nil, nil)
			if err != nil {
				t.Errorf("%s: %v in\n%s", page, err, block)
				continue
			}
			found[kind.Kind] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"VM": true, "VmGroup": true, "Network": true, "GPUInfo": true, "Cloud": true}, found); diff != "" {
		t.Errorf("kinds of which a page shows a manifest (-want +got):\n%s", diff)
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range pages(t) {
		for _, target := range link.FindAllStringSubmatch(read(t, page), -1) {
			path, anchor, _ := strings.Cut(target[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			to := page
			if path != "" {
				to = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s: %v", page, target[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, to)), anchor) {
				t.Errorf("%s links to %s, where there is no such heading", page, target[1])
			}
		}
	}
}

func TestFileMapsNameTheFoldersOfTheTree(t *testing.T) {
	// Each folder inside of these has a line of its own.
	inside := []string{".", "api", "internal", "internal/cloud", "internal/controller"}
	// Folders that only hold others, and what is built.
	without := []string{"api", "internal", "internal/controller", "bin", "dist"}
	var want []string
	for _, folder := range inside {
		entries, err := os.ReadDir(filepath.Join(root, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			path := filepath.Join(folder, entry.Name())
			if entry.IsDir() && !strings.HasPrefix(path, ".") && !slices.Contains(without, path) {
				want = append(want, path)
			}
		}
	}
	slices.Sort(want)
	for _, page := range []string{"README.md", "docs/architecture.md"} {
		if diff := cmp.Diff(want, mapped(t, page)); diff != "" {
			t.Errorf("%s: folders of the file map (-tree +page):\n%s", page, diff)
		}
	}
}

// mapped are the folders that a page's file map names, at the start of a line.
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

func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, paths...)
	}
	return found
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fenced are the page's code blocks of a language, without the indentation of
// the list that they stand in.
func fenced(page, language string) []string {
	fence := regexp.MustCompile("(?ms)^( *)```(\\w*)\n(.*?\n) *```$")
	var blocks []string
	for _, found := range fence.FindAllStringSubmatch(page, -1) {
		if found[2] == language {
			blocks = append(blocks, regexp.MustCompile("(?m)^"+found[1]).ReplaceAllString(found[3], ""))
		}
	}
	return blocks
}

// anchors are the headings of a page as links name them.
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
		found = append(found, strings.ReplaceAll(heading, " ", "-"))
	}
	return found
}

// constants are the values of the constants of a file of the API whose names
// begin or end with one of the affixes.
func constants(t *testing.T, file string, affixes ...string) []string {
	t.Helper()
	var values []string
	ast.Inspect(parse(t, "api/v1alpha1/"+file), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name := spec.Names[0].Name
		value, ok := spec.Values[0].(*ast.BasicLit)
		if ok && slices.ContainsFunc(affixes, func(a string) bool { return strings.HasPrefix(name, a) || strings.HasSuffix(name, a) }) {
			values = append(values, unquote(t, value))
		}
		return true
	})
	return values
}

// matches are what a pattern's group finds in a file.
func matches(t *testing.T, path, pattern string) []string {
	t.Helper()
	var found []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, path), -1) {
		found = append(found, match[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s has nothing like %s", path, pattern)
	}
	return found
}

// fields are the names of a struct's fields in JSON.
func fields(kind reflect.Type) []string {
	var names []string
	for field := range kind.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// flags are those that cmd/main.go defines and those that it takes over.
func flags(t *testing.T) []string {
	t.Helper()
	var names []string
	ast.Inspect(parse(t, "cmd/main.go"), func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) < 3 {
			return true
		}
		callee, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || fmt.Sprint(callee.X) != "flag" {
			return true
		}
		if name, ok := call.Args[1].(*ast.BasicLit); ok {
			names = append(names, "--"+unquote(t, name))
		}
		return true
	})
	const least = 8
	if len(names) < least {
		t.Fatalf("found only %v in cmd/main.go", names)
	}
	others := flag.NewFlagSet("", flag.ContinueOnError)
	config.RegisterFlags(others)
	(&zap.Options{}).BindFlags(others)
	others.VisitAll(func(f *flag.Flag) { names = append(names, "--"+f.Name) })
	return names
}

// metricNames are those of the operator's own metrics.
func metricNames(t *testing.T) []string {
	t.Helper()
	registry := prometheus.NewRegistry()
	transport.NewMetrics(registry)
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		registry.Describe(described)
		if all, ok := metrics.Registry.(prometheus.Collector); ok {
			all.Describe(described)
		}
	}()
	var names []string
	for desc := range described {
		name := regexp.MustCompile(`fqName: "(privatecloud_\w+)"`).FindStringSubmatch(desc.String())
		if len(name) > 1 && !slices.Contains(names, name[1]) {
			names = append(names, name[1])
		}
	}
	const least = 9
	if len(names) < least {
		t.Fatalf("found only %v", names)
	}
	return names
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func unquote(t *testing.T, literal *ast.BasicLit) string {
	t.Helper()
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
