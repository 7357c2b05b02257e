// Package docs_test compares the pages with the code: each name that users meet
// is on the page where they would look for it, manifests can be applied, code is
// that of Go files, links lead somewhere, and file maps name the files that exist.
package docs_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/transport"
	_ "github.com/privatecloud/operator/internal/controller/cloud" // registers its metrics
	"github.com/privatecloud/operator/internal/fairqueue"
	_ "github.com/privatecloud/operator/internal/objectmetrics" // likewise
	"github.com/privatecloud/operator/internal/probe"
	"github.com/privatecloud/operator/internal/setup"
	_ "github.com/privatecloud/operator/internal/webhook/v1alpha1" // likewise
)

const (
	// root is the module's folder, seen from this package's.
	root       = "../.."
	monitoring = "config/overlays/monitoring/"
)

func TestNamesThatUsersMeetAreExplained(t *testing.T) {
	pages := map[string]string{}
	for _, name := range []string{"vm", "vmclass", "vmgroup", "network", "gpuinfo", "vmconsolerequest", "cloud", "openstack", "objects", "operations", "approval"} {
		pages[name] = read(t, "docs/"+name+".md")
	}
	// Settings that only one type of cloud has are on the page of the type.
	pages["clouds"] = pages["cloud"] + pages["openstack"]
	// Plans, which both kinds have, are on their own page.
	pages["vm and approval"], pages["vmgroup and approval"] = pages["vm"]+pages["approval"], pages["vmgroup"]+pages["approval"]
	tests := map[string]struct {
		pages string
		names []string
	}{
		"VM: conditions and reasons":       {"vm", constants(t, "vm_conditions.go", "Condition", "Reason")},
		"VM: what it reports of a Network": {"vm", []string{pcapi.NetworkNotReadyReason}},
		"VM: states, which kubectl shows":  {"vm", constants(t, "vm_status.go", "VMState")},
		"VM: fields of spec":               {"vm", fields(reflect.TypeFor[pcapi.VMSpec]())},
		"VM: fields of status":             {"vm and approval", fields(reflect.TypeFor[pcapi.VMStatus]())},

		"VMClass: fields of spec": {"vmclass", append(fields(reflect.TypeFor[pcapi.VMClassSpec]()), fields(reflect.TypeFor[pcapi.VMClassHardware]())...)},

		"VmGroup: reasons":                           {"vmgroup", constants(t, "vmgroup_types.go", "Reason")},
		"VmGroup: phases, which kubectl shows":       {"vmgroup", constants(t, "vmgroup_types.go", "VmGroup")},
		"VmGroup: labels and annotations of members": {"vmgroup", []string{pcapi.GroupLabel, pcapi.RevisionLabel, pcapi.DeleteFirstAnnotation}},
		"VmGroup: fields of spec":                    {"vmgroup", fields(reflect.TypeFor[pcapi.VmGroupSpec]())},
		"VmGroup: fields of status":                  {"vmgroup and approval", fields(reflect.TypeFor[pcapi.VmGroupStatus]())},

		"Network: reasons that no other kind has": {"network", constants(t, "network_types.go", "Condition", "Reason")},
		"Network: fields of spec":                 {"network", fields(reflect.TypeFor[pcapi.NetworkSpec]())},
		"Network: fields of status":               {"network", fields(reflect.TypeFor[pcapi.NetworkStatus]())},

		"GPUInfo: conditions and reasons": {"gpuinfo", constants(t, "gpuinfo_types.go", "Condition", "Reason")},
		"GPUInfo: fields of spec":         {"gpuinfo", fields(reflect.TypeFor[pcapi.GPUInfoSpec]())},
		"GPUInfo: fields of status":       {"gpuinfo", fields(reflect.TypeFor[pcapi.GPUInfoStatus]())},

		"VMConsoleRequest: fields of spec":   {"vmconsolerequest", fields(reflect.TypeFor[pcapi.VMConsoleRequestSpec]())},
		"VMConsoleRequest: fields of status": {"vmconsolerequest", fields(reflect.TypeFor[pcapi.VMConsoleRequestStatus]())},

		"Cloud: conditions and reasons": {"cloud", constants(t, "cloud_conditions.go", "Condition", "Reason")},
		"Cloud: fields of spec":         {"clouds", fields(reflect.TypeFor[pcapi.CloudSpec]())},
		"Cloud: fields of type REST":    {"cloud", fields(reflect.TypeFor[pcapi.RESTCloud]())},
		"Cloud: fields of OpenStack":    {"openstack", fields(reflect.TypeFor[pcapi.OpenStackCloud]())},
		"Cloud: fields of status":       {"cloud", fields(reflect.TypeFor[pcapi.CloudStatus]())},

		"all kinds: conditions and reasons":           {"vm", constants(t, "conditions.go", "Condition", "Reason")},
		"all kinds: conditions, on their common page": {"objects", constants(t, "conditions.go", "Condition")},
		"flags of the manager":                        {"operations", flags(t)},
		"metrics, for writing alerts":                 {"operations", metricNames(t)},
		"alerts":                                      {"operations", matches(t, monitoring+"rules.yaml", `alert: (\w+)`)},
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

// explained reports whether a name stands in code font, alone, after its parents
// or before what it holds (cloudRef.name) or is set to (powerState: Off).
func explained(page, name string) bool {
	return regexp.MustCompile("`([a-zA-Z.]*\\.)?" + regexp.QuoteMeta(name) + "([.=:{][^`]*)?`").MatchString(page)
}

func TestAlertsAndDashboardsAskForMetricsThatExist(t *testing.T) {
	known := metricNames(t)
	for _, file := range []string{"rules.yaml", "dashboard.json", "dashboard-vms.json"} {
		t.Run(file, func(t *testing.T) {
			for _, name := range matches(t, monitoring+file, `(privatecloud_\w+)`) {
				if !slices.Contains(known, strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")) {
					t.Errorf("%s asks for %s, which does not exist", file, name)
				}
			}
		})
	}
}

func TestManifestsInThePagesHaveNoFieldThatDoesNotExist(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, page := range pages(t) {
		blocks := manifestsIn(t, page)
		if len(blocks) == 0 {
			continue
		}
		t.Run(page, func(t *testing.T) {
			for _, block := range blocks {
				if _, _, err := decoder.Decode([]byte(block), nil, nil); err != nil {
					t.Errorf("%v in\n%s", err, block)
				}
			}
		})
	}
}

func TestEveryKindHasAManifestInAPage(t *testing.T) {
	kind := regexp.MustCompile(`(?m)^kind: (\w+)$`)
	found := map[string]bool{}
	for _, page := range pages(t) {
		for _, block := range manifestsIn(t, page) {
			for _, match := range kind.FindAllStringSubmatch(block, -1) {
				found[match[1]] = true
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"VM": true, "VMClass": true, "VmGroup": true, "Network": true, "VMSnapshot": true, "VMConsoleRequest": true, "GPUInfo": true, "Cloud": true}, found); diff != "" {
		t.Errorf("kinds of which a page shows a manifest (-want +got):\n%s", diff)
	}
}

// manifestsIn returns the manifests of this project's kinds that a page shows.
func manifestsIn(t *testing.T, page string) []string {
	t.Helper()
	return slices.DeleteFunc(fenced(read(t, page), "yaml"), func(block string) bool {
		return !strings.HasPrefix(block, "apiVersion: "+pcapi.GroupVersion.Group)
	})
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
	var texts []string
	for _, block := range fencedBlocks(page, language) {
		texts = append(texts, block.text)
	}
	return texts
}

// fencedBlock is a code block, and the number of its first line in the page.
type fencedBlock struct {
	text string
	line int
}

func fencedBlocks(page, language string) []fencedBlock {
	fence := regexp.MustCompile("(?ms)^( *)```(\\w*)\n(.*?\n) *```$")
	var blocks []fencedBlock
	for _, at := range fence.FindAllStringSubmatchIndex(page, -1) {
		indent, name, text := page[at[2]:at[3]], page[at[4]:at[5]], page[at[6]:at[7]]
		if name == language {
			blocks = append(blocks, fencedBlock{
				text: regexp.MustCompile("(?m)^"+indent).ReplaceAllString(text, ""), line: strings.Count(page[:at[6]], "\n") + 1,
			})
		}
	}
	return blocks
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
	if len(values) == 0 {
		t.Fatalf("%s has no constants with %q", file, affixes)
	}
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

// fields returns the JSON names of a struct's fields and of those that they
// contain, as far as their types belong to the API.
func fields(kind reflect.Type) []string {
	var names []string
	for field := range kind.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
		inner := field.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner.PkgPath() == kind.PkgPath() {
			names = append(names, fields(inner)...)
		}
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
	return slices.Sorted(maps.Keys(metricLabels(t)))
}

// metricLabels are the labels of each of the operator's own metrics.
func metricLabels(t *testing.T) map[string][]string {
	t.Helper()
	registry := prometheus.NewRegistry()
	transport.NewMetrics(registry)
	probe.NewMetrics(registry)
	fairqueue.New(nil, "vm", 1, nil)
	setup.Caches(&ctrl.Options{})
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		registry.Describe(described)
		if all, ok := metrics.Registry.(prometheus.Collector); ok {
			all.Describe(described)
		}
	}()
	labels := map[string][]string{}
	metric := regexp.MustCompile(`(?s)fqName: "(privatecloud_\w+)".*constLabels: \{(.*?)\}, variableLabels: \{(.*?)\}`)
	constant := regexp.MustCompile(`(\w+)="`)
	for desc := range described {
		match := metric.FindStringSubmatch(desc.String())
		if match == nil {
			continue
		}
		found := strings.FieldsFunc(match[3], func(r rune) bool { return r == ',' })
		for _, label := range constant.FindAllStringSubmatch(match[2], -1) {
			found = append(found, label[1])
		}
		found = append(found, labels[match[1]]...)
		slices.Sort(found)
		labels[match[1]] = slices.Compact(found)
	}
	const least = 9
	if len(labels) < least {
		t.Fatalf("found only %v", labels)
	}
	return labels
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
