// Package lean bounds what the caches keep of the metadata of objects: users choose how many
// annotations and owners an object has, and how long they are, up to the size that the API
// server accepts.
package lean

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// maxName and maxUID are how long names and UIDs can be that the API server accepts or makes, in bytes.
	maxName = 253
	maxUID  = 64
	// maxValue bounds the value of an annotation that users write, in bytes. An approval has a hash and
	// the name of a user.
	maxValue = 1024
)

// maxValues are how long the values of the annotations can be that the operator reads, in bytes.
var maxValues = map[string]int{
	pcapi.PausedAnnotation: maxValue, pcapi.ReconcileRequestedAtAnnotation: maxValue, pcapi.DeletionProtectionAnnotation: maxValue,
	pcapi.AcknowledgeAnnotation: maxValue, pcapi.ApprovedPlanAnnotation: maxValue, pcapi.DeleteFirstAnnotation: maxValue,
	pcapi.ClaimedNameAnnotation: maxName, pcapi.ClaimedCloudAnnotation: maxName, pcapi.ClaimedUIDAnnotation: maxUID, pcapi.ClaimRenewedAtAnnotation: maxUID,
}

// Object is a transform of caches. It removes the managed fields of an object, and the annotations and owners that Trim
// removes. It does not change an object that lacks all of these, which may be in the cache already.
func Object(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		if m.GetManagedFields() != nil {
			m.SetManagedFields(nil)
		}
		Trim(m)
	}
	return o, nil
}

// Trim removes the annotations of an object that the operator does not read, but two keys: the first one with the prefix of
// its group, of which it warns, and the first other one. Without them, a merge patch that removes the annotations of the
// operator would remove all of the object, since it would see no other. Trim cuts the values of the annotations that the
// operator reads, and removes a claim that is longer than the operator writes one. It removes the owners with a name or UID
// that no object can have. An object that has no such annotations and owners is not changed.
func Trim(m metav1.Object) {
	if kept, changed := annotations(m.GetAnnotations()); changed {
		m.SetAnnotations(kept)
	}
	if owners := m.GetOwnerReferences(); slices.ContainsFunc(owners, impossible) {
		m.SetOwnerReferences(slices.DeleteFunc(slices.Clone(owners), impossible))
	}
}

func annotations(all map[string]string) (kept map[string]string, changed bool) {
	kept = make(map[string]string, len(all))
	unknown := map[bool]string{} // by whether the key has the prefix of the group
	for key, value := range all {
		longest, known := maxValues[key]
		switch {
		case known && len(value) <= longest:
			kept[key] = value
		case known && longest == maxValue || key == pcapi.ClaimedUIDAnnotation: // another UID is that of another object
			kept[key] = strings.Clone(value[:longest])
		case !known:
			ours := strings.HasPrefix(key, pcapi.GroupVersion.Group+"/")
			if first, found := unknown[ours]; !found || key < first {
				unknown[ours] = key
			}
		}
	}
	for _, key := range unknown {
		kept[key] = ""
	}
	return kept, !maps.Equal(all, kept)
}

// impossible reports whether no object can have this name and UID.
func impossible(owner metav1.OwnerReference) bool {
	return len(owner.UID) > maxUID || max(len(owner.Name), len(owner.Kind), len(owner.APIVersion)) > 2*maxName
}
