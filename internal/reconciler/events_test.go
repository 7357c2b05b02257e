package reconciler_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// TestEventsAreRecordedOncePerTransition reconciles an object through the outcomes of
// all stages up to one, and then again. The second reconcile records no event.
func TestEventsAreRecordedOncePerTransition(t *testing.T) {
	created := func(is metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{Type: pcapi.CreatedCondition, Status: is, Reason: reason, Message: message}
	}
	stages := []struct {
		name    string
		outcome error
		created *metav1.Condition
		want    []string
	}{
		{
			name:    "event condition begins as False: Ready is recorded",
			outcome: reconciler.Wait(time.Minute, "CloudUnavailable", "waiting"), created: created(metav1.ConditionFalse, "Pending", "not yet"),
			want: []string{"Normal CloudUnavailable Ready: waiting"},
		},
		{
			name:    "only the message changes: no event",
			outcome: reconciler.Wait(time.Minute, "CloudUnavailable", "still waiting"), created: created(metav1.ConditionFalse, "Pending", "not yet, still"),
		},
		{
			name:    "event condition changes: recorded instead of Ready",
			outcome: reconciler.Wait(time.Minute, "Creating", "building"), created: created(metav1.ConditionFalse, "Creating", "the cloud builds it"),
			want: []string{"Normal Creating Created: the cloud builds it"},
		},
		{
			name:    "event condition becomes True: recorded",
			created: created(metav1.ConditionTrue, "Created", "server s1"),
			want:    []string{"Normal Created Created: server s1"},
		},
		{
			name:    "only Ready changes, to False: warning for Ready",
			outcome: reconciler.Blocked("Cloud/x", "CloudUnavailable", "away"), created: created(metav1.ConditionTrue, "Created", "server s1"),
			want: []string{"Warning CloudUnavailable Ready: away"},
		},
		{
			name:    "reconcile fails: warning for Ready",
			outcome: errors.New("it broke"), created: created(metav1.ConditionTrue, "Created", "server s1"),
			want: []string{"Warning Error Ready: it broke"},
		},
		{
			name:    "stalled and event condition changes: warning for the condition",
			outcome: reconciler.Stalled("Lost", 0, errors.New("gone")), created: created(metav1.ConditionFalse, "Lost", "server s1 is gone, 100% of it"),
			want: []string{"Warning Lost Created: server s1 is gone, 100% of it"},
		},
	}
	for i, stage := range stages {
		t.Run(stage.name, func(t *testing.T) {
			h := newHarness(t, example())
			reconcile := func(outcome error, created *metav1.Condition) {
				h.kind.outcome(outcome)
				h.kind.report = func(vm *pcapi.VM, _ error) { meta.SetStatusCondition(&vm.Status.Conditions, *created) }
				if _, err := h.reconcile(); err != nil && reconciler.Reason(outcome) != "" {
					t.Fatalf("Reconcile: %v", err)
				}
			}
			for _, earlier := range stages[:i] {
				reconcile(earlier.outcome, earlier.created)
			}
			h.events = nil
			for _, want := range [][]string{stage.want, nil} {
				reconcile(stage.outcome, stage.created)
				h.wantEvents(want...)
			}
		})
	}
}

// TestWarningsAreRecordedBesideReady reports a condition whose reason ListingIncomplete alone is
// recorded, one status after another.
func TestWarningsAreRecordedBesideReady(t *testing.T) {
	h := newHarness(t, example())
	const warning = "Warning ListingIncomplete Conformant: x"
	for _, stage := range []struct {
		name    string
		outcome error
		is      metav1.ConditionStatus
		reason  string
		want    []string
	}{
		{"it begins as False: recorded, and Ready, too", nil, metav1.ConditionFalse, pcapi.ListingIncompleteReason, []string{"Normal Running Ready: all is well", warning}},
		{"another reason: not recorded", nil, metav1.ConditionFalse, pcapi.FieldsIgnoredReason, nil},
		{"from the other reason: recorded", nil, metav1.ConditionFalse, pcapi.ListingIncompleteReason, []string{warning}},
		{"True: not recorded", nil, metav1.ConditionTrue, pcapi.ReadableReason, nil},
		{"while Ready becomes False: both are recorded", reconciler.Blocked("Cloud/x", "CloudUnavailable", "away"), metav1.ConditionFalse, pcapi.ListingIncompleteReason,
			[]string{"Warning CloudUnavailable Ready: away", warning}},
	} {
		h.events = nil
		h.kind.outcome(stage.outcome)
		h.kind.report = func(vm *pcapi.VM, _ error) {
			meta.SetStatusCondition(&vm.Status.Conditions, metav1.Condition{Type: pcapi.ConformantCondition, Status: stage.is, Reason: stage.reason, Message: "x"})
		}
		for range 2 {
			h.mustReconcile()
		}
		t.Log(stage.name)
		h.wantEvents(stage.want...)
	}
}

func TestPauseRecordsNoEvent(t *testing.T) {
	h := newHarness(t, example(paused))
	h.mustReconcile()
	h.wantEvents()
}

// TestLogHasOneLineForEachTransition reconciles one object through outcomes, one after another.
func TestLogHasOneLineForEachTransition(t *testing.T) {
	h := newHarness(t, example())
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	for _, stage := range []struct {
		name    string
		outcome error
		want    []string
	}{
		{"waits: Reconciling has no line", reconciler.Wait(time.Minute, "Creating", "building"),
			[]string{`"level"=0 "msg"="condition changed" "condition"="Ready" "status"="False" "reason"="Creating" "message"="building"`}},
		{"only the message changes: no line", reconciler.Wait(time.Minute, "Creating", "still building"), nil},
		{"stalls with another reason: the line of Ready says so", reconciler.Stalled("Rejected", 0, errors.New("too large")),
			[]string{`"level"=0 "msg"="condition changed" "condition"="Ready" "status"="False" "reason"="Rejected" "message"="too large" "stalled"=true`}},
		{"waits with the reason for which it stalled: Reconciling and Stalled have lines", reconciler.Wait(time.Minute, "Rejected", "sent again"), []string{
			`"level"=0 "msg"="condition changed" "condition"="Reconciling" "status"="True" "reason"="Progressing" "message"="sent again"`,
			`"level"=0 "msg"="condition removed" "condition"="Stalled"`,
		}},
		{"in sync", nil, []string{`"level"=0 "msg"="condition changed" "condition"="Ready" "status"="True" "reason"="Running" "message"="all is well"`}},
	} {
		lines = nil
		h.kind.outcome(stage.outcome)
		if _, err := h.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}}); err != nil {
			t.Fatalf("%s: Reconcile: %v", stage.name, err)
		}
		if diff := cmp.Diff(stage.want, lines); diff != "" {
			t.Errorf("%s: log (-want +got):\n%s", stage.name, diff)
		}
	}
}

func TestUnknownAnnotationIsWarnedOfOnce(t *testing.T) {
	h := newHarness(t, example(func(vm *pcapi.VM) { vm.Annotations = map[string]string{pcapi.DeletionProtectionAnnotation: "yes"} }))
	for range 3 {
		h.mustReconcile()
	}
	warned := 0
	for _, e := range h.events {
		if strings.Contains(e, "Warning UnknownAnnotation") {
			warned++
		}
	}
	equal(t, "warnings", 1, warned)
}
