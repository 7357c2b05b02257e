package docs_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

const (
	contract = "docs/development/backend-contract.md"
	// maxContract is how many lines of a contract are read.
	maxContract = 100
)

// ofTheOperator are the interfaces of internal/cloud that the operator implements, not a backend.
var ofTheOperator = []string{"ServerChange", "ServerSink"}

func TestContractNamesEachMethodOfABackend(t *testing.T) {
	page := read(t, contract)
	if lines := strings.Count(page, "\n"); lines > maxContract {
		t.Errorf("%s has %d lines, want at most %d", contract, lines, maxContract)
	}
	found := 0
	for kind, methods := range interfacesOf(t, "internal/cloud") {
		if slices.Contains(ofTheOperator, kind) {
			continue
		}
		for _, name := range append(methods, kind) {
			found++
			if !explained(page, name) {
				t.Errorf("%s does not have `%s` of cloud.%s", contract, name, kind)
			}
		}
	}
	const least = 40
	if found < least {
		t.Errorf("found %d interfaces and methods, want at least %d", found, least)
	}
}

// interfacesOf returns the methods of each interface of a package, without those that
// it embeds.
func interfacesOf(t *testing.T, folder string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, file := range packages(t)[folder] {
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if definition, ok := spec.Type.(*ast.InterfaceType); ok && ast.IsExported(spec.Name.Name) {
				found[spec.Name.Name] = namesOf(definition.Methods)
			}
			return false
		})
	}
	if len(found) == 0 {
		t.Fatalf("%s has no interfaces", folder)
	}
	return found
}

// namesOf returns the names of fields or methods.
func namesOf(list *ast.FieldList) []string {
	var names []string
	for _, field := range list.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}
