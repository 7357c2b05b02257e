package reconciler_test

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// TestEventsTellTheStoryOnce follows one object through its life: each chapter
// is two passes, the second of which has nothing new to tell.
func TestEventsTellTheStoryOnce(t *testing.T) {
	created := func(is metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{Type: v1alpha1.CreatedCondition, Status: is, Reason: reason, Message: message}
	}
	chapters := []struct {
		name    string
		outcome error
		created *metav1.Condition
		want    []string
	}{
		{
			name:    "a condition that begins as False leaves the word to Ready",
			outcome: reconciler.Wait(time.Minute, "CloudUnavailable", "waiting"), created: created(metav1.ConditionFalse, "Pending", "not yet"),
			want: []string{"Normal CloudUnavailable Ready: waiting"},
		},
		{
			name:    "another message alone is no event",
			outcome: reconciler.Wait(time.Minute, "CloudUnavailable", "still waiting"), created: created(metav1.ConditionFalse, "Pending", "not yet, still"),
		},
		{
			name:    "a condition of the story speaks, and Ready holds its tongue",
			outcome: reconciler.Wait(time.Minute, "Creating", "building"), created: created(metav1.ConditionFalse, "Creating", "the cloud builds it"),
			want: []string{"Normal Creating Created: the cloud builds it"},
		},
		{
			name:    "the good end of it",
			created: created(metav1.ConditionTrue, "Created", "server s1"),
			want:    []string{"Normal Created Created: server s1"},
		},
		{
			name:    "Ready speaks where the story does not change; to be ready no longer is a warning",
			outcome: reconciler.Blocked("Cloud/x", "CloudUnavailable", "away"), created: created(metav1.ConditionTrue, "Created", "server s1"),
			want: []string{"Warning CloudUnavailable Ready: away"},
		},
		{
			name:    "a pass that failed is a warning",
			outcome: errors.New("it broke"), created: created(metav1.ConditionTrue, "Created", "server s1"),
			want: []string{"Warning Error Ready: it broke"},
		},
		{
			name:    "so is a stall, told by the story",
			outcome: reconciler.Stalled("Lost", 0, errors.New("gone")), created: created(metav1.ConditionFalse, "Lost", "server s1 is gone, 100% of it"),
			want: []string{"Warning Lost Created: server s1 is gone, 100% of it"},
		},
	}
	h := newHouse(t, example())
	for _, chapter := range chapters {
		h.kind.outcome(chapter.outcome)
		h.kind.report = func(vm *v1alpha1.VM, _ error) { meta.SetStatusCondition(&vm.Status.Conditions, *chapter.created) }
		for _, want := range [][]string{chapter.want, nil} {
			if _, err := h.pass(); err != nil && reconciler.Reason(chapter.outcome) != "" {
				t.Fatalf("%s: Reconcile: %v", chapter.name, err)
			}
			t.Log(chapter.name)
			h.wantEvents(want...)
		}
	}
}

func TestAPauseIsNoEventOfItsOwn(t *testing.T) {
	h := newHouse(t, example(paused))
	h.mustPass()
	h.wantEvents()
}
