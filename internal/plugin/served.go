package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/discovery"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const upgrade = "upgrade the operator: https://github.com/privatecloud/operator/blob/main/docs/install.md#upgrade"

// RequireField fails if the CRD of a kind in the cluster has no such field, because the
// operator there is older than the plugin. The path is that of a manifest, such as
// "spec", "template". It needs no right: every user may read the document of the API.
func (e *Env) RequireField(kind string, path ...string) error {
	client, err := e.Config.ToDiscoveryClient()
	if err != nil {
		return fmt.Errorf("read which kinds the cluster has: %w", err)
	}
	return requireField(client, kind, path...)
}

// groupKind says which kind a schema is of.
type groupKind struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
}

// schema is what is read of a schema of OpenAPI.
type schema struct {
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
	Kinds      []groupKind       `json:"x-kubernetes-group-version-kind"`
}

func requireField(client discovery.OpenAPIV3SchemaInterface, kind string, path ...string) error {
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return fmt.Errorf("read which kinds the cluster has: %w", err)
	}
	group, served := paths["apis/"+pcapi.GroupVersion.String()]
	if !served {
		return errors.New(noOperator)
	}
	text, err := group.Schema("application/json")
	if err != nil {
		return fmt.Errorf("read the fields of %s: %w", kind, err)
	}
	var document struct {
		Components struct {
			Schemas map[string]schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("read the fields of %s: %w", kind, err)
	}
	for _, s := range document.Components.Schemas {
		if !slices.ContainsFunc(s.Kinds, func(k groupKind) bool { return k == groupKind{pcapi.GroupVersion.Group, kind} }) {
			continue
		}
		if s.has(path) {
			return nil
		}
		return fmt.Errorf("the operator of this cluster is older than this plugin, and its %s has no field %s: %s", kind, strings.Join(path, "."), upgrade)
	}
	return errors.New(olderOperator(kind))
}

// has reports whether a schema has a field. Schemas of CRDs have no references.
func (s schema) has(path []string) bool {
	if len(path) == 0 {
		return true
	}
	if s.Items != nil {
		return s.Items.has(path)
	}
	field, ok := s.Properties[path[0]]
	return ok && field.has(path[1:])
}

const noOperator = "the operator is not installed in this cluster: check --context, or install it: https://github.com/privatecloud/operator/blob/main/docs/install.md"

func olderOperator(kind string) string {
	return fmt.Sprintf("the operator of this cluster is older than this plugin, and has no kind %s: %s", kind, upgrade)
}

// unknownKind says why the cluster does not have a kind of the operator.
func (e *Env) unknownKind(kind string) string {
	client, err := e.Config.ToDiscoveryClient()
	if err == nil {
		groups, err := client.ServerGroups()
		if err == nil {
			for i := range groups.Groups {
				if groups.Groups[i].Name == pcapi.GroupVersion.Group {
					return olderOperator(kind)
				}
			}
		}
	}
	return noOperator
}
