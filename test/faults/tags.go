package faults

import (
	"fmt"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/mockcloud"
)

func withTags(vm *pcapi.VM) { vm.Spec.Tags = map[string]pcapi.TagValue{"env": "prod", "team": "a"} }

// changeTags changes a tag of a VM, removes one and adds one.
var changeTags = edit(vm, `{"spec":{"tags":{"env":"test","team":null,"rack":"7"}}}`)

// tagViolations compares the labels of a server that are not those of its owner with the tags
// of its VM. Nobody else sets labels in the scenarios.
func tagViolations(vm *pcapi.VM, server mockcloud.Server) []string {
	var wrong []string
	for key, value := range vm.Spec.Tags {
		if server.Labels[key] != string(value) {
			wrong = append(wrong, fmt.Sprintf("the tag %s of server %s is %q, not %q", key, server.Name, server.Labels[key], value))
		}
	}
	for key := range server.Labels {
		_, wanted := vm.Spec.Tags[key]
		if !wanted && (!strings.Contains(key, "/") || key == inventory.TagsLabel && len(vm.Spec.Tags) == 0) {
			wrong = append(wrong, fmt.Sprintf("server %s has the label %s, and its VM no such tag", server.Name, key))
		}
	}
	return wrong
}
