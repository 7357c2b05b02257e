package field

import (
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

// Two updates are compared by their texts, so that equal ones have the same order.
func TestTagsChangeInTheOrderOfTheirKeys(t *testing.T) {
	vm := vmWith(func(vm *pcapi.VM) { vm.Spec.Tags = pcapi.VMTags{"d": "1", "b": "1", "a": "1", "kept": "1"} })
	labels := map[string]string{"other": "x"}
	inventory.WithTags(labels, map[string]string{"e": "0", "c": "0", "b": "0", "kept": "1"})
	want := cloud.Update{
		cloud.SetLabel{Key: "a", Value: "1"}, cloud.SetLabel{Key: "b", Value: "1"}, cloud.RemoveLabel("c"), cloud.SetLabel{Key: "d", Value: "1"}, cloud.RemoveLabel("e"),
		cloud.SetLabel{Key: inventory.TagsLabel, Value: "a,b,d,kept"},
	}
	for range 10 { // maps have no order
		equal(t, "changes", want, tagChange(vm, cloud.Server{Labels: labels}))
	}
}
