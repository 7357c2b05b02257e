package tenancy

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestAccessChanged(t *testing.T) {
	t.Parallel()
	open := &pcapi.Cloud{}
	restricted := open.DeepCopy()
	restricted.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
	observed := open.DeepCopy()
	observed.Status.ObservedGeneration = 2
	closing := open.DeepCopy()
	closing.DeletionTimestamp = new(metav1.Now())
	importing := open.DeepCopy()
	importing.Spec.Imports = pcapi.ImportPolicyListed
	listing := importing.DeepCopy()
	listing.Spec.Importable = []pcapi.ImportableVM{{VMID: "id", Namespace: "team-a"}}
	sharing := importing.DeepCopy()
	sharing.Spec.ImportableNetworks = []pcapi.ImportableNetwork{{Name: "VM Network", Namespace: "team-a"}}
	update := func(before, after *pcapi.Cloud) bool {
		return accessChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
	}
	for name, tc := range map[string]struct{ got, want bool }{
		"Cloud in the initial list: not selected": {accessChanged.Create(event.CreateEvent{Object: open, IsInInitialList: true}), false},
		"created Cloud: selected":                 {accessChanged.Create(event.CreateEvent{Object: open}), true},
		"deleted Cloud: selected":                 {accessChanged.Delete(event.DeleteEvent{Object: open}), true},
		"allowedNamespaces changed: selected":     {accessChanged.Update(event.UpdateEvent{ObjectOld: open, ObjectNew: restricted}), true},
		"status changed: not selected":            {accessChanged.Update(event.UpdateEvent{ObjectOld: open, ObjectNew: observed}), false},
		"deletion requested: selected":            {update(open, closing), true},
		"deletion goes on: not selected":          {update(closing, closing.DeepCopy()), false},
		"imports changed: selected":               {update(open, importing), true},
		"importable changed: selected":            {update(importing, listing), true},
		"importableNetworks changed: selected":    {update(importing, sharing), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.got != tc.want {
				t.Errorf("selected: %v, want %v", tc.got, tc.want)
			}
		})
	}
}
