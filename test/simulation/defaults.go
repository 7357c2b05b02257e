package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// defaults are the schemas of the CRDs, whose default values a new object gets.
type defaults map[schema.GroupVersionKind]*structuralschema.Structural

// readDefaults reads the CRDs in a folder.
func readDefaults(folder string) (defaults, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no CRDs in %s: %w", folder, err)
	}
	all := defaults{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a CRD: %w", err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		for _, version := range crd.Spec.Versions {
			var internal apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &internal, nil); err != nil {
				return nil, fmt.Errorf("read the schema in %s: %w", file, err)
			}
			structural, err := structuralschema.NewStructural(&internal)
			if err != nil {
				return nil, fmt.Errorf("read the schema in %s: %w", file, err)
			}
			all[schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}] = structural
		}
	}
	return all, nil
}

// apply sets the defaults of a new object, which has no status.
func (d defaults) apply(gvk schema.GroupVersionKind, obj client.Object) error {
	structural := d[gvk]
	if structural == nil {
		return nil
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("encode %s: %w", gvk.Kind, err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("decode %s: %w", gvk.Kind, err)
	}
	delete(fields, "status")
	defaulting.Default(fields, structural)
	if text, err = json.Marshal(fields); err != nil {
		return fmt.Errorf("encode %s: %w", gvk.Kind, err)
	}
	field(obj, "Status").SetZero()
	if err := json.Unmarshal(text, obj); err != nil {
		return fmt.Errorf("decode %s: %w", gvk.Kind, err)
	}
	return nil
}
