package vm

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/fairqueue"
)

func TestVMsShareWorkersByCloudAndNamespace(t *testing.T) {
	uses := func(cloudName string) *pcapi.VM {
		vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
		if cloudName != "" {
			vm.Spec.CloudRef = &pcapi.CloudReference{Name: cloudName}
		}
		return vm
	}
	recorded := uses("other")
	recorded.Status.VMID, recorded.Status.Cloud = "s-1", "default"
	denied, leaving, gone := uses("closed"), uses("closed"), uses("missing")
	for _, vm := range []*pcapi.VM{leaving, gone} {
		vm.Finalizers = []string{pcapi.VMFinalizer}
	}
	for name, tc := range map[string]struct {
		vm   *pcapi.VM
		want string
	}{
		"it names a Cloud: that":                            {uses("other"), "other"},
		"it names none: the default Cloud":                  {uses(""), "default"},
		"its server is on another than it names: the other": {recorded, "default"},
		"its namespace may not use the Cloud: none":         {denied, ""},
		"and it is deleted: the Cloud":                      {leaving, "closed"},
		"it is deleted, and the Cloud does not exist: none": {gone, ""},
		"the Cloud does not exist: none":                    {uses("missing"), ""},
		"it does not exist: none":                           {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, cloud.Capabilities{}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
				&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "other"}},
				&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "closed"}, Spec: pcapi.CloudSpec{AllowedNamespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}})
			if tc.vm != nil {
				if err := h.client.Create(t.Context(), tc.vm); err != nil {
					t.Fatalf("Create: %v", err)
				}
				if err := h.client.Status().Update(t.Context(), tc.vm); err != nil {
					t.Fatalf("Update: %v", err)
				}
				if len(tc.vm.Finalizers) > 0 {
					if err := h.client.Delete(t.Context(), tc.vm); err != nil {
						t.Fatalf("Delete: %v", err)
					}
				}
			}
			got := h.kind.Group(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "web"}})
			if want := (fairqueue.Group{Cloud: tc.want, Namespace: "ns"}); got != want {
				t.Errorf("group %+v, want %+v", got, want)
			}
		})
	}
}
