package reconciler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// owned makes the object of a harness this manager's as long as owned returns true.
func (h *harness) owned(owned func() bool) (disowned *int) {
	disowned = new(int)
	h.reconciler.Owns = func(context.Context, *pcapi.VM) (func() bool, error) { return owned, nil }
	h.reconciler.Disowned = func(*pcapi.VM) { *disowned++ }
	return disowned
}

func TestObjectOfAnotherManagerIsNotTouched(t *testing.T) {
	for name, change := range map[string]func(*pcapi.VM){
		"as it is":       func(*pcapi.VM) {},
		"paused":         func(vm *pcapi.VM) { vm.Annotations = map[string]string{pcapi.PausedAnnotation: "true"} },
		"without status": func(vm *pcapi.VM) { vm.Finalizers = nil },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, example(change))
			disowned := h.owned(func() bool { return false })
			result := h.mustReconcile()
			equal(t, "result", time.Duration(0), result.RequeueAfter)
			equal(t, "calls", []string(nil), h.kind.calls)
			equal(t, "what is remembered of it is dropped", 1, *disowned)
			h.wantWrites(0)
			h.wantEvents()
		})
	}
}

func TestObjectOfThisManagerIsReconciled(t *testing.T) {
	h := newHarness(t, example())
	disowned := h.owned(func() bool { return true })
	h.mustReconcile()
	h.wantWrites(1)
	equal(t, "disowned", 0, *disowned)
}

func TestObjectWhoseManagerIsNotKnownYetIsReconciledLater(t *testing.T) {
	h := newHarness(t, example())
	h.reconciler.Owns = func(context.Context, *pcapi.VM) (func() bool, error) {
		return nil, &reconciler.WaitError{After: time.Second, Quiet: true}
	}
	equal(t, "again after", time.Second, h.mustReconcile().RequeueAfter)
	failure := errors.New("the API server does not answer")
	h.reconciler.Owns = func(context.Context, *pcapi.VM) (func() bool, error) { return nil, failure }
	if _, err := h.reconcile(); !errors.Is(err, failure) {
		t.Errorf("Reconcile: %v, want a retry with back-off", err)
	}
	h.wantWrites(0)
	equal(t, "calls", []string(nil), h.kind.calls)
}

func TestEffectsEndWhenTheObjectBecomesAnotherManagers(t *testing.T) {
	tests := map[string]struct {
		needs  reconciler.Needs
		during string
		steps  []string
		writes int
	}{
		"during observe: no step and no status":                          {during: "observe", steps: nil, writes: 0},
		"during a step that did not change the cloud: no further one":    {during: "first", steps: []string{"first"}, writes: 0},
		"during a step that changed the cloud: its result is still kept": {needs: reconciler.Mutates | reconciler.NeedsCloud, during: "first", steps: []string{"first"}, writes: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, example())
			owned := true
			h.owned(func() bool { return owned })
			h.kind.needs = tc.needs
			h.kind.plan = func() ([]string, error) { return []string{"first", "second"}, nil }
			h.kind.observe = func(context.Context, *pcapi.VM) error {
				owned = tc.during != "observe"
				return nil
			}
			var steps []string
			h.kind.act = func(ctx context.Context, _ *pcapi.VM, step string) error {
				if !cloud.Permitted(ctx) {
					t.Error("a step begins without a permit to send")
				}
				steps = append(steps, step)
				owned = tc.during != step
				if cloud.Permitted(ctx) != owned {
					t.Errorf("permitted to send: %v, want %v", !owned, owned)
				}
				return nil
			}
			if result := h.mustReconcile(); result.RequeueAfter == 0 {
				t.Error("not reconciled again, to drop what is remembered")
			}
			equal(t, "steps", tc.steps, steps)
			h.wantWrites(tc.writes)
		})
	}
}

func TestAbandonedObjectOfAnotherManagerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newAbandonedWorld(t, example(unclaimed))
		owned := true
		w.owned(func() bool { return owned })
		w.created = func(ctx context.Context, vm *pcapi.VM) error {
			owned = false
			return w.forget(ctx, vm)
		}
		wantRequeue(t, 30*time.Second, w.mustReconcile())
		equal(t, "kept, if the Cloud comes back", 1, len(w.reconciler.Abandoned()))
		<-time.After(25 * time.Hour)
		equal(t, "again after", time.Duration(0), w.mustReconcile().RequeueAfter)
		equal(t, "kept", 0, len(w.reconciler.Abandoned()))
		equal(t, "deleted on another manager's cloud", []string(nil), w.deletes)
	})
}
