package v1alpha1_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// schemaField is a field of a CRD, with what the API server checks of its value.
type schemaField struct {
	kind string
	// path is from spec or status on; [] is an item of a list, {} the value of a map.
	path   []string
	schema validation.SchemaValidator
	rules  *cel.Validator
}

func (f schemaField) String() string { return f.kind + " " + strings.Join(f.path, ".") }

// fieldsOfCRDs returns all fields of all CRDs. The API server itself decodes metadata.
func fieldsOfCRDs(t testing.TB) []schemaField {
	t.Helper()
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("the CRDs: %v, %v", files, err)
	}
	var all []schemaField
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, version := range crd.Spec.Versions {
			var whole apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &whole, nil); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, part := range []string{"spec", "status"} {
				if props, ok := whole.Properties[part]; ok {
					all = appendFields(t, all, crd.Spec.Names.Kind, []string{part}, props)
				}
			}
		}
	}
	return all
}

func appendFields(t testing.TB, all []schemaField, kind string, path []string, props apiextensions.JSONSchemaProps) []schemaField {
	t.Helper()
	f := schemaField{kind: kind, path: path}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		t.Fatalf("%s: %v", f, err)
	}
	if f.schema, _, err = validation.NewSchemaValidator(&props); err != nil {
		t.Fatalf("%s: %v", f, err)
	}
	f.rules = cel.NewValidator(structural, false, celconfig.PerCallLimit)
	all = append(all, f)
	below := func(name string) []string { return append(slices.Clip(path), name) }
	for name, property := range props.Properties {
		all = appendFields(t, all, kind, below(name), property)
	}
	if props.Items != nil && props.Items.Schema != nil {
		all = appendFields(t, all, kind, below("[]"), *props.Items.Schema)
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		all = appendFields(t, all, kind, below("{}"), *props.AdditionalProperties.Schema)
	}
	return all
}

// refusal returns why the API server refuses a value of the field, nil if it accepts it.
func (f schemaField) refusal(t testing.TB, value any) error {
	t.Helper()
	at := field.NewPath(strings.Join(f.path, "."))
	found := validation.ValidateCustomResource(at, value, f.schema)
	if f.rules != nil {
		broken, _ := f.rules.Validate(t.Context(), at, nil, value, nil, celconfig.RuntimeCELCostBudget)
		found = append(found, broken...)
	}
	return found.ToAggregate()
}

var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

// decode decodes an object whose field has a value, as a cache does what the API server stored.
func (f schemaField) decode(t testing.TB, value any) error {
	t.Helper()
	for _, name := range slices.Backward(f.path) {
		switch name {
		case "[]":
			value = []any{value}
		case "{}":
			value = map[string]any{"key": value}
		default:
			value = map[string]any{name: value}
		}
	}
	object := value.(map[string]any)
	object["apiVersion"], object["kind"] = pcapi.GroupVersion.String(), f.kind
	stored, err := json.Marshal(object)
	if err != nil {
		t.Fatalf("%s: %v", f, err)
	}
	decoded, _, err := decoder.Decode(stored, nil, nil)
	if err != nil {
		return err
	}
	again, err := json.Marshal(decoded)
	if err != nil {
		return fmt.Errorf("what was decoded cannot be encoded: %w", err)
	}
	if _, _, err := decoder.Decode(again, nil, nil); err != nil {
		return fmt.Errorf("what was encoded cannot be decoded: %w", err)
	}
	return nil
}

// texts are forms of times, durations, quantities and numbers that some program reads.
var texts = []string{
	"", " ", "x", "true", "null", "0", "00", "1", "-1", "+1", "1.5", ".5", "5.", "1e3", "1e1.5", "1e99", "1E", "1e+3", "0x10", "NaN", "٣",
	"2147483648", "9223372036854775807", "9223372036854775808", "99999999999999999999", "50%", "101%", "-5%",
	"512Mi", "1Gi", "1.5Gi", "1024Ki", "1k", "1m", "1u", "1n", "64Ti", "65Ti", "8Ei", "9Ei", "99999Ei", "1 Gi", "1GiB", "1gi", ".Gi", "+1Gi", "-1Gi", "1e3Gi", "0Mi", "1e-3",
	"0s", "0.1s", "1s", "5m", "1h", "24h", "168h", "1h30m", "1h0m0s", "1.5h", "1.000000001s", "500ms", "1500ms", "2us", "2µs", "2ns", "-1s", "+1s", "1h-1m", "1S", "1H", "1 h",
	"7d", "1d", "1w", "1y", "90", "30", "P7D", "PT1H", "1d12h", "1h1", "h", ".s", "1..5s", "1.h", ".5h", "99999h", "100000h", "2562047h48m", "9999999999h", "999999h999999h999999h",
	"1000000000000000000000000000000s", "9999999999999999999999999999999999999999h",
	"2026-11-27T02:00:00Z", "2026-11-27T02:00:00.1Z", "2026-11-27T02:00:00.123Z", "2026-11-27T02:00:00.123456Z", "2026-11-27T02:00:00.123456789Z", "2026-11-27T02:00:00.1234567890Z",
	"2026-11-27T02:00:00+01:00", "2026-11-27T02:00:00.5-03:30", "2026-11-27T02:00:00-00:00", "2026-11-27T02:00:00.000000Z", "2026-11-27T02:00:00.000000+01:00", "2026-11-27T02:00:00.1234567Z",
	"2026-11-27t02:00:00z", "2026-11-27T02:00:00z", "2026-11-27t02:00:00Z", "2026-11-27T02:00:00+99:99", "2026-11-27T02:00:00+24:00", "2026-11-27T02:00:00+01:60", "2026-11-27T02:00:00+0100", "2026-11-27T02:00:00+01",
	"2026-11-27T02:00:00x5Z", "2026-11-27T02:00:00,5Z", "2026-11-27T02:00:00.Z", "2026-11-27T02:00:00", "2026-11-27", "2026-11-27 02:00:00Z", "2026-11-27T2:00:00Z", "2026-11-27T02:00Z",
	"2026-11-27T02:00:60Z", "2026-11-27T23:59:60Z", "2026-11-27T24:00:00Z", "2026-11-27T02:60:00Z", "2026-02-29T02:00:00Z", "2024-02-29T02:00:00Z", "2026-02-30T02:00:00Z", "2026-13-01T02:00:00Z", "2026-00-10T02:00:00Z", "2026-04-31T02:00:00Z",
	"2026-11-27T02:00:00Ztext", "2026-11-27T02:00:00ZT", "2026-11-27T02:00:00Z 2", "2026-11-27T02:00:00Z\n", "2026-11-27T02:00:00Z t 02:00:00Z", " 2026-11-27T02:00:00Z", "2026-11-27T02:00:00 Z", "2026-11-27T02:00:00.5tz",
	"0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z", "0000-01-01T00:00:00+23:00", "0000-01-01T00:00:00.000000+23:00", "9999-12-31T23:59:59-23:00", "9999-12-31T23:59:59.999999-23:00", "10000-01-01T00:00:00Z", "+2026-11-27T02:00:00Z", "-2026-11-27T02:00:00Z",
	"1732672800", "1732672800.5", "Fri, 27 Nov 2026 02:00:00 GMT", "now", "tomorrow",
}

// values are texts, and values of the other types of JSON.
func values() []any {
	all := []any{
		nil, true, false, int64(0), int64(1), int64(-1), int64(4), int64(127), int64(1 << 31), int64(-1<<31 - 1), int64(1<<53 + 1), int64(1<<63 - 1), int64(-1 << 63),
		0.0, 1.0, 4.0, 1.5, -1.0, 1e3, 3e9, 1e15, 1e16, 1e19, 1e20, 1e300, 0.1,
		[]any{}, []any{nil}, []any{"x"}, []any{int64(1)}, map[string]any{}, map[string]any{"key": "x"}, map[string]any{"key": nil}, map[string]any{"key": int64(1)},
	}
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

func TestEachAcceptedValueDecodes(t *testing.T) {
	accepted := 0
	for _, f := range fieldsOfCRDs(t) {
		for _, value := range values() {
			if f.refusal(t, value) != nil {
				continue
			}
			accepted++
			if err := f.decode(t, value); err != nil {
				t.Errorf("%s: the API server accepts %#v, which the operator cannot decode: %v", f, value, err)
			}
		}
	}
	if accepted == 0 {
		t.Error("no value was accepted")
	}
}

func FuzzAcceptedTextDecodes(f *testing.F) {
	fields := fieldsOfCRDs(f)
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, field := range fields {
			if field.refusal(t, text) != nil {
				continue
			}
			if err := field.decode(t, text); err != nil {
				t.Errorf("%s: the API server accepts %q, which the operator cannot decode: %v", field, text, err)
			}
		}
	})
}

// pathsOf returns the paths of the fields of a Go type, in all kinds.
func pathsOf(t testing.TB, wanted reflect.Type) map[string]bool {
	t.Helper()
	paths := map[string]bool{}
	for _, object := range []runtime.Object{&pcapi.VM{}, &pcapi.VmGroup{}, &pcapi.Network{}, &pcapi.VMClass{}, &pcapi.VMSnapshot{}, &pcapi.VMConsoleRequest{}, &pcapi.GPUInfo{}, &pcapi.Cloud{}} {
		kind := reflect.TypeOf(object).Elem()
		for _, part := range []string{"Spec", "Status"} {
			if f, ok := kind.FieldByName(part); ok {
				collect(paths, kind.Name()+" "+strings.ToLower(part), f.Type, wanted)
			}
		}
	}
	if len(paths) == 0 {
		t.Fatalf("no field is a %v", wanted)
	}
	return paths
}

func collect(paths map[string]bool, path string, of, wanted reflect.Type) {
	switch {
	case of == wanted:
		paths[path] = true
	case of.Kind() == reflect.Pointer:
		collect(paths, path, of.Elem(), wanted)
	case of.Kind() == reflect.Slice:
		collect(paths, path+".[]", of.Elem(), wanted)
	case of.Kind() == reflect.Map:
		collect(paths, path+".{}", of.Elem(), wanted)
	case of.Kind() == reflect.Struct:
		for member := range of.Fields() {
			if name, _, _ := strings.Cut(member.Tag.Get("json"), ","); name != "" && name != "-" {
				collect(paths, path+"."+name, member.Type, wanted)
			}
		}
	}
}

// fieldsOf returns the fields of the CRDs that have a Go type.
func fieldsOf(t testing.TB, wanted reflect.Type) []schemaField {
	t.Helper()
	paths := pathsOf(t, wanted)
	var found []schemaField
	for _, f := range fieldsOfCRDs(t) {
		if paths[f.String()] {
			found = append(found, f)
		}
	}
	if len(found) != len(paths) {
		t.Fatalf("%d fields of the CRDs are a %v, want %v", len(found), wanted, paths)
	}
	return found
}

func TestDurationInAnotherFormIsRefusedWithOneThatWorks(t *testing.T) {
	for _, f := range fieldsOf(t, reflect.TypeFor[metav1.Duration]()) {
		for _, value := range []string{"7d", "1d", "90", "30", "1w", "1d12h", "P7D", "1 h", "1H", "", "h", "soon", "9999999h", "999999h999999h999999h"} {
			err := f.refusal(t, value)
			if err == nil {
				t.Errorf("%s: %q is accepted", f, value)
				continue
			}
			message := err.Error()
			for _, internal := range []string{"google.protobuf", "type conversion", `"string"`, "evaluating rule"} {
				if strings.Contains(message, internal) {
					t.Errorf("%s: the message has %q in it: %s", f, internal, message)
				}
			}
			_, example, _ := strings.Cut(message, ", such as ")
			if !strings.Contains(message, fmt.Sprintf("%q", value)) || f.refusal(t, example) != nil {
				t.Errorf("%s: the message does not show the value and a form that works: %s", f, message)
			}
		}
	}
}

func TestDurationInTheFormOfGoIsAccepted(t *testing.T) {
	for _, f := range fieldsOf(t, reflect.TypeFor[metav1.Duration]()) {
		accepted := 0
		for _, d := range []time.Duration{0, time.Millisecond, 1500 * time.Millisecond, time.Second, time.Second + 1, time.Minute, 90 * time.Second, time.Hour, time.Hour + time.Minute + time.Second/2, 24 * time.Hour, 10000 * time.Hour} {
			switch err := f.refusal(t, d.String()); {
			case err == nil:
				accepted++
			case d >= time.Second && d <= time.Hour:
				t.Errorf("%s: %v is refused: %v", f, d, err)
			}
		}
		if accepted == 0 {
			t.Errorf("%s: no duration is accepted", f)
		}
	}
}

func TestTimeInTheFormsOfProgramsIsAccepted(t *testing.T) {
	for _, f := range fieldsOf(t, reflect.TypeFor[metav1.Time]()) {
		for _, value := range []string{"2026-11-27T02:00:00Z", "2026-11-27T02:00:00.1Z", "2026-11-27T02:00:00.123Z", "2026-11-27T02:00:00.123456+00:00", "2026-11-27T02:00:00.123456789+05:30", "2024-02-29T23:59:59-11:00"} {
			if err := f.refusal(t, value); err != nil {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
}

func TestTimeInAnotherFormIsRefusedWithOneThatWorks(t *testing.T) {
	for _, f := range fieldsOf(t, reflect.TypeFor[metav1.Time]()) {
		for _, value := range []string{"2026-11-27t02:00:00z", "2026-11-27T02:00:00+99:99", "2026-11-27T02:00:00x5Z", "2026-11-27T02:00:60Z", "2026-11-27T02:00:00Z t", "tomorrow", "2026-11-27"} {
			if err := f.refusal(t, value); err == nil || !strings.Contains(err.Error(), value) || !strings.Contains(err.Error(), "2026-01-31T08:00:00Z") {
				t.Errorf("%s: %q: got %v, want a refusal that shows the value and 2026-01-31T08:00:00Z", f, value, err)
			}
		}
	}
}
