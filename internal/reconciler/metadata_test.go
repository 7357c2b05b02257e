package reconciler_test

import (
	"encoding/json"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

const note = "example.com/note"

func annotated(value string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Annotations = map[string]string{note: value, "other": "kept"} }
}

func unclaimed(vm *pcapi.VM) { vm.Finalizers = nil }

func ofAnother(vm *pcapi.VM) { vm.Annotations[pcapi.ClaimedUIDAnnotation] = "uid-b" }

func TestClaim(t *testing.T) {
	tests := []struct {
		name        string
		vm          *pcapi.VM
		annotations map[string]string
		writes      int
		want        map[string]string
	}{
		{name: "no claim: finalizer and annotations are written", vm: example(unclaimed), annotations: map[string]string{note: "web"}, writes: 1, want: map[string]string{note: "web", pcapi.ClaimedUIDAnnotation: "uid-a"}},
		{name: "other annotations: kept", vm: example(unclaimed, annotated("old")), annotations: map[string]string{note: "web"}, writes: 1, want: map[string]string{note: "web", "other": "kept", pcapi.ClaimedUIDAnnotation: "uid-a"}},
		{name: "claim of another name: written", vm: example(annotated("old")), annotations: map[string]string{note: "web"}, writes: 1, want: map[string]string{note: "web", "other": "kept", pcapi.ClaimedUIDAnnotation: "uid-a"}},
		{name: "unchanged claim: not written", vm: example(annotated("web")), annotations: map[string]string{note: "web"}, want: map[string]string{note: "web", "other": "kept"}},
		{name: "claim that was written for another object: written", vm: example(annotated("web"), ofAnother), annotations: map[string]string{note: "web"}, writes: 1, want: map[string]string{note: "web", "other": "kept", pcapi.ClaimedUIDAnnotation: "uid-a"}},
		{name: "claim without annotations beside that of another object: not written", vm: example(annotated("web"), ofAnother), want: map[string]string{note: "web", "other": "kept", pcapi.ClaimedUIDAnnotation: "uid-b"}},
		{name: "claim without annotations: finalizer is written", vm: example(unclaimed, annotated("old")), writes: 1, want: map[string]string{note: "old", "other": "kept"}},
		{name: "unchanged finalizer: not written", vm: example()},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t, tc.vm)
			vm := h.stored()
			vm.Status.Host = "set by this reconcile"
			if err := reconciler.Claim(t.Context(), h.client, vm, finalizer, tc.annotations); err != nil {
				t.Fatalf("Claim: %v", err)
			}
			h.wantWrites(tc.writes)
			stored := h.stored()
			equal(t, "stored annotations", tc.want, stored.Annotations)
			equal(t, "stored finalizers", []string{finalizer}, stored.Finalizers)
			equal(t, "stored status: not written by Claim", "", stored.Status.Host)
			equal(t, "annotations in memory", tc.want, vm.Annotations)
			equal(t, "finalizers in memory", []string{finalizer}, vm.Finalizers)
			equal(t, "resourceVersion in memory", stored.ResourceVersion, vm.ResourceVersion)
			equal(t, "status in memory", "set by this reconcile", vm.Status.Host)
		})
	}
}

func TestRelease(t *testing.T) {
	tests := []struct {
		name   string
		vm     *pcapi.VM
		writes int
		want   map[string]string
	}{
		{name: "claim: finalizer and annotation are removed, others kept", vm: example(annotated("web")), writes: 1, want: map[string]string{"other": "kept"}},
		{name: "annotation without the finalizer: removed", vm: example(unclaimed, annotated("web")), writes: 1, want: map[string]string{"other": "kept"}},
		{name: "no claim: not written", vm: example(unclaimed)},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t, tc.vm)
			vm := h.stored()
			if err := reconciler.Release(t.Context(), h.client, vm, finalizer, note); err != nil {
				t.Fatalf("Release: %v", err)
			}
			h.wantWrites(tc.writes)
			stored := h.stored()
			equal(t, "stored annotations", tc.want, stored.Annotations)
			equal(t, "stored finalizers", []string(nil), stored.Finalizers)
			equal(t, "resourceVersion in memory", stored.ResourceVersion, vm.ResourceVersion)
		})
	}
}

func TestClaimSendsResourceVersion(t *testing.T) {
	h := newHarness(t, example(unclaimed))
	vm := h.stored()
	h.edit(func(vm *pcapi.VM) { vm.Labels = map[string]string{"edited": "meanwhile"} })
	read := vm.ResourceVersion
	err := reconciler.Claim(t.Context(), h.client, vm, finalizer, map[string]string{note: "web"})
	if !apierrors.IsConflict(err) {
		t.Errorf("Claim = %v, want a conflict", err)
	}
	var patch struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(h.takeWrites()[0].Data), &patch); err != nil {
		t.Fatalf("patch: %v", err)
	}
	equal(t, "resourceVersion in the patch", read, patch.Metadata.ResourceVersion)
	equal(t, "finalizers in memory after a failed claim", []string(nil), vm.Finalizers)
	equal(t, "annotations in memory after a failed claim", map[string]string(nil), vm.Annotations)
}

func TestFailedReleaseKeepsClaimInMemory(t *testing.T) {
	h := newHarness(t, example(annotated("web")))
	h.refuse = errors.New("no route to host")
	vm := h.stored()
	err := reconciler.Release(t.Context(), h.client, vm, finalizer, note)
	if !errors.Is(err, h.refuse) || err.Error() != "release ns/a: no route to host" {
		t.Errorf("Release = %v, want the object and the cause", err)
	}
	equal(t, "finalizers in memory", []string{finalizer}, vm.Finalizers)
	equal(t, "annotations in memory", map[string]string{note: "web", "other": "kept"}, vm.Annotations)
}

func TestReleaseOfMissingObjectReturnsErrUnknown(t *testing.T) {
	h := newHarness(t, example())
	vm := h.stored()
	h.refuse = apierrors.NewNotFound(pcapi.GroupVersion.WithResource("vms").GroupResource(), vm.Name)
	if err := reconciler.Release(t.Context(), h.client, vm, finalizer); !apierrors.IsNotFound(err) {
		t.Errorf("Release of an object that nobody deleted = %v, want NotFound", err)
	}
	now := metav1.Now()
	vm.DeletionTimestamp = &now
	if err := reconciler.Release(t.Context(), h.client, vm, finalizer); !errors.Is(err, reconciler.ErrUnknown) {
		t.Errorf("Release of a deleted object = %v, want ErrUnknown", err)
	}
}
