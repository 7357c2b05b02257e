package metricsapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

func TestStripKeepsOnlyFieldsOfMetrics(t *testing.T) {
	full := group(space, "web", new(int32(60)))
	full.ResourceVersion = "7"
	full.Annotations = map[string]string{"note": "long"}
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	full.Spec.Replicas = new(int32(3))
	full.Status.Conditions = []metav1.Condition{{Type: "Ready"}}
	wantGroup := group(space, "web", new(int32(60)))
	wantGroup.ResourceVersion = "7"

	vm := member(full, "web-1", new(int32(90)))
	vm.ResourceVersion = "8"
	vm.Labels = map[string]string{"samplecontroller.k8s.io/group": "web"}
	vm.ManagedFields = full.ManagedFields
	vm.Spec.VMName = "web-1"
	vm.Status.Conditions = full.Status.Conditions
	wantVM := member(full, "web-1", new(int32(90)))
	wantVM.ResourceVersion = "8"

	gotGroup, err := stripGroup(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(wantGroup), gotGroup); diff != "" {
		t.Errorf("group (-want +got):\n%s", diff)
	}
	gotVM, err := stripVM(vm)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(wantVM), gotVM); diff != "" {
		t.Errorf("VM (-want +got):\n%s", diff)
	}
}

func TestGroupOf(t *testing.T) {
	web := group(space, "web", nil)
	controlled, owned, ofAnotherKind := member(web, "a", nil), member(web, "b", nil), member(web, "c", nil)
	owned.OwnerReferences[0].Controller = nil
	ofAnotherKind.OwnerReferences[0].Kind = "Other"
	tests := map[string]struct {
		vm   *pcapi.VM
		want []string
	}{
		"controlled by the group: its UID": {controlled, []string{"shop-web-uid"}},
		"owned, not controlled: none":      {owned, nil},
		"controlled by another kind: none": {ofAnotherKind, nil},
		"without owner: none":              {&pcapi.VM{}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, groupOf(tc.vm)); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}
