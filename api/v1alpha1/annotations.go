package v1alpha1

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// userAnnotations are the annotations of this group that the operator reads.
var userAnnotations = []string{
	PausedAnnotation, ReconcileRequestedAtAnnotation, DeletionProtectionAnnotation, AcknowledgeAnnotation, ApprovedPlanAnnotation, DeleteFirstAnnotation,
	ClaimedNameAnnotation, ClaimedCloudAnnotation, ClaimedUIDAnnotation, ClaimRenewedAtAnnotation,
}

// switches are those that are on or off. Autoscalers write other values for delete-first.
var switches = []string{PausedAnnotation, DeletionProtectionAnnotation}

// Paused reports whether an object is paused.
func Paused(o metav1.Object) bool { return annotationOn(o, PausedAnnotation) }

// Protected reports whether a user protects an object from deletion.
func Protected(o metav1.Object) bool { return annotationOn(o, DeletionProtectionAnnotation) }

// DeletedFirst reports whether a member is to be deleted before the others of its group.
func DeletedFirst(o metav1.Object) bool { return annotationOn(o, DeleteFirstAnnotation) }

// annotationOn reports whether an annotation is on: with every value other than "false", so that
// a value that the operator does not know, such as "yes", is not ignored.
func annotationOn(o metav1.Object, key string) bool {
	value, set := o.GetAnnotations()[key]
	return set && value != "false"
}

// UnknownAnnotationReason is the reason of the event about an annotation, or a value of one, that
// the operator does not know.
const UnknownAnnotationReason = "UnknownAnnotation"

// maxQuoted bounds what is quoted of an annotation, in characters.
const maxQuoted = 100

// UnknownAnnotation describes the first annotation of this group whose key or value the operator
// does not know; empty if there is none.
func UnknownAnnotation(o metav1.Object) string {
	var texts []string
	for key, value := range o.GetAnnotations() {
		switch {
		case !strings.HasPrefix(key, GroupVersion.Group+"/"):
		case !slices.Contains(userAnnotations, key):
			texts = append(texts, fmt.Sprintf("the operator does not know the annotation %s: correct its name or remove it", key))
		case slices.Contains(switches, key) && value != "true" && value != "false":
			texts = append(texts, fmt.Sprintf("the value %.*q of the annotation %s counts as \"true\": set it to \"true\" or \"false\", or remove the annotation", maxQuoted, value, key))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return slices.Min(texts)
}
