package lean_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/lean"
)

// annotationsOfTheAPI returns the keys of all annotations that the package of the API declares.
func annotationsOfTheAPI(t *testing.T) (keys []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/labels.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasSuffix(spec.Names[0].Name, "Annotation") {
			return true
		}
		key, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
		return true
	})
	if len(keys) < 10 {
		t.Fatalf("found %d annotations in the package of the API, want all", len(keys))
	}
	return keys
}

func trimmed(annotations map[string]string) map[string]string {
	vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	lean.Trim(vm)
	return vm.Annotations
}

func TestTrimBoundsEachAnnotation(t *testing.T) {
	for _, key := range annotationsOfTheAPI(t) {
		for _, value := range []string{"true", "web", strings.Repeat("x", 64)} {
			if got := trimmed(map[string]string{key: value}); got[key] != value {
				t.Errorf("%s: %q became %q, want it unchanged", key, value, got[key])
			}
		}
		kept, ok := trimmed(map[string]string{key: strings.Repeat("x", 100_000)})[key]
		if len(kept) > 1024 {
			t.Errorf("%s: %d bytes of a long value are kept, want at most 1024", key, len(kept))
		}
		switch key {
		case pcapi.ClaimedNameAnnotation, pcapi.ClaimedCloudAnnotation, pcapi.ClaimRenewedAtAnnotation:
			if ok {
				t.Errorf("%s: a part of a claim that nobody can have written is kept", key)
			}
		default:
			if kept == "" {
				t.Errorf("%s: nothing of a long value is kept, want its begin: the annotation is set", key)
			}
		}
	}
}

func TestTrimKeepsTheFirstUnknownAnnotations(t *testing.T) {
	annotations := map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "meta.helm.sh/release-name": "x", "samplecontroller.k8s.io/b": "x", "samplecontroller.k8s.io/a": "x", pcapi.PausedAnnotation: "true"}
	before := pcapi.UnknownAnnotation(&pcapi.VM{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}})
	got := trimmed(annotations)
	if want := map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "", "samplecontroller.k8s.io/a": "", pcapi.PausedAnnotation: "true"}; !reflect.DeepEqual(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if after := pcapi.UnknownAnnotation(&pcapi.VM{ObjectMeta: metav1.ObjectMeta{Annotations: got}}); after != before || after == "" {
		t.Errorf("the warning is %q, want %q", after, before)
	}
}

// TestTrimmedAnnotationsAreNotRemovedByPatches removes the annotations of the operator from a trimmed object by a merge patch:
// those of others stay, whichever there are.
func TestTrimmedAnnotationsAreNotRemovedByPatches(t *testing.T) {
	stored := map[string]string{"argocd.argoproj.io/tracking-id": "web", "meta.helm.sh/release-name": "web", pcapi.ClaimedNameAnnotation: "web", pcapi.ClaimedCloudAnnotation: "default"}
	live := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Annotations: maps.Clone(stored)}}
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(live).Build()
	base := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Annotations: maps.Clone(stored)}}
	lean.Trim(base)
	changed := base.DeepCopy()
	delete(changed.Annotations, pcapi.ClaimedNameAnnotation)
	delete(changed.Annotations, pcapi.ClaimedCloudAnnotation)
	if err := c.Patch(t.Context(), changed, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"argocd.argoproj.io/tracking-id": "web", "meta.helm.sh/release-name": "web"}; !maps.Equal(live.Annotations, want) {
		t.Errorf("after the patch the object has %v, want %v", live.Annotations, want)
	}
}

func TestTrimRemovesOwnersThatCannotExist(t *testing.T) {
	group := metav1.OwnerReference{APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "VmGroup", Name: strings.Repeat("a", 253), UID: "9c0d7d3e-0000-4000-8000-000000000000"}
	long := strings.Repeat("x", 1_000_000)
	owners := []metav1.OwnerReference{group}
	for _, change := range []func(*metav1.OwnerReference){
		func(o *metav1.OwnerReference) { o.UID = types.UID(long) },
		func(o *metav1.OwnerReference) { o.Name = long },
		func(o *metav1.OwnerReference) { o.Kind = long },
		func(o *metav1.OwnerReference) { o.APIVersion = long },
	} {
		impossible := group
		change(&impossible)
		owners = append(owners, impossible)
	}
	vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owners}}
	lean.Trim(vm)
	if want := []metav1.OwnerReference{group}; !reflect.DeepEqual(vm.OwnerReferences, want) {
		t.Errorf("kept %d owners, want the one that can exist", len(vm.OwnerReferences))
	}
}

func TestObjectRemovesManagedFields(t *testing.T) {
	network := &pcapi.Network{ObjectMeta: metav1.ObjectMeta{Name: "net", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}, Annotations: map[string]string{"example.com/x": "y"}}}
	if got, err := lean.Object(network); got != any(network) || err != nil || network.ManagedFields != nil || network.Annotations["example.com/x"] != "" {
		t.Errorf("got %v, %v, want the object without managed fields and values of foreign annotations", got, err)
	}
	gone := "no object"
	if got, err := lean.Object(gone); got != any(gone) || err != nil {
		t.Errorf("got %v, %v, want what is no object unchanged", got, err)
	}
}

// The cache may pass an object that it has already, which others read: run it with -race.
func TestTrimmedObjectIsNotWritten(t *testing.T) {
	annotations, owners := map[string]string{pcapi.PausedAnnotation: "true", "samplecontroller.k8s.io/a": ""}, []metav1.OwnerReference{{Name: "web", UID: "1"}}
	vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Annotations: annotations, OwnerReferences: owners}}
	lean.Trim(vm)
	if reflect.ValueOf(vm.Annotations).Pointer() != reflect.ValueOf(annotations).Pointer() || &vm.OwnerReferences[0] != &owners[0] {
		t.Error("an object that is trimmed was changed, want it untouched")
	}
}
