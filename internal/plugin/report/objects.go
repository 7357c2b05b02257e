package report

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin"
)

// operatorLabel is on all objects of the operator itself.
var operatorLabel = client.MatchingLabels{"app.kubernetes.io/name": "private-cloud-operator"}

// resource is a kind whose objects are collected.
type resource struct {
	// name is that of the file.
	name string
	kind schema.GroupVersionKind
	// keep reports whether an object is collected; nil for all.
	keep func(*unstructured.Unstructured) bool
	// reduce removes what support does not need; nil for nothing.
	reduce func(map[string]any)
}

var ownKinds = []resource{
	{name: "clouds", kind: own("Cloud")}, {name: "vmclasses", kind: own("VMClass")}, {name: "vmgroups", kind: own("VmGroup")},
	{name: "vms", kind: own("VM")}, {name: "vmsnapshots", kind: own("VMSnapshot")}, {name: "vmconsolerequests", kind: own("VMConsoleRequest")},
	{name: "networks", kind: own("Network")},
	{name: "gpuinfos", kind: own("GPUInfo")},
}

func own(kind string) schema.GroupVersionKind { return pcapi.GroupVersion.WithKind(kind) }

// learnEndpoints reads the Clouds, so that their hosts are found in texts.
func (c *collection) learnEndpoints(ctx context.Context) error {
	err := plugin.Each(ctx, c.from.client, &pcapi.CloudList{}, func(found *pcapi.Cloud) error {
		c.redact.hide(found.Spec.Endpoint)
		return nil
	})
	if meta.IsNoMatchError(err) {
		return nil // without the kind, there is no Cloud
	}
	return err
}

func (c *collection) objects(ctx context.Context) error {
	for _, r := range ownKinds {
		if err := c.list(ctx, "objects/"+r.name+".json", r, client.InNamespace(c.namespaceOf(r))); err != nil {
			return err
		}
	}
	return nil
}

func (c *collection) namespaceOf(r resource) string {
	if r.kind.Kind == "Cloud" || r.kind.Kind == "VMClass" {
		return ""
	}
	return c.namespace
}

// crds writes which versions of the kinds the cluster has, without their schemas. They are
// read one by one, because all CRDs of a cluster may be large.
func (c *collection) crds(ctx context.Context) error {
	return c.file(ctx, "crds.json", func(out io.Writer) (int, error) {
		var items []any
		var failed []error
		for _, r := range ownKinds {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
			if err := c.from.client.Get(ctx, client.ObjectKey{Name: r.name + "." + pcapi.GroupVersion.Group}, o); err != nil {
				failed = append(failed, err)
				continue
			}
			withoutSchemas(o.Object)
			items = append(items, c.redact.object(o.Object))
		}
		if err := writeJSON(out, map[string]any{"apiVersion": "v1", "kind": "List", "items": items}); err != nil {
			return 0, err
		}
		return len(items), errors.Join(failed...)
	})
}

// withoutSchemas leaves of the spec of a CRD what its versions are.
func withoutSchemas(crd map[string]any) {
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	for _, version := range versions {
		if v, ok := version.(map[string]any); ok {
			delete(v, "schema")
			delete(v, "additionalPrinterColumns")
		}
	}
	crd["spec"] = map[string]any{"versions": versions}
}

// events collects those about objects of the operator. Those about Clouds are in the namespace
// default.
func (c *collection) events(ctx context.Context) error {
	return c.list(ctx, "events.json", resource{
		name: "events", kind: schema.GroupVersionKind{Version: "v1", Kind: "Event"},
		keep: func(o *unstructured.Unstructured) bool {
			group, _, _ := unstructured.NestedString(o.Object, "involvedObject", "apiVersion")
			return strings.HasPrefix(group, pcapi.GroupVersion.Group+"/")
		},
	}, client.InNamespace(c.namespace))
}

// operatorObjects collects what the operator runs as.
func (c *collection) operatorObjects(ctx context.Context) error {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	for _, r := range []resource{
		{name: "deployments", kind: apps.WithKind("Deployment")},
		{name: "replicasets", kind: apps.WithKind("ReplicaSet")},
		{name: "pods", kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}},
	} {
		if err := c.list(ctx, "operator/"+r.name+".json", r, client.InNamespace(c.operatorNamespace), operatorLabel); err != nil {
			return err
		}
	}
	err := c.list(ctx, "operator/events.json", resource{
		name: "events", kind: schema.GroupVersionKind{Version: "v1", Kind: "Event"},
		keep: func(o *unstructured.Unstructured) bool { // other workloads may run in the namespace
			name, _, _ := unstructured.NestedString(o.Object, "involvedObject", "name")
			return strings.HasPrefix(name, "private-cloud-operator")
		},
	}, client.InNamespace(c.operatorNamespace))
	if err != nil {
		return err
	}
	// A CSV is found by its name: its labels are those of OLM.
	return c.list(ctx, "operator/clusterserviceversions.json", resource{
		name: "clusterserviceversions", kind: schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion"},
		keep: func(o *unstructured.Unstructured) bool {
			return strings.HasPrefix(o.GetName(), "private-cloud-operator")
		},
		reduce: func(o map[string]any) { delete(o, "spec") },
	}, client.InNamespace(c.operatorNamespace))
}

// list writes the objects of a resource as a List, one a line, a page at a time.
func (c *collection) list(ctx context.Context, name string, r resource, options ...client.ListOption) error {
	return c.file(ctx, name, func(out io.Writer) (int, error) {
		buffered := bufio.NewWriter(out)
		n, err := c.items(ctx, buffered, name, r, options...)
		return n, errors.Join(err, buffered.Flush())
	})
}

func (c *collection) items(ctx context.Context, out io.Writer, name string, r resource, options ...client.ListOption) (int, error) {
	if _, err := io.WriteString(out, `{"apiVersion":"v1","kind":"List","items":[`); err != nil {
		return 0, err
	}
	n := 0
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
	failed := plugin.Each(ctx, c.from.client, list, func(o *unstructured.Unstructured) error {
		if r.keep != nil && !r.keep(o) {
			return nil
		}
		separator := ",\n"
		if n == 0 {
			separator = "\n"
		}
		n++
		if n%progressEvery == 0 {
			fmt.Fprintf(c.progress, "%s: %d so far\n", name, n)
		}
		if r.reduce != nil {
			r.reduce(o.Object)
		}
		text, err := json.Marshal(c.redact.object(o.Object))
		if err != nil {
			return fmt.Errorf("write %s: %w", o.GetName(), err)
		}
		_, err = out.Write(append([]byte(separator), text...))
		return err
	}, options...)
	if meta.IsNoMatchError(failed) {
		failed = fmt.Errorf("the cluster has no kind %s", r.kind.Kind)
	}
	if failed != nil && n > 0 {
		failed = fmt.Errorf("incomplete after %d: %w", n, failed)
	}
	if _, err := io.WriteString(out, "\n]}\n"); err != nil {
		return n, err
	}
	return n, failed
}
