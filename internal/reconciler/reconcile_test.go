package reconciler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

var (
	vms      = schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "vms"}
	conflict = apierrors.NewConflict(vms, "a", errors.New("changed meanwhile"))
)

// stale is how a pass ends that read something old: soon, and without alarm.
var stale = ctrl.Result{RequeueAfter: 50 * time.Millisecond}

func deleted(vm *v1alpha1.VM) {
	now := metav1.Now()
	vm.DeletionTimestamp = &now
}

func paused(vm *v1alpha1.VM) {
	vm.Annotations = map[string]string{v1alpha1.PausedAnnotation: "true"}
}

func TestAPassGoesOneWay(t *testing.T) {
	h := newHouse(t, example())
	h.kind.plan = func() ([]string, error) {
		return []string{"one", "two", "three"}, reconciler.Wait(time.Minute, "X", "x")
	}
	h.mustPass()
	equal(t, "calls", []string{"observe", "plan observed", "act observed one", "act observed two", "act observed three", "report observed"}, h.kind.calls)

	h.kind.act = func(_ context.Context, _ *v1alpha1.VM, step string) error {
		if step == "two" {
			return reconciler.Stalled("Two", 0, errors.New("two does not go"))
		}
		return nil
	}
	h.mustPass()
	equal(t, "calls when a step ends the pass", []string{"observe", "plan observed", "act observed one", "act observed two", "report observed"}, h.kind.calls)
	equal(t, "reason", "Two", meta.FindStatusCondition(h.stored().Status.Conditions, v1alpha1.ReadyCondition).Reason)

	h.kind.observe = func(context.Context, *v1alpha1.VM) error {
		return reconciler.Stalled("Blind", 0, errors.New("cannot look"))
	}
	h.mustPass()
	equal(t, "calls when nothing could be observed: what was is still reported", []string{"observe", "report observed"}, h.kind.calls)
	equal(t, "reason", "Blind", meta.FindStatusCondition(h.stored().Status.Conditions, v1alpha1.ReadyCondition).Reason)
}

func TestAPassHasADeadline(t *testing.T) {
	h := newHouse(t, example())
	h.kind.observe = func(ctx context.Context, _ *v1alpha1.VM) error {
		if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > time.Minute {
			t.Errorf("deadline %v, %v; want one within a minute", deadline, ok)
		}
		return nil
	}
	h.mustPass()
}

func TestCallsToACloudAreOfTheNamespacesFlow(t *testing.T) {
	h := newHouse(t, example())
	begun := time.Now()
	h.kind.observe = func(ctx context.Context, vm *v1alpha1.VM) error {
		flow := cloud.FlowOf(ctx)
		equal(t, "flow", vm.Namespace, flow.Name)
		if flow.Since.Before(begun) || flow.Since.After(time.Now()) {
			t.Errorf("the flow's work began at %s, want the begin of the pass", flow.Since)
		}
		return nil
	}
	h.mustPass()
}

func TestStatusIsWrittenOnceAndOnlyWhenItChanged(t *testing.T) {
	h := newHouse(t, example())
	h.mustPass()
	h.wantWrites(1)
	equal(t, "host", host, h.stored().Status.Host)
	for range 3 {
		h.mustPass()
		h.wantWrites(0)
	}
	h.kind.report = func(vm *v1alpha1.VM, _ error) { vm.Status.Host = "h2" }
	h.mustPass()
	h.wantWrites(1)
	equal(t, "host", "h2", h.stored().Status.Host)
}

func TestAStepsMetadataIsNoReasonToWriteStatus(t *testing.T) {
	h := newHouse(t, example(func(vm *v1alpha1.VM) { vm.Finalizers = nil }))
	h.mustPass()
	h.took()
	h.kind.plan = func() ([]string, error) { return []string{"claim"}, nil }
	h.kind.act = func(ctx context.Context, vm *v1alpha1.VM, _ string) error {
		return reconciler.Claim(ctx, h.client, vm, finalizer, map[string]string{"example.com/name": "web"})
	}
	h.mustPass()
	for _, w := range h.took() {
		equal(t, "written to", "object", w.To)
	}
}

func TestOneStatusPatchBesideAClaim(t *testing.T) {
	h := newHouse(t, example(func(vm *v1alpha1.VM) { vm.Finalizers = nil }))
	h.kind.plan = func() ([]string, error) { return []string{"claim"}, nil }
	h.kind.act = func(ctx context.Context, vm *v1alpha1.VM, _ string) error {
		vm.Status.VMID = "s1"
		return reconciler.Claim(ctx, h.client, vm, finalizer, nil)
	}
	h.mustPass()
	var to []string
	for _, w := range h.took() {
		to = append(to, w.To)
	}
	equal(t, "writes", []string{"object", "status"}, to)
	vm := h.stored()
	equal(t, "what the step learned before the claim is kept", "s1", vm.Status.VMID)
	equal(t, "finalizers", []string{finalizer}, vm.Finalizers)
}

func TestNothingIsWrittenWhere(t *testing.T) {
	step := func(err error) func(*house) {
		return func(h *house) {
			h.kind.plan = func() ([]string, error) { return []string{"one"}, nil }
			h.kind.act = func(context.Context, *v1alpha1.VM, string) error { return err }
		}
	}
	observe := func(err error) func(*house) {
		return func(h *house) { h.kind.observe = func(context.Context, *v1alpha1.VM) error { return err } }
	}
	quiet := &reconciler.WaitError{After: 7 * time.Second, Reason: "X", Message: "x", Quiet: true}
	tests := []struct {
		name string
		vm   *v1alpha1.VM
		do   func(*house)
		want ctrl.Result
		// calls that the kind still gets.
		calls []string
	}{
		{name: "a deleted object is not ours: its finalizer is off", vm: example(deleted, func(vm *v1alpha1.VM) { vm.Finalizers = []string{"other/one"} }), do: func(*house) {}},
		{name: "what is awaited comes before anybody reads of it", vm: example(), do: step(quiet), want: ctrl.Result{RequeueAfter: 7 * time.Second}, calls: []string{"observe", "plan observed", "act observed one"}},
		{name: "nothing could be learned", vm: example(), do: observe(reconciler.ErrUnknown), calls: []string{"observe"}},
		{name: "nothing could be learned, said with more words", vm: example(), do: step(fmt.Errorf("step: %w", reconciler.ErrUnknown)), calls: []string{"observe", "plan observed", "act observed one"}},
		{name: "a step lost a race", vm: example(), do: step(fmt.Errorf("claim: %w", conflict)), want: stale, calls: []string{"observe", "plan observed", "act observed one"}},
		{name: "a read lost a race", vm: example(), do: observe(conflict), want: stale, calls: []string{"observe"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t, tc.vm)
			tc.do(h)
			equal(t, "result", tc.want, h.mustPass())
			equal(t, "calls", tc.calls, h.kind.calls)
			h.wantWrites(0)
			h.wantEvents()
		})
	}
}

func TestAnObjectThatIsGoneNeedsNoPass(t *testing.T) {
	h := newHouse(t, example(func(vm *v1alpha1.VM) { vm.Name = "b" }))
	equal(t, "result", ctrl.Result{}, h.mustPass())
	equal(t, "calls", []string(nil), h.kind.calls)
}

func TestPausedObjectsAreLeftAlone(t *testing.T) {
	for name, vm := range map[string]*v1alpha1.VM{
		"one in life":           example(paused),
		"one that is to go too": example(paused, deleted),
	} {
		t.Run(name, func(t *testing.T) {
			vm.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running", Message: "as it was"}}
			h := newHouse(t, vm)
			equal(t, "result", ctrl.Result{}, h.mustPass())
			equal(t, "calls", []string(nil), h.kind.calls)
			h.wantWrites(1)
			equal(t, "conditions", []metav1.Condition{
				{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running", Message: "as it was"},
				{
					Type: v1alpha1.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.PausedReason,
					Message: `nothing is done while the annotation samplecontroller.k8s.io/paused is "true"; remove it to go on`,
				},
			}, h.stored().Status.Conditions, ignoreTime)
			h.mustPass()
			h.wantWrites(0)

			h.edit(func(vm *v1alpha1.VM) { vm.Annotations = nil })
			h.mustPass()
			equal(t, "calls once it is no longer paused", []string{"observe", "plan observed", "report observed"}, h.kind.calls)
			if c := meta.FindStatusCondition(h.stored().Status.Conditions, v1alpha1.ReconcilingCondition); c != nil {
				t.Errorf("Reconciling is still %s", c.Reason)
			}
		})
	}
}

func TestOnlyTrueMeansPaused(t *testing.T) {
	h := newHouse(t, example(func(vm *v1alpha1.VM) { vm.Annotations = map[string]string{v1alpha1.PausedAnnotation: "false"} }))
	h.mustPass()
	equal(t, "calls", []string{"observe", "plan observed", "report observed"}, h.kind.calls)
}

func TestTheStatusPatchFitsNoOtherObject(t *testing.T) {
	h := newHouse(t, example())
	h.mustPass()
	for _, w := range h.took() {
		var patch struct {
			Metadata map[string]any `json:"metadata"`
			Spec     map[string]any `json:"spec"`
		}
		if err := json.Unmarshal([]byte(w.Data), &patch); err != nil {
			t.Fatalf("patch %s: %v", w.Data, err)
		}
		equal(t, "metadata of the patch: a UID that the API server compares, and nothing that would undo others' changes",
			map[string]any{"uid": "uid-a"}, patch.Metadata)
		equal(t, "spec in the patch", map[string]any(nil), patch.Spec)
	}
}

// TestAStandstillIsNotSaidOfWhatChangedMeanwhile: another manager may have
// brought the object further since this pass read it.
func TestAStandstillIsNotSaidOfWhatChangedMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		outcome error
		want    string
	}{
		"a standstill": {reconciler.Stalled("Taken", 0, errors.New("the name is taken")), "s1"},
		"a wait":       {reconciler.Wait(time.Second, "Creating", "on its way"), "s1 " + host},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, example())
			h.kind.outcome(tc.outcome)
			h.kind.observe = func(ctx context.Context, vm *v1alpha1.VM) error {
				other := vm.DeepCopy()
				other.Status.VMID = "s1"
				return h.client.Status().Patch(ctx, other, client.MergeFrom(vm.DeepCopy()))
			}
			result, err := h.runs.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}})
			if err != nil || result.RequeueAfter == 0 {
				t.Errorf("Reconcile = %v, %v, want another pass", result, err)
			}
			stored := h.stored().Status
			equal(t, "status", tc.want, strings.TrimSpace(stored.VMID+" "+stored.Host))
		})
	}
}

func TestTheStatusPatchMayFail(t *testing.T) {
	refused := errors.New("no route to host")
	broken := errors.New("it broke")
	tests := []struct {
		name            string
		refuse, outcome error
		want            ctrl.Result
		errs            []error
	}{
		{name: "the object went meanwhile: there is nothing left to tell", refuse: apierrors.NewNotFound(vms, "a")},
		{name: "another took its name: read it anew", refuse: conflict, want: stale},
		{name: "another took its name while a pass failed", refuse: conflict, outcome: broken, want: stale},
		{name: "the API server is away", refuse: refused, errs: []error{refused}},
		{name: "the API server is away and the pass failed: both are told", refuse: refused, outcome: broken, errs: []error{refused, broken}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t, example())
			h.refuse = tc.refuse
			h.kind.outcome(tc.outcome)
			result, err := h.pass()
			equal(t, "result", tc.want, result)
			if (err != nil) != (tc.errs != nil) {
				t.Errorf("error %v, want %v", err, tc.errs)
			}
			for _, want := range tc.errs {
				if !errors.Is(err, want) {
					t.Errorf("error %v, want it to hold %v", err, want)
				}
			}
			if tc.errs != nil {
				h.wantEvents()
			}
		})
	}
}

func TestAConflictOnThePausePatchIsQuiet(t *testing.T) {
	h := newHouse(t, example(paused))
	h.refuse = conflict
	equal(t, "result", stale, h.mustPass())
	h.wantEvents()
}

func TestAReleasedObjectIsNotWrittenTo(t *testing.T) {
	h := newHouse(t, example(deleted))
	h.kind.summary = reconciler.Summary{Reason: "Deleted", Message: "it is 100% gone"}
	h.kind.plan = func() ([]string, error) { return []string{"release"}, nil }
	h.kind.act = func(ctx context.Context, vm *v1alpha1.VM, _ string) error {
		return reconciler.Release(ctx, h.client, vm, finalizer)
	}
	equal(t, "result", ctrl.Result{}, h.mustPass())
	writes := h.took()
	if len(writes) != 1 || writes[0].To != "object" {
		t.Errorf("writes %v, want the release alone", writes)
	}
	h.wantEvents("Normal Deleted Delete: it is 100% gone")
	err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, &v1alpha1.VM{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("Get = %v, want the object gone", err)
	}
}

func TestADeletedObjectThatWaitsTellsSo(t *testing.T) {
	h := newHouse(t, example(deleted))
	h.kind.outcome(reconciler.Wait(time.Minute, "Requested", "the cloud is deleting it"))
	h.mustPass()
	h.wantWrites(1)
	equal(t, "reason", "Requested", meta.FindStatusCondition(h.stored().Status.Conditions, v1alpha1.ReadyCondition).Reason)
}

func TestAReadErrorIsTriedAgain(t *testing.T) {
	h := newHouse(t, example())
	h.runs.Client = failing{Client: h.client}
	if _, err := h.pass(); !errors.Is(err, errAway) {
		t.Errorf("error %v, want %v", err, errAway)
	}
}

var errAway = errors.New("the API server is away")

type failing struct{ client.Client }

func (failing) Get(context.Context, types.NamespacedName, client.Object, ...client.GetOption) error {
	return errAway
}
