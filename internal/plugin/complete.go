package plugin

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// completionTimeout bounds how long a shell waits for proposals.
	completionTimeout = 5 * time.Second
	// maxProposals bounds how many names a shell gets.
	maxProposals = 1000
)

// Kinds returns the resources of the operator but Clouds, as users name them.
func Kinds() []string {
	return []string{"gpuinfo", "network", "vm", "vmclass", "vmgroup", "vmsnapshot"}
}

// resources are the resources whose names can be proposed.
var resources = map[string]string{
	"cloud": "Cloud", "gpuinfo": "GPUInfo", "network": "Network", "vm": "VM", "vmclass": "VMClass", "vmconsolerequest": "VMConsoleRequest", "vmgroup": "VmGroup", "vmsnapshot": "VMSnapshot",
}

// shortNames are the short names of resources, as the CRDs have them.
var shortNames = map[string]string{"gpu": "gpuinfo", "vg": "vmgroup"}

// Resource returns the resource of the operator that a user names in the singular, in the plural, with the API group or
// by its short name, in upper or lower case; empty if there is none.
func Resource(text string) string {
	text = strings.TrimSuffix(strings.ToLower(text), "."+pcapi.GroupVersion.Group)
	if resource, short := shortNames[text]; short {
		return resource
	}
	for resource := range resources {
		plural := resource + "s"
		if strings.HasSuffix(resource, "s") {
			plural = resource + "es"
		}
		if text == resource || text == plural {
			return resource
		}
	}
	return ""
}

// CompleteNames proposes names of objects of one of the resources of Kinds, or of "cloud",
// as the only argument of a command.
func (e *Env) CompleteNames(resource string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return e.NamesOf(cmd.Context(), resource, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteObjects proposes the resources of a command whose arguments are KIND/NAME or KIND NAME, and the names of
// objects after a resource.
func (e *Env) CompleteObjects(resources ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		of, name, slash := strings.Cut(prefix, "/")
		switch {
		case len(args) == 1 && !strings.Contains(args[0], "/"):
			return e.NamesOf(cmd.Context(), args[0], prefix), cobra.ShellCompDirectiveNoFileComp
		case len(args) > 0:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case slash:
			names := e.NamesOf(cmd.Context(), of, name)
			for i := range names {
				names[i] = of + "/" + names[i]
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		}
		var kinds []string
		for _, resource := range resources {
			if strings.HasPrefix(resource, prefix) {
				kinds = append(kinds, resource+"/")
			}
		}
		return kinds, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// NamesOf returns the names of objects of a resource that begin with a prefix, sorted, at
// most a thousand. It returns none if they cannot be read: a shell shows no errors.
func (e *Env) NamesOf(ctx context.Context, resource, prefix string) []string {
	kind, known := resources[Resource(resource)]
	if !known {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(pcapi.GroupVersion.WithKind(kind + "List"))
	namespace := ""
	if kind != "Cloud" && kind != "VMClass" {
		var err error
		if namespace, err = e.Namespace(); err != nil {
			return nil
		}
	}
	return e.names(ctx, list, prefix, client.InNamespace(namespace))
}

// AddFlagCompletions lets the flags that name namespaces and Clouds propose them.
func (e *Env) AddFlagCompletions(root *cobra.Command) {
	cobra.CheckErr(root.RegisterFlagCompletionFunc("namespace", e.CompleteNamespaces))
	for name, of := range map[string]func() ([]string, error){"context": e.contexts, "cluster": e.clusters, "user": e.users} {
		cobra.CheckErr(root.RegisterFlagCompletionFunc(name, func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			names, err := of()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return withPrefix(names, prefix), cobra.ShellCompDirectiveNoFileComp
		}))
	}
}

// CompleteClouds proposes Clouds for a flag.
func (e *Env) CompleteClouds(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return e.NamesOf(cmd.Context(), "cloud", prefix), cobra.ShellCompDirectiveNoFileComp
}

// CompleteNamespaces proposes namespaces for a flag.
func (e *Env) CompleteNamespaces(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	return e.names(cmd.Context(), list, prefix), cobra.ShellCompDirectiveNoFileComp
}

func (e *Env) names(ctx context.Context, list *metav1.PartialObjectMetadataList, prefix string, options ...client.ListOption) []string {
	c, err := e.Client()
	if err != nil {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	var names []string
	for len(names) < maxProposals {
		page := append([]client.ListOption{client.Limit(pageSize), client.Continue(list.Continue)}, options...)
		if err := c.List(ctx, list, page...); err != nil {
			break
		}
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, prefix) {
				names = append(names, list.Items[i].Name)
			}
		}
		if list.Continue == "" {
			break
		}
	}
	slices.Sort(names)
	return names[:min(len(names), maxProposals)]
}

func (e *Env) contexts() ([]string, error) {
	config, err := e.Config.ToRawKubeConfigLoader().RawConfig()
	return sortedKeys(config.Contexts), err
}

func (e *Env) clusters() ([]string, error) {
	config, err := e.Config.ToRawKubeConfigLoader().RawConfig()
	return sortedKeys(config.Clusters), err
}

func (e *Env) users() ([]string, error) {
	config, err := e.Config.ToRawKubeConfigLoader().RawConfig()
	return sortedKeys(config.AuthInfos), err
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

func withPrefix(names []string, prefix string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
}
