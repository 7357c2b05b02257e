package vm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// tagLabels returns the labels of a server that has the tags of the spec; nil without tags.
func tagLabels(vm *pcapi.VM) map[string]string {
	if len(vm.Spec.Tags) == 0 {
		return nil
	}
	tags := make(map[string]string, len(vm.Spec.Tags))
	for key, value := range vm.Spec.Tags {
		tags[key] = string(value)
	}
	labels := make(map[string]string, len(tags)+1)
	inventory.WithTags(labels, tags)
	return labels
}

// tagChange returns the labels that are to be set or removed for a server to have the tags of
// the spec; nil if it has them.
func tagChange(vm *pcapi.VM, server cloud.Server) map[string]*string {
	if _, tagged := server.Labels[inventory.TagsLabel]; !tagged && len(vm.Spec.Tags) == 0 {
		return nil
	}
	change := map[string]*string{}
	want := tagLabels(vm)
	for key, value := range want {
		if has, ok := server.Labels[key]; !ok || has != value {
			change[key] = &value
		}
	}
	for _, key := range append(inventory.TagKeys(server.Labels), inventory.TagsLabel) {
		_, wanted := want[key]
		if _, has := server.Labels[key]; has && !wanted {
			change[key] = nil
		}
	}
	if len(change) == 0 {
		return nil
	}
	return change
}

// tagDrift returns the outcome for tags that the cloud cannot have; nil otherwise.
func tagDrift(vm *pcapi.VM, caps cloud.Capabilities) error {
	if len(vm.Spec.Tags) == 0 || caps == nil || caps.Has(cloud.Labels) {
		return nil
	}
	return lacks([]string{"tags"})
}

// labelsText returns a change of labels as a text by which two changes can be compared.
func labelsText(change map[string]*string) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(change)) {
		_, _ = fmt.Fprintf(&text, "%q=%q ", key, deref(change[key]))
	}
	return text.String()
}
