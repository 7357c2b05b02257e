package reconciler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	ctrl "sigs.k8s.io/controller-runtime"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

var ignoreTime = cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")

func condition(kind string, is metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message, ObservedGeneration: 3}
}

func ready(is metav1.ConditionStatus, reason, message string) metav1.Condition {
	return condition(pcapi.ReadyCondition, is, reason, message)
}

func TestFinishMapsOutcomeToConditionsAndResult(t *testing.T) {
	broken := errors.New("it broke")
	reconciling := func(reason, message string) metav1.Condition {
		return condition(pcapi.ReconcilingCondition, metav1.ConditionTrue, reason, message)
	}
	stalled := func(reason, message string) metav1.Condition {
		return condition(pcapi.StalledCondition, metav1.ConditionTrue, reason, message)
	}
	tests := []struct {
		name    string
		outcome error
		summary reconciler.Summary
		want    []metav1.Condition
		kstatus status.Status
		again   time.Duration
		err     error
	}{
		{
			name: "in sync: Ready only", summary: reconciler.Summary{Reason: "Running", Message: "all is well"},
			want: []metav1.Condition{ready(metav1.ConditionTrue, "Running", "all is well")}, kstatus: status.CurrentStatus,
		},
		{
			name: "in sync with RequeueAfter: requeued", summary: reconciler.Summary{Reason: "Running", RequeueAfter: time.Minute},
			want: []metav1.Condition{ready(metav1.ConditionTrue, "Running", "")}, kstatus: status.CurrentStatus, again: time.Minute,
		},
		{
			name: "waiting: Reconciling, requeued", outcome: reconciler.Wait(time.Minute, "Creating", "building %s", "s1"),
			want:    []metav1.Condition{ready(metav1.ConditionFalse, "Creating", "building s1"), reconciling(pcapi.ProgressingReason, "building s1")},
			kstatus: status.InProgressStatus, again: time.Minute,
		},
		{
			name: "waiting for an event: Reconciling, not requeued", outcome: reconciler.Wait(0, "Creating", "building"),
			want:    []metav1.Condition{ready(metav1.ConditionFalse, "Creating", "building"), reconciling(pcapi.ProgressingReason, "building")},
			kstatus: status.InProgressStatus,
		},
		{
			name: "blocked: Reconciling, not requeued", outcome: reconciler.Blocked("Cloud/x", "CloudUnavailable", "waiting for %q", "x"),
			want:    []metav1.Condition{ready(metav1.ConditionFalse, "CloudUnavailable", `waiting for "x"`), reconciling("CloudUnavailable", `waiting for "x"`)},
			kstatus: status.InProgressStatus,
		},
		{
			name: "blocked with RequeueAfter: requeued", outcome: &reconciler.BlockedError{Reason: "CloudUnavailable", Message: "waiting", RequeueAfter: time.Hour},
			want:    []metav1.Condition{ready(metav1.ConditionFalse, "CloudUnavailable", "waiting"), reconciling("CloudUnavailable", "waiting")},
			kstatus: status.InProgressStatus, again: time.Hour,
		},
		{
			name: "stalled: Stalled, not requeued", outcome: reconciler.Stalled("Lost", 0, errors.New("it is gone")),
			want:    []metav1.Condition{ready(metav1.ConditionFalse, "Lost", "it is gone"), stalled("Lost", "it is gone")},
			kstatus: status.FailedStatus,
		},
		{
			name: "stalled with Recheck: requeued", outcome: &reconciler.StalledError{Reason: "Prohibited", Cause: errors.New("not this name"), Recheck: 10 * time.Minute},
			want:    []metav1.Condition{ready(metav1.ConditionFalse, "Prohibited", "not this name"), stalled("Prohibited", "not this name")},
			kstatus: status.FailedStatus, again: 10 * time.Minute,
		},
		{
			name: "other error: returned to the queue", outcome: broken,
			want:    []metav1.Condition{ready(metav1.ConditionFalse, pcapi.ErrorReason, "it broke"), reconciling(pcapi.ErrorReason, "it broke")},
			kstatus: status.InProgressStatus, err: broken,
		},
		{
			name: "wrapped outcome: unwrapped", outcome: fmt.Errorf("step x: %w", reconciler.Stalled("Lost", 0, errors.New("gone"))),
			want:    []metav1.Condition{ready(metav1.ConditionFalse, "Lost", "step x: gone"), stalled("Lost", "step x: gone")},
			kstatus: status.FailedStatus,
		},
	}
	for _, before := range []string{"", pcapi.StalledCondition, pcapi.ReconcilingCondition} {
		for _, tc := range tests {
			t.Run(tc.name+", after "+before, func(t *testing.T) {
				h := newHarness(t, example(func(vm *pcapi.VM) {
					if before != "" {
						vm.Status.Conditions = []metav1.Condition{
							{Type: pcapi.ReadyCondition, Status: metav1.ConditionUnknown, Reason: "Old"},
							{Type: before, Status: metav1.ConditionTrue, Reason: "Old"},
						}
					}
				}))
				h.kind.outcome(tc.outcome)
				h.kind.summary = tc.summary
				result, err := h.reconcile()
				if !errors.Is(err, tc.err) {
					t.Errorf("error %v, want %v", err, tc.err)
				}
				wantRequeue(t, tc.again, result)
				h.wantWrites(1)
				vm := h.stored()
				equal(t, "conditions", tc.want, vm.Status.Conditions, ignoreTime)
				equal(t, "observedGeneration", int64(3), vm.Status.ObservedGeneration)
				equal(t, "kstatus", tc.kstatus, kstatusOf(t, vm))
			})
		}
	}
}

// wantRequeue allows for the jitter of a tenth.
func wantRequeue(t *testing.T, want time.Duration, got ctrl.Result) {
	t.Helper()
	if got.RequeueAfter < want || got.RequeueAfter > want+want/10 {
		t.Errorf("requeued after %v, want %v to %v", got.RequeueAfter, want, want+want/10)
	}
}

func kstatusOf(t *testing.T, vm *pcapi.VM) status.Status {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(vm)
	if err != nil {
		t.Fatalf("ToUnstructured: %v", err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(pcapi.GroupVersion.WithKind("VM"))
	result, err := status.Compute(u)
	if err != nil {
		t.Fatalf("kstatus: %v", err)
	}
	return result.Status
}

func TestFinishAddsJitterToWaits(t *testing.T) {
	delays := map[time.Duration]bool{}
	for range 100 {
		h := newHarness(t, example())
		h.kind.outcome(reconciler.Wait(time.Minute, "Creating", "building"))
		result := h.mustReconcile()
		wantRequeue(t, time.Minute, result)
		delays[result.RequeueAfter] = true
	}
	if len(delays) < 50 {
		t.Errorf("100 waits have %d different delays, want at least 50", len(delays))
	}
}

func TestConditionMessagesAreTruncated(t *testing.T) {
	for name, letter := range map[string]string{"two": "é", "three": "世", "four": "🙂"} {
		for _, lead := range []string{"", "x", "xx", "xxx"} {
			t.Run(fmt.Sprintf("letters of %s bytes after %d bytes: cut between letters", name, len(lead)), func(t *testing.T) {
				text := lead + strings.Repeat(letter, 2000)
				h := newHarness(t, example())
				h.kind.outcome(reconciler.Stalled("Rejected", 0, errors.New(text)))
				h.mustReconcile()
				for _, c := range h.stored().Status.Conditions {
					if len(c.Message) > 1024 || len(c.Message) < 1020 || !utf8.ValidString(c.Message) || !strings.HasPrefix(text, c.Message) {
						t.Errorf("%s: message of %d bytes %q…", c.Type, len(c.Message), c.Message[:16])
					}
				}
			})
		}
	}
}

func TestReason(t *testing.T) {
	for outcome, want := range map[error]string{
		reconciler.Wait(time.Second, "A", "a"):                                        "A",
		reconciler.Blocked("x", "B", "b"):                                             "B",
		reconciler.Stalled("C", 0, errors.New("c")):                                   "C",
		fmt.Errorf("in step: %w", reconciler.Blocked("x", "D", "d")):                  "D",
		errors.Join(errors.New("other"), reconciler.Wait(0, "E", "e")):                "E",
		errors.New("plain"):                                                           "",
		reconciler.ErrUnknown:                                                         "",
		&reconciler.StalledError{Reason: "F", Cause: reconciler.Wait(0, "inner", "")}: "inner",
	} {
		t.Run(fmt.Sprintf("%T %v: %q", outcome, outcome, want), func(t *testing.T) {
			equal(t, "reason", want, reconciler.Reason(outcome))
		})
	}
	t.Run("no outcome: no reason", func(t *testing.T) { equal(t, "reason", "", reconciler.Reason(nil)) })
}

func TestStalledErrorUnwrapsCause(t *testing.T) {
	cause := errors.New("cause")
	if outcome := reconciler.Stalled("X", 0, cause); !errors.Is(outcome, cause) || outcome.Error() != "cause" {
		t.Errorf("Stalled = %v, want it to wrap and read as %v", outcome, cause)
	}
}

func TestObservedGenerationIsSetInEveryCondition(t *testing.T) {
	h := newHarness(t, example())
	h.kind.report = func(vm *pcapi.VM, _ error) {
		meta.SetStatusCondition(&vm.Status.Conditions, metav1.Condition{Type: pcapi.CreatedCondition, Status: metav1.ConditionTrue, Reason: "Created"})
	}
	h.mustReconcile()
	h.edit(func(vm *pcapi.VM) { vm.Generation = 4 })
	equal(t, "kstatus before the reconcile", status.InProgressStatus, kstatusOf(t, h.stored()))
	h.takeWrites()
	h.mustReconcile()
	h.wantWrites(1)
	vm := h.stored()
	equal(t, "observedGeneration", int64(4), vm.Status.ObservedGeneration)
	for _, c := range vm.Status.Conditions {
		equal(t, "observedGeneration of "+c.Type, int64(4), c.ObservedGeneration)
	}
	equal(t, "kstatus after the reconcile", status.CurrentStatus, kstatusOf(t, vm))
}
