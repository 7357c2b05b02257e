package vm

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// visible is what users see of a VM, and when it is reconciled again.
type visible struct {
	Status        pcapi.VMStatus
	Finalizers    []string
	Annotations   map[string]string
	First, Second ctrl.Result
}

// visibleOf returns what users see of a VM after two reconciles that are a minute apart.
func visibleOf(h *harness) visible {
	h.t.Helper()
	h.enqueued = nil
	first := h.mustReconcile()
	h.advance(time.Minute)
	second := h.mustReconcile()
	vm := h.vm()
	for i := range vm.Status.Conditions {
		vm.Status.Conditions[i].LastTransitionTime = metav1.Time{} // the time of the test, which goes on between two VMs
	}
	return visible{vm.Status, vm.Finalizers, vm.Annotations, first, second}
}

func TestMissingAndDeniedCloudLookTheSame(t *testing.T) {
	denied := &metav1.LabelSelector{MatchLabels: map[string]string{"allowed": "yes"}}
	for name, change := range map[string]func(*pcapi.VM){
		"a new VM":                  func(*pcapi.VM) {},
		"one that imports a server": func(vm *pcapi.VM) { vm.Spec.Import = &pcapi.VMImport{VMID: "s1"} },
		"one with a probe":          socketProbed,
		"one with a class":          ofClass("small"),
		"one with a server":         func(vm *pcapi.VM) { *vm = *onRecord(); vm.Status.Cloud = "hidden" },
		"one that was created now":  func(vm *pcapi.VM) { vm.CreationTimestamp = metav1.NewTime(startTime.Add(time.Hour)) },
	} {
		t.Run(name, func(t *testing.T) {
			see := func(exists bool) visible {
				vm := vmWith(change, func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "hidden"} })
				h := newHarness(t, everything, vm, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
				if exists {
					c := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "hidden"}, Spec: pcapi.CloudSpec{AllowedNamespaces: denied}}
					if err := h.client.Create(t.Context(), c); err != nil {
						t.Fatalf("Create: %v", err)
					}
				}
				return visibleOf(h)
			}
			if diff := cmp.Diff(see(false), see(true)); diff != "" {
				t.Errorf("what reveals whether the Cloud exists (-missing +denied):\n%s", diff)
			}
		})
	}
}

func TestMissingAndDeniedClassLookTheSame(t *testing.T) {
	see := func(exists bool) visible {
		h := newHarness(t, everything, vmWith(ofClass("small")), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
		if exists {
			class := aClass("small", 2, 4, func(c *pcapi.VMClass) {
				c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"allowed": "yes"}}
			})
			if err := h.client.Create(t.Context(), class); err != nil {
				t.Fatalf("Create: %v", err)
			}
		}
		return visibleOf(h)
	}
	if diff := cmp.Diff(see(false), see(true)); diff != "" {
		t.Errorf("what reveals whether the VMClass exists (-missing +denied):\n%s", diff)
	}
}
