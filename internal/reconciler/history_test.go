package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

var historyOfA = types.NamespacedName{Namespace: "ns", Name: "a"}

func (h *harness) wantHistory(want ...reconciler.PastStep) {
	h.t.Helper()
	equal(h.t, "history", want, h.reconciler.History.Of("VM", historyOfA), cmpopts.IgnoreFields(reconciler.PastStep{}, "Time", "Duration"), gocmp.Transformer("nil", func(s []reconciler.PastStep) []reconciler.PastStep {
		return append([]reconciler.PastStep{}, s...)
	}))
}

func TestHistoryHasStepsAndTheirOutcomes(t *testing.T) {
	h := newHarness(t, example())
	h.reconciler.History = reconciler.NewHistory()
	h.mustReconcile()
	h.wantHistory() // nothing was done

	h.kind.plan = func() ([]string, error) { return []string{"Claim", "Create", "Adopt"}, nil }
	h.kind.act = func(_ context.Context, _ *pcapi.VM, step string) error {
		if step == "Create" {
			return reconciler.Stalled("Rejected", 0, errors.New("the cloud has no such template"))
		}
		return nil
	}
	h.mustReconcile()
	h.wantHistory(reconciler.PastStep{Step: "Claim"}, reconciler.PastStep{Step: "Create", Reason: "Rejected", Message: "the cloud has no such template"})
	for range 4 {
		h.mustReconcile()
	}
	if n := len(h.reconciler.History.Of("VM", historyOfA)); n != 8 {
		t.Errorf("%d steps are remembered, want the last 8", n)
	}
}

func TestHistoryHasReadsOfTheCloudAndNoOthers(t *testing.T) {
	for needs, want := range map[reconciler.Needs][]reconciler.PastStep{
		reconciler.NeedsCloud: {{Step: "Look"}}, reconciler.NeedsBrakeOff: {},
	} {
		t.Run(fmt.Sprint(needs), func(t *testing.T) {
			h := newHarness(t, example())
			h.reconciler.History, h.kind.needs = reconciler.NewHistory(), needs
			h.kind.plan = func() ([]string, error) { return []string{"Look"}, nil }
			h.mustReconcile()
			h.wantHistory(want...)
		})
	}
}

func TestHistoryForgetsObjectThatIsGone(t *testing.T) {
	h := newHarness(t, example(func(vm *pcapi.VM) { vm.Finalizers = nil }))
	h.reconciler.History = reconciler.NewHistory()
	h.kind.plan = func() ([]string, error) { return []string{"Claim"}, nil }
	h.mustReconcile()
	h.wantHistory(reconciler.PastStep{Step: "Claim"})
	if err := h.client.Delete(t.Context(), h.stored()); err != nil {
		t.Fatal(err)
	}
	h.mustReconcile()
	h.wantHistory()
}

func TestHistoryIsBounded(t *testing.T) {
	h := newHarness(t, example())
	h.reconciler.History = reconciler.NewHistory()
	h.kind.plan = func() ([]string, error) { return []string{"Claim"}, nil }
	h.mustReconcile()
	reconciler.FillHistory(h.reconciler.History, 1999)
	h.wantHistory(reconciler.PastStep{Step: "Claim"}) // and is now the one that was used last
	reconciler.FillHistory(h.reconciler.History, 2000)
	h.wantHistory()
}

func TestHistoryCutsMessages(t *testing.T) {
	h := newHarness(t, example())
	h.reconciler.History = reconciler.NewHistory()
	h.kind.plan = func() ([]string, error) { return []string{"Create"}, nil }
	h.kind.act = func(context.Context, *pcapi.VM, string) error {
		return reconciler.Stalled("Rejected", 0, errors.New(strings.Repeat("ж", 200)))
	}
	h.mustReconcile()
	h.wantHistory(reconciler.PastStep{Step: "Create", Reason: "Rejected", Message: strings.Repeat("ж", 128)})
}
