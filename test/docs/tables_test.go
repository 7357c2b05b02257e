package docs_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

const (
	chart = "charts/private-cloud-operator/"
	crds  = "config/crd/bases/"
	csv   = "config/manifests/bases/private-cloud-operator.clusterserviceversion.yaml"
)

// code are the words in code font.
var code = regexp.MustCompile("`([^`]+)`")

// codes returns the words of a text that are in code font.
func codes(text string) []string {
	var found []string
	for _, match := range code.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// rows returns the cells of the rows of a page's table whose heading begins with
// the given cells.
func rows(t *testing.T, page string, heading ...string) [][]string {
	t.Helper()
	_, table, found := strings.Cut(read(t, page), "\n| "+strings.Join(heading, " | ")+" |")
	if !found {
		t.Fatalf("%s has no table with the heading %q", page, heading)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var cellsOf [][]string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| ") {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			cellsOf = append(cellsOf, cells)
		}
	}
	if len(cellsOf) == 0 {
		t.Fatalf("%s: the table with the heading %q is empty", page, heading)
	}
	return cellsOf
}

func TestMetricsHaveTheLabelsOfTheCode(t *testing.T) {
	known := metricLabels(t)
	// Words in parentheses and after colons are values of the label before them.
	values := regexp.MustCompile(`\([^)]*\)|:[^:]*$`)
	compared := 0
	for _, row := range rows(t, "docs/operations.md", "metric", "labels", "description") {
		name := strings.Trim(row[0], "`")
		want, registered := known[name]
		if !registered {
			continue // A controller or the binary registers it.
		}
		compared++
		got := slices.Sorted(slices.Values(codes(values.ReplaceAllString(row[1], ""))))
		if !slices.Equal(want, got) {
			t.Errorf("docs/operations.md: %s has the labels %q, want %q", name, got, want)
		}
	}
	if compared < len(known) {
		t.Errorf("docs/operations.md has %d of the %d metrics in this table", compared, len(known))
	}
}

func TestChartValuesAreInTheTable(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, chart+"values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range rows(t, "docs/install.md", "value", "effect") {
		listed = append(listed, codes(row[0])...)
	}
	for _, name := range listed {
		if !hasValue(values, name) {
			t.Errorf("docs/install.md has the value %s, which the chart does not have", name)
		}
	}
	for _, name := range append(switches(values, ""), scalars(values)...) {
		if !slices.Contains(listed, name) {
			t.Errorf("docs/install.md does not have the value %s", name)
		}
	}
}

// hasValue reports whether a path such as webhook.enabled leads to a value.
func hasValue(values map[string]any, path string) bool {
	name, rest, nested := strings.Cut(path, ".")
	value, found := values[name]
	if !nested || !found {
		return found
	}
	inner, ok := value.(map[string]any)
	return ok && hasValue(inner, rest)
}

// switches returns the paths of the values that are named enabled.
func switches(values map[string]any, prefix string) []string {
	var paths []string
	for name, value := range values {
		if name == "enabled" {
			paths = append(paths, prefix+name)
		}
		if inner, ok := value.(map[string]any); ok {
			paths = append(paths, switches(inner, prefix+name+".")...)
		}
	}
	slices.Sort(paths)
	// The issuer's Certificate is described with the webhook.
	return slices.DeleteFunc(paths, func(path string) bool { return path == "webhook.certManager.enabled" })
}

// scalars returns the names of the values at the top that have no switch inside.
func scalars(values map[string]any) []string {
	var names []string
	for name, value := range values {
		inner, _ := value.(map[string]any)
		if len(switches(inner, "")) == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestExamplesOfCloudsHaveTheCapabilitiesOfTheCode(t *testing.T) {
	constants := capabilityConstants(t)
	for name, source := range map[string]struct{ file, variable string }{
		"vsphere":   {"internal/cloud/vsphere/site.go", "capabilities"},
		"openstack": {"internal/cloud/openstack/capabilities.go", "has"},
		"":          {},
	} {
		file := "cloud.yaml"
		if name != "" {
			file = "cloud_" + name + ".yaml"
		}
		t.Run(file, func(t *testing.T) {
			var example pcapi.Cloud
			if err := yaml.Unmarshal([]byte(read(t, "config/manifests/examples/"+file)), &example); err != nil {
				t.Fatal(err)
			}
			var shown []cloud.Capability
			for _, capability := range example.Status.Capabilities {
				shown = append(shown, cloud.Capability(capability))
			}
			want := cloud.NewCapabilities(shown...)
			if name != "" {
				want = cloud.NewCapabilities(listedIn(t, source.file, source.variable, constants)...)
			}
			if diff := cmp.Diff(want, cloud.Capabilities(shown)); diff != "" {
				t.Errorf("%s: capabilities (-code +example):\n%s", file, diff)
			}
			guarantee, _ := want.CreateGuarantee("VM", false)
			for _, condition := range example.Status.Conditions {
				if message := "connected; " + guarantee; condition.Type == pcapi.ReadyCondition && condition.Message != message {
					t.Errorf("%s: the message of Ready is %q, want %q", file, condition.Message, message)
				}
			}
		})
	}
}

// capabilityConstants returns the capabilities by the names of their constants.
func capabilityConstants(t *testing.T) map[string]cloud.Capability {
	t.Helper()
	found := map[string]cloud.Capability{}
	ast.Inspect(parse(t, "internal/cloud/capabilities.go"), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if value, ok := spec.Values[0].(*ast.BasicLit); ok {
			found[spec.Names[0].Name] = cloud.Capability(unquote(t, value))
		}
		return true
	})
	return found
}

// listedIn returns the capabilities with which a variable of a file is initialized.
func listedIn(t *testing.T, file, variable string, constants map[string]cloud.Capability) []cloud.Capability {
	t.Helper()
	var found []cloud.Capability
	ast.Inspect(parse(t, file), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != variable || len(spec.Values) != 1 {
			return true
		}
		call, ok := spec.Values[0].(*ast.CallExpr)
		if !ok {
			return true
		}
		for _, arg := range call.Args {
			selector, ok := arg.(*ast.SelectorExpr)
			if !ok || constants[selector.Sel.Name] == "" {
				t.Fatalf("%s: cannot read the capabilities in %s", file, variable)
			}
			found = append(found, constants[selector.Sel.Name])
		}
		return false
	})
	if len(found) == 0 {
		t.Fatalf("%s has no variable %s with capabilities", file, variable)
	}
	return found
}

func TestDescriptionsOfKindsAreForUsers(t *testing.T) {
	own := map[string][]string{
		"VM":      constants(t, "vm_conditions.go", "Condition"),
		"Cloud":   constants(t, "cloud_conditions.go", "Condition"),
		"GPUInfo": constants(t, "gpuinfo_types.go", "Condition"),
	}
	source := regexp.MustCompile(`operator-sdk|docs/|internal/|\.go\b`)
	for _, definition := range definitions(t) {
		kind := definition.Spec.Names.Kind
		t.Run(kind, func(t *testing.T) {
			schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
			describe("", *schema, func(path, description string) {
				if source.MatchString(description) {
					t.Errorf("the description of %q is for developers: %s", path, description)
				}
			})
			if kind == "VMClass" {
				return // It has no status.
			}
			status := schema.Properties["status"]
			description := status.Properties["conditions"].Description
			for _, name := range append(constants(t, "conditions.go", "Condition"), own[kind]...) {
				if !regexp.MustCompile(`\b` + name + `\b`).MatchString(description) {
					t.Errorf("the description of status.conditions does not name %s: %s", name, description)
				}
			}
		})
	}
}

// describe calls visit with the path and the description of each property.
func describe(path string, schema apiextensionsv1.JSONSchemaProps, visit func(path, description string)) {
	visit(path, schema.Description)
	for name, property := range schema.Properties {
		describe(path+"."+name, property, visit)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		describe(path+"[]", *schema.Items.Schema, visit)
	}
}

// definitions returns the CRDs.
func definitions(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, crds))
	if err != nil {
		t.Fatal(err)
	}
	var found []apiextensionsv1.CustomResourceDefinition
	for _, entry := range entries {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(read(t, crds+entry.Name())), &definition); err != nil {
			t.Fatal(err)
		}
		found = append(found, definition)
	}
	if len(found) == 0 {
		t.Fatal("found no CRD")
	}
	return found
}

func TestOverviewsNameEachKind(t *testing.T) {
	_, warning, found := strings.Cut(read(t, chart+"templates/NOTES.txt"), "WARNING: crds.keep is false")
	if !found {
		t.Fatal("NOTES.txt does not warn that the CRDs are deleted")
	}
	warning, _, _ = strings.Cut(warning, "{{")
	var base struct{ Spec struct{ Description string } }
	if err := yaml.Unmarshal([]byte(read(t, csv)), &base); err != nil {
		t.Fatal(err)
	}
	diagrams := fenced(read(t, "README.md"), "mermaid")
	if len(diagrams) != 1 {
		t.Fatalf("README.md has %d diagrams, want 1", len(diagrams))
	}
	for place, text := range map[string]string{"the diagram of README.md": diagrams[0], "the description of the CSV": base.Spec.Description, "the warning of NOTES.txt": warning} {
		for _, definition := range definitions(t) {
			kind := definition.Spec.Names.Kind
			if !regexp.MustCompile(`\b` + kind + `(s|es)?\b`).MatchString(text) {
				t.Errorf("%s does not name %s", place, kind)
			}
		}
	}
}

func TestHelmCommandsNameReleaseChartAndNamespace(t *testing.T) {
	want := regexp.MustCompile(`^helm (install|upgrade) private-cloud-operator charts/private-cloud-operator -n private-cloud-operator-system `)
	command := regexp.MustCompile("(?m)(?:^|`)(helm (?:install|upgrade) [^`\n]+)")
	found := 0
	for _, page := range pages(t) {
		for _, match := range command.FindAllStringSubmatch(read(t, page), -1) {
			if regexp.MustCompile(`^helm (install|upgrade) --\w+$`).MatchString(match[1]) {
				continue // It names an option, and is no command to be run.
			}
			found++
			if !want.MatchString(match[1] + " ") {
				t.Errorf("%s: %q does not begin like the other commands", page, match[1])
			}
			if strings.Contains(match[1], "upgrade") && !strings.Contains(match[1], "--reset-then-reuse-values") {
				t.Errorf("%s: %q lacks --reset-then-reuse-values", page, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("found no command")
	}
}
