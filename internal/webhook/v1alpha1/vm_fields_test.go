package v1alpha1

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// inFolder gives a VM a folder whose name is escaped in JSON.
func inFolder(vm *pcapi.VM) { vm.Spec.Folder = `a "b" <c> & ` + strings.Repeat("\u2028", 200) }

// owned gives a VM owners that are not its controller.
func owned(owners int) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.OwnerReferences = slices.Concat(make([]metav1.OwnerReference, owners), vm.OwnerReferences)
	}
}

func TestAllFieldsOfAVMThatTheCheckUsesAreDecoded(t *testing.T) {
	const group = "samplecontroller.k8s.io/v1alpha1"
	for name, vm := range map[string]*pcapi.VM{
		"a name":                     aVM(),
		"a Cloud":                    aVM(on("blue")),
		"a folder":                   aVM(inFolder),
		"an import":                  aVM(imported),
		"a server":                   aVM(recorded),
		"a deletion":                 aVM(deleted),
		"a group":                    aVM(controlled(group, "VmGroup")),
		"a group after other owners": aVM(controlled(group, "VmGroup"), owned(40)),
		"another controller":         aVM(controlled("apps/v1", "ReplicaSet")),
		"owners alone":               aVM(owned(3)),
		"nothing":                    {},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeVM(encode(t, vm))
			if err != nil {
				t.Fatal(err)
			}
			want := &pcapi.VM{}
			want.Name, want.Namespace = vm.Name, vm.Namespace
			if vm.DeletionTimestamp != nil {
				want.DeletionTimestamp = new(metav1.NewTime(vm.DeletionTimestamp.Truncate(time.Second)))
			}
			want.Spec = pcapi.VMSpec{VMName: vm.Spec.VMName, CloudRef: vm.Spec.CloudRef, Folder: vm.Spec.Folder}
			if vm.Spec.Import != nil {
				want.Spec.Import = &pcapi.VMImport{}
			}
			want.Status.VMID = vm.Status.VMID
			expect(t, "is of a group", ownedByGroup(vm), ownedByGroup(got))
			got.OwnerReferences = nil
			expect(t, "decoded", want, got)
		})
	}
}

func TestReviewsOfVMsAreAnswered(t *testing.T) {
	prohibitedName := cloudError(cloud.Prohibited, "never")
	for name, tc := range map[string]struct {
		operation admissionv1.Operation
		answer    error
		old, vm   *pcapi.VM
		refused   bool
		warnings  int
	}{
		"create, allowed":                         {operation: admissionv1.Create, vm: aVM()},
		"create, prohibited: refused":             {operation: admissionv1.Create, vm: aVM(), answer: prohibitedName, refused: true},
		"create, taken: warning":                  {operation: admissionv1.Create, vm: aVM(), answer: cloudError(cloud.Taken, ""), warnings: 1},
		"update to a prohibited name: refused":    {operation: admissionv1.Update, old: aVM(), vm: aVM(renamed), answer: prohibitedName, refused: true},
		"update of something else: allowed":       {operation: admissionv1.Update, old: aVM(), vm: aVM(), answer: prohibitedName},
		"deletion: allowed without a check":       {operation: admissionv1.Delete, old: aVM(), answer: prohibitedName},
		"unknown operation: allowed without it":   {operation: "OTHER", vm: aVM(), answer: prohibitedName},
		"create of a member of a group: no check": {operation: admissionv1.Create, vm: aVM(controlled(pcapi.GroupVersion.String(), "VmGroup")), answer: prohibitedName},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.answer, aCloud("default"))
			got, err := h.judge(t.Context(), review(t, tc.operation, tc.old, tc.vm))
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "type", metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, got.TypeMeta)
			expect(t, "UID", "705ab4f5", string(got.Response.UID))
			expect(t, "allowed", !tc.refused, got.Response.Allowed)
			expect(t, "warnings", tc.warnings, len(got.Response.Warnings))
			if !tc.refused {
				return
			}
			status := got.Response.Result
			if status == nil || status.Code != http.StatusUnprocessableEntity || status.Reason != metav1.StatusReasonInvalid || !strings.Contains(status.Message, "spec.vmname: Invalid value") {
				t.Errorf("status %v, want an Invalid error of spec.vmname", status)
			}
		})
	}
}

func TestVMThatCannotBeReadIsAllowedWithAWarning(t *testing.T) {
	const create = `{"apiVersion":"admission.k8s.io/v1","request":{"uid":"1","operation":"CREATE","object":%s}}`
	for name, object := range map[string]string{
		"an array":                    `[]`,
		"metadata of another type":    `{"metadata":[]}`,
		"spec of another type":        `{"spec":7}`,
		"a name of another type":      `{"spec":{"vmname":7}}`,
		"a Cloud of another type":     `{"spec":{"cloudRef":"blue"}}`,
		"owners of another type":      `{"metadata":{"ownerReferences":{}}}`,
		"an owner of another type":    `{"metadata":{"ownerReferences":[7]}}`,
		"a controller of another one": `{"metadata":{"ownerReferences":[{"controller":"true"}]}}`,
		"a long name":                 `{"spec":{"vmname":"` + strings.Repeat("a", 5000) + `"}}`,
	} {
		h := newHarness(t, nil, aCloud("default"))
		answer, err := h.judge(t.Context(), fmt.Appendf(nil, create, object))
		if err != nil || h.checked != nil {
			t.Fatalf("%s: error %v, checked %v", name, err, h.checked)
		}
		want := []string{"the name of the VM was not checked: the fields of the object cannot be read"}
		expect(t, name+": allowed", true, answer.Response.Allowed)
		expect(t, name+": warnings", want, answer.Response.Warnings)
	}
}
