package field

import (
	"maps"
	"slices"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// Tags are the tags.
var Tags = Field{
	Lacking: lacksTags,
	Create: func(vm *pcapi.VM, in Context, req *cloud.CreateServer) {
		if in.Capabilities.Has(cloud.Labels) && len(vm.Spec.Tags) > 0 {
			if req.Labels == nil {
				req.Labels = map[string]string{}
			}
			maps.Copy(req.Labels, tagLabels(vm))
		}
	},
	Change: tagChange,
	Drift: func(vm *pcapi.VM, _ cloud.Server, caps cloud.Capabilities) error {
		return Lacks(lacksTags(vm, caps)...)
	},
	Shown: func(vm *pcapi.VM, server *cloud.Server) { maps.Copy(server.Labels, tagLabels(vm)) },
	DescribeCreate: func(vm *pcapi.VM, _ cloud.CreateServer) (parts []string) {
		for _, key := range slices.Sorted(maps.Keys(vm.Spec.Tags)) {
			parts = append(parts, tagText(key, string(vm.Spec.Tags[key])))
		}
		return parts
	},
	DescribeUpdate: func(_ cloud.Server, update cloud.Update) (parts []string) {
		labels := update.Of(cloud.LabelPart)
		for _, change := range labels {
			switch change := change.(type) {
			case cloud.SetLabel:
				if change.Key != inventory.TagsLabel {
					parts = append(parts, tagText(change.Key, change.Value))
				}
			case cloud.RemoveLabel:
				if change != inventory.TagsLabel {
					parts = append(parts, "without tag "+approval.Quoted(string(change)))
				}
			}
		}
		if len(parts) == 0 && len(labels) > 0 {
			parts = []string{"the list of its tags"}
		}
		return parts
	},
}

func lacksTags(vm *pcapi.VM, caps cloud.Capabilities) []string {
	return when(len(vm.Spec.Tags) > 0 && !caps.Has(cloud.Labels), "tags")
}

func tagText(key, value string) string { return "tag " + approval.Quoted(key+"="+value) }

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

// tagChange returns the changes of labels by which a server gets the tags of the spec, in the order of their keys.
func tagChange(vm *pcapi.VM, server cloud.Server) (update cloud.Update) {
	if _, tagged := server.Labels[inventory.TagsLabel]; !tagged && len(vm.Spec.Tags) == 0 {
		return nil
	}
	want := tagLabels(vm)
	keys := append(slices.Collect(maps.Keys(want)), inventory.TagsLabel)
	keys = append(keys, inventory.TagKeys(server.Labels)...)
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		value, wanted := want[key]
		switch has, ok := server.Labels[key]; {
		case wanted && (!ok || has != value):
			update = append(update, cloud.SetLabel{Key: key, Value: value})
		case !wanted && ok:
			update = append(update, cloud.RemoveLabel(key))
		}
	}
	return update
}
