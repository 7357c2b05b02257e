package cloudtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// withoutCases are the capabilities without a case for clouds that have them.
var withoutCases = cloud.NewCapabilities(cloud.Async, cloud.Sessions, cloud.NoStatus, cloud.ExclusiveNames)

func TestEachCapabilityHasACase(t *testing.T) {
	needed := Needed()
	for _, capability := range capabilities(t) {
		if needed.Has(capability) == withoutCases.Has(capability) {
			t.Errorf("%s: a case needs it: %t; withoutCases has it: %t, want one of them", capability, needed.Has(capability), withoutCases.Has(capability))
		}
	}
}

// always are the fields of a create that need no capability.
var always = []string{"Name", "IdempotencyKey", "First"}

// Creates has each field, so that the recorded requests show how each client sends it. A cloud that lacks a field refuses it.
func TestEachFieldOfACreateIsRecordedAndRefused(t *testing.T) {
	recorded, refused := map[string]bool{}, map[string]bool{}
	for _, req := range Creates([]string{"a", "b"}, "z", "t") {
		addFields(recorded, req)
	}
	for _, c := range refuseCases {
		addFields(refused, c.create)
	}
	for field := range reflect.TypeFor[cloud.CreateServer]().Fields() {
		if slices.Contains(always, field.Name) {
			continue
		}
		if !recorded[field.Name] {
			t.Errorf("Creates has no request with %s", field.Name)
		}
		if !refused[field.Name] {
			t.Errorf("no case of refuseCases has a create with %s", field.Name)
		}
	}
}

// addFields adds the names of the fields that are not zero.
func addFields(names map[string]bool, req cloud.CreateServer) {
	for field, value := range reflect.ValueOf(req).Fields() {
		if !value.IsZero() {
			names[field.Name] = true
		}
	}
}

// capabilities returns the values of the constants.
func capabilities(t *testing.T) []cloud.Capability {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../capabilities.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []cloud.Capability
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, cloud.Capability(text))
		}
		return true
	})
	const least = 30
	if len(found) < least {
		t.Fatalf("found %d capabilities, want at least %d", len(found), least)
	}
	return found
}
