package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

var (
	vms      = schema.GroupResource{Group: pcapi.GroupVersion.Group, Resource: "vms"}
	conflict = apierrors.NewConflict(vms, "a", errors.New("changed meanwhile"))
)

// stale is the result of a reconcile whose read was stale.
var stale = ctrl.Result{RequeueAfter: 50 * time.Millisecond}

func deleted(vm *pcapi.VM) {
	now := metav1.Now()
	vm.DeletionTimestamp = &now
}

// pausedBy gives an object the annotation with a value.
func pausedBy(value string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Annotations = map[string]string{pcapi.PausedAnnotation: value} }
}

func paused(vm *pcapi.VM) {
	vm.Annotations = map[string]string{pcapi.PausedAnnotation: "true"}
}

func TestReconcileRunsStepsInOrder(t *testing.T) {
	h := newHarness(t, example())
	h.kind.plan = func() ([]string, error) {
		return []string{"one", "two", "three"}, reconciler.Wait(time.Minute, "X", "x")
	}
	h.mustReconcile()
	equal(t, "calls", []string{"observe", "plan observed", "act observed one", "act observed two", "act observed three", "report observed"}, h.kind.calls)

	h.kind.act = func(_ context.Context, _ *pcapi.VM, step string) error {
		if step == "two" {
			return reconciler.Stalled("Two", 0, errors.New("step two failed"))
		}
		return nil
	}
	h.mustReconcile()
	equal(t, "calls when a step ends the reconcile", []string{"observe", "plan observed", "act observed one", "act observed two", "report observed"}, h.kind.calls)
	equal(t, "reason", "Two", meta.FindStatusCondition(h.stored().Status.Conditions, pcapi.ReadyCondition).Reason)

	h.kind.observe = func(context.Context, *pcapi.VM) error {
		return reconciler.Stalled("Blind", 0, errors.New("cannot observe"))
	}
	h.mustReconcile()
	equal(t, "calls when Observe fails: the status is still reported", []string{"observe", "report observed"}, h.kind.calls)
	equal(t, "reason", "Blind", meta.FindStatusCondition(h.stored().Status.Conditions, pcapi.ReadyCondition).Reason)
}

func TestReconcileHasDeadline(t *testing.T) {
	h := newHarness(t, example())
	h.kind.observe = func(ctx context.Context, _ *pcapi.VM) error {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > time.Minute {
			t.Errorf("deadline %v, %v; want one within a minute", deadline, ok)
		}
		return nil
	}
	h.mustReconcile()
}

func TestReconcileUsesFlowOfNamespace(t *testing.T) {
	h := newHarness(t, example())
	begun := time.Now()
	h.kind.observe = func(ctx context.Context, vm *pcapi.VM) error {
		flow := cloud.FlowOf(ctx)
		equal(t, "flow", vm.Namespace, flow.Name)
		if flow.Since.Before(begun) || flow.Since.After(time.Now()) {
			t.Errorf("the flow began at %s, want the start of the reconcile", flow.Since)
		}
		return nil
	}
	h.mustReconcile()
}

func TestClaimAndStatusAreTwoWrites(t *testing.T) {
	h := newHarness(t, example(func(vm *pcapi.VM) { vm.Finalizers = nil }))
	h.kind.plan = func() ([]string, error) { return []string{"claim"}, nil }
	h.kind.act = func(ctx context.Context, vm *pcapi.VM, _ string) error {
		vm.Status.VMID = "s1"
		return reconciler.Claim(ctx, h.client, vm, finalizer, nil)
	}
	h.mustReconcile()
	var to []string
	for _, w := range h.takeWrites() {
		to = append(to, w.To)
	}
	equal(t, "writes", []string{"object", "status"}, to)
	vm := h.stored()
	equal(t, "status field that the step set before the claim", "s1", vm.Status.VMID)
	equal(t, "finalizers", []string{finalizer}, vm.Finalizers)
}

func TestReconcileWritesNothing(t *testing.T) {
	step := func(err error) func(*harness) {
		return func(h *harness) {
			h.kind.plan = func() ([]string, error) { return []string{"one"}, nil }
			h.kind.act = func(context.Context, *pcapi.VM, string) error { return err }
		}
	}
	observe := func(err error) func(*harness) {
		return func(h *harness) { h.kind.observe = func(context.Context, *pcapi.VM) error { return err } }
	}
	quiet := &reconciler.WaitError{After: 7 * time.Second, Reason: "X", Message: "x", Quiet: true}
	tests := []struct {
		name string
		vm   *pcapi.VM
		do   func(*harness)
		want ctrl.Result
		// calls are the methods of the kind that are called.
		calls []string
	}{
		{name: "deleted object without the finalizer: not reconciled", vm: example(deleted, func(vm *pcapi.VM) { vm.Finalizers = []string{"other/one"} }), do: func(*harness) {}},
		{name: "quiet wait: requeued", vm: example(), do: step(quiet), want: ctrl.Result{RequeueAfter: 7 * time.Second}, calls: []string{"observe", "plan observed", "act observed one"}},
		{name: "Observe returns ErrUnknown: not requeued", vm: example(), do: observe(reconciler.ErrUnknown), calls: []string{"observe"}},
		{name: "step returns a wrapped ErrUnknown: not requeued", vm: example(), do: step(fmt.Errorf("step: %w", reconciler.ErrUnknown)), calls: []string{"observe", "plan observed", "act observed one"}},
		{name: "step returns a conflict: requeued", vm: example(), do: step(fmt.Errorf("claim: %w", conflict)), want: stale, calls: []string{"observe", "plan observed", "act observed one"}},
		{name: "Observe returns a conflict: requeued", vm: example(), do: observe(conflict), want: stale, calls: []string{"observe"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t, tc.vm)
			tc.do(h)
			equal(t, "result", tc.want, h.mustReconcile())
			equal(t, "calls", tc.calls, h.kind.calls)
			h.wantWrites(0)
			h.wantEvents()
		})
	}
}

func TestMissingObjectIsNotReconciled(t *testing.T) {
	h := newHarness(t, example(func(vm *pcapi.VM) { vm.Name = "b" }))
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	equal(t, "calls", []string(nil), h.kind.calls)
}

func TestPausedObjectIsNotReconciled(t *testing.T) {
	for name, vm := range map[string]*pcapi.VM{
		"not deleted":                 example(paused),
		"deleted":                     example(paused, deleted),
		"the annotation is True":      example(pausedBy("True")),
		"the annotation is yes":       example(pausedBy("yes")),
		"the annotation is 1":         example(pausedBy("1")),
		"the annotation has no value": example(pausedBy("")),
	} {
		t.Run(name, func(t *testing.T) {
			vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running", Message: "as it was"}}
			h := newHarness(t, vm)
			ended := 0
			h.reconciler.Paused = func(*pcapi.VM) { ended++ }
			equal(t, "result", ctrl.Result{}, h.mustReconcile())
			equal(t, "calls", []string(nil), h.kind.calls)
			equal(t, "what was begun ends", 1, ended)
			h.wantWrites(1)
			equal(t, "conditions", []metav1.Condition{
				{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running", Message: "as it was"},
				{
					Type: pcapi.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: pcapi.PausedReason,
					Message: `the object is paused by the annotation samplecontroller.k8s.io/paused: remove the annotation or set it to "false" to continue`,
				},
			}, h.stored().Status.Conditions, ignoreTime)
			h.mustReconcile()
			h.wantWrites(0)

			h.edit(func(vm *pcapi.VM) { vm.Annotations = nil })
			h.mustReconcile()
			equal(t, "calls once it is no longer paused", []string{"observe", "plan observed", "report observed"}, h.kind.calls)
			if c := meta.FindStatusCondition(h.stored().Status.Conditions, pcapi.ReconcilingCondition); c != nil {
				t.Errorf("Reconciling is still %s", c.Reason)
			}
		})
	}
}

func TestPausedAnnotationThatIsFalsePausesNothing(t *testing.T) {
	h := newHarness(t, example(pausedBy("false")))
	h.mustReconcile()
	equal(t, "calls", []string{"observe", "plan observed", "report observed"}, h.kind.calls)
}

func TestConflictOnPausePatchIsRequeued(t *testing.T) {
	h := newHarness(t, example(paused))
	h.refuse = conflict
	equal(t, "result", stale, h.mustReconcile())
	h.wantEvents()
}

// cached reads a VM as it was.
type cached struct {
	client.Client

	vm *pcapi.VM
}

func (c *cached) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	c.vm.DeepCopyInto(o.(*pcapi.VM))
	return nil
}

func TestDeletedObjectReportsWait(t *testing.T) {
	h := newHarness(t, example(deleted))
	h.kind.outcome(reconciler.Wait(time.Minute, "Requested", "the cloud is deleting it"))
	h.mustReconcile()
	h.wantWrites(1)
	equal(t, "reason", "Requested", meta.FindStatusCondition(h.stored().Status.Conditions, pcapi.ReadyCondition).Reason)
}

func TestReadErrorIsReturned(t *testing.T) {
	h := newHarness(t, example())
	h.reconciler.Client = failing{Client: h.client}
	if _, err := h.reconcile(); !errors.Is(err, errUnavailable) {
		t.Errorf("error %v, want %v", err, errUnavailable)
	}
}

var errUnavailable = errors.New("the API server is unavailable")

type failing struct{ client.Client }

func (failing) Get(context.Context, types.NamespacedName, client.Object, ...client.GetOption) error {
	return errUnavailable
}
