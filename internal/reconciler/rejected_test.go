package reconciler_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

var errBroken = apierrors.NewInternalError(errUnavailable)

// tooLong refuses patches in which a field is longer than the CRD allows.
func tooLong(path *field.Path, contains string) func(write) error {
	return func(w write) error {
		if w.To != "status" || !strings.Contains(w.Data, contains) {
			return nil
		}
		return apierrors.NewInvalid(pcapi.GroupVersion.WithKind("VM").GroupKind(), "a", field.ErrorList{field.TooLong(path, "", 253)})
	}
}

func TestRefusedStatusIsReported(t *testing.T) {
	long := strings.Repeat("h", 254)
	tests := []struct {
		name   string
		decide func(write) error
		// id and host are what is stored of a status with both.
		id, host string
		writes   int
	}{
		{
			name:   "the refusal names a field: the others are stored",
			decide: tooLong(field.NewPath("status", "host"), long), id: "s1", host: "h0", writes: 2,
		},
		{
			name:   "the refusal names a condition: the fields are stored",
			decide: tooLong(field.NewPath("status", "conditions").Index(1).Child("message"), "all is well"), id: "s1", host: long, writes: 2,
		},
		{
			name:   "the refusal names no field: conditions are stored",
			decide: tooLong(field.NewPath("status"), long), id: "", host: "h0", writes: 2,
		},
		{
			name:   "the rest is refused as well: conditions are stored",
			decide: tooLong(field.NewPath("status", "host"), `"s1"`), id: "", host: "h0", writes: 3,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t, example(func(vm *pcapi.VM) { vm.Status.Host = "h0" }))
			h.decide = tc.decide
			h.kind.report = func(vm *pcapi.VM, _ error) { vm.Status.VMID, vm.Status.Host = "s1", long }
			result := h.mustReconcile()
			h.wantWrites(tc.writes)
			wantRequeue(t, 2*time.Second, result)
			stored := h.stored()
			equal(t, "stored id", tc.id, stored.Status.VMID)
			equal(t, "stored host", tc.host, stored.Status.Host)
			for kind, want := range map[string]metav1.ConditionStatus{pcapi.ReadyCondition: metav1.ConditionFalse, pcapi.StalledCondition: metav1.ConditionTrue} {
				c := meta.FindStatusCondition(stored.Status.Conditions, kind)
				if c == nil || c.Status != want || c.Reason != pcapi.StatusRejectedReason || !strings.Contains(c.Message, "status") || len(c.Message) > 1024 {
					t.Errorf("%s is %+v, want %s with reason %s and the refusal", kind, c, want, pcapi.StatusRejectedReason)
				}
			}
		})
	}
}

// TestRefusedStatusIsRetriedWithBackoff counts the writes of an object that is
// enqueued many times a second.
func TestRefusedStatusIsRetriedWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("h", 254)
		h := newHarness(t, example())
		h.decide = tooLong(field.NewPath("status", "host"), long)
		h.kind.report = func(vm *pcapi.VM, _ error) { vm.Status.VMID, vm.Status.Host = "s1", long }
		for began := time.Now(); time.Since(began) < 5*time.Minute; sleep(100 * time.Millisecond) {
			h.mustReconcile()
		}
		// After 0, 2, 6, 14, 30, 62, 122, 182, 242 s; the first stores the conditions.
		h.wantWrites(10)

		h.edit(func(vm *pcapi.VM) { vm.Labels = map[string]string{"edited": "now"} })
		h.mustReconcile()
		h.wantWrites(1)

		h.decide = nil
		h.edit(func(vm *pcapi.VM) { vm.Labels = map[string]string{"edited": "again"} })
		h.mustReconcile()
		equal(t, "host once it is accepted", long, h.stored().Status.Host)
		equal(t, "Stalled", (*metav1.Condition)(nil), meta.FindStatusCondition(h.stored().Status.Conditions, pcapi.StalledCondition))
	})
}
