package reconciler_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

func TestChangedByUserAcceptsRemovedFinalizer(t *testing.T) {
	claimed := func(vm *pcapi.VM) { vm.Annotations = map[string]string{note: "web"} }
	deleting := func(vm *pcapi.VM) { now := metav1.Now(); vm.DeletionTimestamp = &now }
	for name, tc := range map[string]struct {
		annotation string
		was, is    *pcapi.VM
		want       bool
	}{
		"finalizer removed, annotation kept: accepted":         {note, example(claimed), example(claimed, unclaimed), true},
		"finalizer and annotation removed: rejected":           {note, example(claimed), example(unclaimed), false},
		"finalizer removed, kind without annotation: accepted": {"", example(), example(unclaimed), true},
		"finalizer of a deleted object removed: rejected":      {"", example(deleting), example(deleting, unclaimed), false},
		"nothing changed: rejected":                            {"", example(), example(), false},
	} {
		t.Run(name, func(t *testing.T) {
			equal(t, "accepted", tc.want, reconciler.ChangedByUser(finalizer, tc.annotation).Update(event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}))
		})
	}
}
