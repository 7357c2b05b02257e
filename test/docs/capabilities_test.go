package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/privatecloud/operator/internal/cloud"
)

// unlisted are capabilities that a cloud has with others, or that only clouds of other types than REST have.
var unlisted = []cloud.Capability{cloud.Sizing, cloud.PowerAtCreate, cloud.NetworkAttach, cloud.NoStatus, cloud.ExclusiveNames, cloud.Flavors}

func TestCapabilitiesAreWhereUsersAndCloudsLook(t *testing.T) {
	constants := capabilityConstants(t)
	listed := listedIn(t, "internal/cloud/rest/capabilities.go", "listed", constants)
	for _, capability := range constants {
		if slices.Contains(listed, capability) == slices.Contains(unlisted, capability) {
			t.Errorf("%s: the client of the REST API knows it: %t, want the contrary of unlisted", capability, slices.Contains(listed, capability))
		}
	}
	var enum []string
	for _, definition := range definitions(t) {
		if definition.Spec.Names.Kind == "Cloud" {
			schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
			rest := schema.Properties["spec"].Properties["rest"]
			for field, most := range map[string]*int64{
				"spec.rest.capabilities": rest.Properties["capabilities"].MaxItems, "status.capabilities": schema.Properties["status"].Properties["capabilities"].MaxItems,
			} {
				if most == nil || *most < int64(len(constants)) {
					t.Errorf("%s of a Cloud has no room for all %d capabilities", field, len(constants))
				}
			}
			for _, value := range rest.Properties["capabilities"].Items.Schema.Enum {
				enum = append(enum, string(value.Raw))
			}
		}
	}
	document := regexp.MustCompile(`(?m)enum: \[idempotency.*\]`).FindString(read(t, "mockcloud/openapi.yaml"))
	for _, capability := range listed {
		if name := string(capability); !slices.Contains(enum, `"`+name+`"`) {
			t.Errorf("spec.rest.capabilities of a Cloud cannot be %s", name)
		} else if !regexp.MustCompile(`\b` + name + `\b`).MatchString(document) {
			t.Errorf("mockcloud/openapi.yaml does not have %s among the capabilities", name)
		}
		for _, page := range []string{"docs/cloud-api.md", "docs/cloud.md"} {
			if !explained(read(t, page), string(capability)) {
				t.Errorf("%s does not have `%s`", page, capability)
			}
		}
	}
}

func TestFieldsOfAServerAreExplainedToClouds(t *testing.T) {
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "mockcloud/openapi.yaml")), &document); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(read(t, "docs/cloud-api.md"), "**Server.**")
	text, _, _ = strings.Cut(text, "An id has")
	explained, fields := codes(text), document.Components.Schemas["Server"].Properties
	if len(explained) == 0 || len(fields) == 0 {
		t.Fatalf("%d words on the page, %d fields in the document", len(explained), len(fields))
	}
	for field := range fields {
		if !slices.Contains(explained, field) {
			t.Errorf("docs/cloud-api.md, Server, does not have `%s`", field)
		}
	}
}
