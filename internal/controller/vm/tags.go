package vm

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
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

// tagDrift returns the outcome for tags that the cloud cannot have or refused lately; nil
// otherwise.
func tagDrift(vm *pcapi.VM, obs *observation) error {
	switch caps := obs.Capabilities(); {
	case caps == nil:
		return nil
	case !caps.Has(cloud.Labels) && len(vm.Spec.Tags) > 0:
		return lacks([]string{"tags"})
	case obs.untagged != nil && tagChange(vm, *obs.Resource) != nil:
		return obs.untagged
	}
	return nil
}

// withoutTags has the rest of the spec carried out after a change of tags had this outcome. The
// tags are sent again when it is time for that.
func (k *kind) withoutTags(vm *pcapi.VM, obs *observation, outcome error) error {
	wait, waits := errors.AsType[*reconciler.WaitError](outcome)
	stall, stalls := errors.AsType[*reconciler.StalledError](outcome)
	switch {
	case waits:
		k.refusals.recordTags(vm, outcome, wait.After-1) // it is over when the VM comes back
	case stalls:
		k.refusals.recordTags(vm, outcome, stall.Recheck-1)
	default:
		return outcome
	}
	obs.untagged = outcome
	if possible(vm, obs, difference(vm, *obs.Resource)).Empty() {
		return outcome
	}
	return reconciler.Wait(time.Second, pcapi.ProgressingReason, "%v; VM %s is changed otherwise meanwhile", outcome, obs.Resource.ID)
}

// labelsDigest returns a digest of a change of labels, by which two changes can be compared.
func labelsDigest(change map[string]*string) uint64 {
	digest := fnv.New64a()
	for _, key := range slices.Sorted(maps.Keys(change)) {
		_, _ = fmt.Fprintf(digest, "%q=%q ", key, deref(change[key]))
	}
	return digest.Sum64()
}
