package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func TestDocumentedManifestIsDecoded(t *testing.T) {
	const manifest = `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata:
  name: sample
spec:
  vmname: vmsample
status:
  vmId: 0f0e7a3c-0000-4000-8000-000000000000
  cpuUtilization: 50
`
	half := int32(50)
	want := VM{
		TypeMeta:   metav1.TypeMeta{APIVersion: GroupVersion.String(), Kind: "VM"},
		ObjectMeta: metav1.ObjectMeta{Name: "sample"},
		Spec:       VMSpec{VMName: "vmsample"},
		Status:     VMStatus{VMID: "0f0e7a3c-0000-4000-8000-000000000000", CPUUtilization: &half},
	}
	var got VM
	if err := yaml.UnmarshalStrict([]byte(manifest), &got); err != nil {
		t.Fatalf("UnmarshalStrict: %v", err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("VM (-want +got):\n%s", diff)
	}
}

// TestUnsetFieldsAreOmitted: an empty field in a request would prevent the API
// server's default, or count as a change of an immutable field.
func TestUnsetFieldsAreOmitted(t *testing.T) {
	for name, tc := range map[string]struct {
		object runtime.Object
		want   string
	}{
		"VM":    {&VM{Spec: VMSpec{VMName: "web"}}, `{"spec":{"vmname":"web"}}`},
		"Cloud": {&Cloud{Spec: CloudSpec{Endpoint: "http://a.b"}}, `{"spec":{"endpoint":"http://a.b"}}`},
		"Cloud with an empty block of its type": {
			&Cloud{Spec: CloudSpec{Endpoint: "http://a.b", REST: &RESTCloud{}}}, `{"spec":{"endpoint":"http://a.b","rest":{}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(tc.object)
			if err != nil {
				t.Fatalf("Marshal: %v", err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%T (-want +got):\n%s", tc.object, diff)
			}
		})
	}
}

func TestSchemeContainsEveryKind(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatalf("AddToScheme: %v", err)
	}
	for kind, object := range map[string]runtime.Object{
		"VM": &VM{}, "VMList": &VMList{}, "Cloud": &Cloud{}, "CloudList": &CloudList{},
		"VmGroup": &VmGroup{}, "VmGroupList": &VmGroupList{}, "Network": &Network{}, "NetworkList": &NetworkList{}, "GPUInfo": &GPUInfo{}, "GPUInfoList": &GPUInfoList{},
	} {
		t.Run(kind, func(t *testing.T) {
			made, err := scheme.New(GroupVersion.WithKind(kind))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object, made); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
