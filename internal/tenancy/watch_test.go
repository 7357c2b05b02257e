package tenancy

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/privatecloud/operator/api/v1alpha1"
)

func TestReopenedAcceptsChangesOfAccess(t *testing.T) {
	open := &v1alpha1.Cloud{}
	closed := open.DeepCopy()
	closed.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
	busy := open.DeepCopy()
	busy.Status.ObservedGeneration = 2
	for name, test := range map[string]struct{ got, want bool }{
		"a Cloud of the initial list":   {reopened.Create(event.CreateEvent{Object: open, IsInInitialList: true}), false},
		"a Cloud that is created":       {reopened.Create(event.CreateEvent{Object: open}), true},
		"a Cloud that is deleted":       {reopened.Delete(event.DeleteEvent{Object: open}), true},
		"its allowedNamespaces changed": {reopened.Update(event.UpdateEvent{ObjectOld: open, ObjectNew: closed}), true},
		"its status changed":            {reopened.Update(event.UpdateEvent{ObjectOld: open, ObjectNew: busy}), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %v, want %v", name, test.got, test.want)
		}
	}
}
