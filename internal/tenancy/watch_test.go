package tenancy

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/privatecloud/operator/api/v1alpha1"
)

func TestCloudsThatWakeTheirUsers(t *testing.T) {
	open := &v1alpha1.Cloud{}
	closed := open.DeepCopy()
	closed.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
	busy := open.DeepCopy()
	busy.Status.ObservedGeneration = 2
	for name, test := range map[string]struct{ got, want bool }{
		"one that is there at a start":      {reopened.Create(event.CreateEvent{Object: open, IsInInitialList: true}), false},
		"one that came":                     {reopened.Create(event.CreateEvent{Object: open}), true},
		"one that went":                     {reopened.Delete(event.DeleteEvent{Object: open}), true},
		"one that is for others now":        {reopened.Update(event.UpdateEvent{ObjectOld: open, ObjectNew: closed}), true},
		"one that changed in other regards": {reopened.Update(event.UpdateEvent{ObjectOld: open, ObjectNew: busy}), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: got %v, want %v", name, test.got, test.want)
		}
	}
}
