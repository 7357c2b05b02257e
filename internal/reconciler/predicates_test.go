package reconciler_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

func TestAFinalizerTakenOffByHandWakes(t *testing.T) {
	claimed := func(vm *v1alpha1.VM) { vm.Annotations = map[string]string{note: "web"} }
	doomed := func(vm *v1alpha1.VM) { now := metav1.Now(); vm.DeletionTimestamp = &now }
	for name, tc := range map[string]struct {
		annotation string
		was, is    *v1alpha1.VM
		want       bool
	}{
		"alone":                          {note, example(claimed), example(claimed, unclaimed), true},
		"with the annotation: a release": {note, example(claimed), example(unclaimed), false},
		"of a kind without annotation":   {"", example(), example(unclaimed), true},
		"of one that is deleted":         {"", example(doomed), example(doomed, unclaimed), false},
		"not at all":                     {"", example(), example(), false},
	} {
		if got := reconciler.ChangedByUser(finalizer, tc.annotation).Update(event.UpdateEvent{ObjectOld: tc.was, ObjectNew: tc.is}); got != tc.want {
			t.Errorf("%s: wakes %t, want %t", name, got, tc.want)
		}
	}
}
