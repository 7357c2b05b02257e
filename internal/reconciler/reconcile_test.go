package reconciler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
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

func TestStatusIsWrittenOnlyWhenChanged(t *testing.T) {
	h := newHarness(t, example())
	h.mustReconcile()
	h.wantWrites(1)
	equal(t, "host", host, h.stored().Status.Host)
	for range 3 {
		h.mustReconcile()
		h.wantWrites(0)
	}
	h.kind.report = func(vm *pcapi.VM, _ error) { vm.Status.Host = "h2" }
	h.mustReconcile()
	h.wantWrites(1)
	equal(t, "host", "h2", h.stored().Status.Host)
}

func TestMetadataWriteCausesNoStatusWrite(t *testing.T) {
	h := newHarness(t, example(func(vm *pcapi.VM) { vm.Finalizers = nil }))
	h.mustReconcile()
	h.takeWrites()
	h.kind.plan = func() ([]string, error) { return []string{"claim"}, nil }
	h.kind.act = func(ctx context.Context, vm *pcapi.VM, _ string) error {
		return reconciler.Claim(ctx, h.client, vm, finalizer, map[string]string{"example.com/name": "web"})
	}
	h.mustReconcile()
	for _, w := range h.takeWrites() {
		equal(t, "written to", "object", w.To)
	}
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

func TestStatusPatchContainsResourceVersion(t *testing.T) {
	h := newHarness(t, example())
	read := h.stored().ResourceVersion
	h.mustReconcile()
	h.wantSent(1)
	for _, w := range h.takeWrites() {
		var patch struct {
			Metadata map[string]any `json:"metadata"`
			Spec     map[string]any `json:"spec"`
		}
		if err := json.Unmarshal([]byte(w.Data), &patch); err != nil {
			t.Fatalf("patch %s: %v", w.Data, err)
		}
		equal(t, "metadata of the patch: only the resourceVersion, which the API server compares; it ignores the UID",
			map[string]any{"resourceVersion": read}, patch.Metadata)
		equal(t, "spec in the patch", map[string]any(nil), patch.Spec)
	}
}

// TestStalledIsNotWrittenOntoChangedObject guards an object whose status another
// manager changed after this reconcile read it. Other outcomes are written by the
// reconcile that follows, which reads what the other manager wrote.
func TestStalledIsNotWrittenOntoChangedObject(t *testing.T) {
	for name, tc := range map[string]struct {
		outcome error
		want    string
	}{
		"stalled: not written": {reconciler.Stalled("Taken", 0, errors.New("the name is taken")), "s1"},
		"waiting: written":     {reconciler.Wait(time.Second, "Creating", "on its way"), "s1 " + host},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, example())
			h.kind.outcome(tc.outcome)
			h.kind.observe = func(ctx context.Context, vm *pcapi.VM) error {
				other := vm.DeepCopy()
				other.Status.VMID = "s1"
				return h.client.Status().Patch(ctx, other, client.MergeFrom(vm.DeepCopy()))
			}
			result, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}})
			if err != nil || result.RequeueAfter == 0 {
				t.Errorf("Reconcile = %v, %v, want a requeue", result, err)
			}
			equal(t, "status after the conflict", "s1", strings.TrimSpace(h.stored().Status.VMID+" "+h.stored().Status.Host))
			if h.kind.observe = nil; !reconciler.IsStalled(tc.outcome) {
				h.mustReconcile()
			}
			stored := h.stored().Status
			equal(t, "status", tc.want, strings.TrimSpace(stored.VMID+" "+stored.Host))
		})
	}
}

func TestStatusPatchError(t *testing.T) {
	refused := errors.New("no route to host")
	broken := errors.New("it broke")
	tests := []struct {
		name            string
		refuse, outcome error
		want            ctrl.Result
		errs            []error
	}{
		{name: "NotFound: ignored", refuse: apierrors.NewNotFound(vms, "a")},
		{name: "conflict: requeued", refuse: conflict, want: stale},
		{name: "conflict after a failed reconcile: requeued", refuse: conflict, outcome: broken, want: stale},
		{name: "other error: returned", refuse: refused, errs: []error{refused}},
		{name: "other error after a failed reconcile: both are returned", refuse: refused, outcome: broken, errs: []error{refused, broken}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t, example())
			h.refuse = tc.refuse
			h.kind.outcome(tc.outcome)
			result, err := h.reconcile()
			equal(t, "result", tc.want, result)
			if (err != nil) != (tc.errs != nil) {
				t.Errorf("error %v, want %v", err, tc.errs)
			}
			for _, want := range tc.errs {
				if !errors.Is(err, want) {
					t.Errorf("error %v, want it to wrap %v", err, want)
				}
			}
			if tc.errs != nil {
				h.wantEvents()
			}
		})
	}
}

// A write of a status whose answer is lost may take effect after a later reconcile has found nothing to write.
func TestStatusWrittenLateIsCorrected(t *testing.T) {
	tests := map[string]struct {
		refuse error
		late   bool
	}{
		"no answer":        {errors.New("connection reset by peer"), true},
		"timeout":          {apierrors.NewTimeoutError("the request timed out", 1), true},
		"too many calls":   {apierrors.NewTooManyRequests("later", 1), false},
		"no right to this": {apierrors.NewForbidden(vms, "a", errors.New("no")), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, example())
				h.mustReconcile()
				h.kind.outcome(reconciler.Wait(time.Hour, "Waiting", "for something"))
				h.refuse = tc.refuse
				if _, err := h.reconcile(); err == nil {
					t.Fatal("a status that cannot be written is no error")
				}
				h.kind.outcome(nil)
				h.refuse = nil
				<-time.After(20 * time.Second)
				want := time.Duration(0)
				if tc.late {
					want = 40 * time.Second
				}
				if result := h.mustReconcile(); result.RequeueAfter != want {
					t.Errorf("reconciled again after %s, want %s", result.RequeueAfter, want)
				}
				<-time.After(40 * time.Second)
				if result := h.mustReconcile(); result.RequeueAfter != 0 {
					t.Errorf("reconciled once more after %s", result.RequeueAfter)
				}
			})
		})
	}
}

// The process that acted before this one may have sent a status that takes effect after the first reconcile here.
func TestStatusThatAnEarlierProcessWritesLateIsCorrected(t *testing.T) {
	reported := func(vm *pcapi.VM) {
		vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running", Message: "all is well"}}
	}
	tests := map[string]struct {
		vm      *pcapi.VM
		alone   bool
		summary time.Duration
		// least and most bound the time until the second reconcile; 0 if there is none.
		least, most time.Duration
	}{
		"reported before: a minute after the first reconcile": {vm: example(reported), least: time.Minute, most: 66 * time.Second},
		"reconciled sooner all the same":                      {vm: example(reported), summary: 30 * time.Second, least: 30 * time.Second, most: 30 * time.Second},
		"not reported before: no second reconcile":            {vm: example()},
		"no process before this one: no second reconcile":     {vm: example(reported), alone: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, tc.vm)
				if !tc.alone {
					h.reconciler.Leading = func() bool { return true }
				}
				h.kind.summary.RequeueAfter = tc.summary
				after := h.mustReconcile().RequeueAfter
				if after < tc.least || after > tc.most {
					t.Fatalf("reconciled again after %s, want %s to %s", after, tc.least, tc.most)
				}
				h.kind.summary.RequeueAfter = 0
				if after == 0 || tc.summary > 0 {
					after = time.Minute
				}
				<-time.After(after)
				if tc.summary == 0 && tc.least > 0 {
					h.editStatus(func(vm *pcapi.VM) { vm.Status.Conditions[0].Reason = "CloudUnavailable" })
				}
				equal(t, "result of the second reconcile", ctrl.Result{}, h.mustReconcile())
				equal(t, "Ready", "Running", h.stored().Status.Conditions[0].Reason)
			})
		})
	}
}

func TestConflictOnPausePatchIsRequeued(t *testing.T) {
	h := newHarness(t, example(paused))
	h.refuse = conflict
	equal(t, "result", stale, h.mustReconcile())
	h.wantEvents()
}

func TestReleasedObjectIsNotPatched(t *testing.T) {
	h := newHarness(t, example(deleted))
	h.kind.summary = reconciler.Summary{Reason: "Deleted", Message: "it is 100% gone"}
	h.kind.plan = func() ([]string, error) { return []string{"release"}, nil }
	h.kind.act = func(ctx context.Context, vm *pcapi.VM, _ string) error {
		return reconciler.Release(ctx, h.client, vm, finalizer)
	}
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	writes := h.takeWrites()
	if len(writes) != 1 || writes[0].To != "object" {
		t.Errorf("writes %v, want the release alone", writes)
	}
	h.wantEvents("Normal Deleted Delete: it is 100% gone")
	err := h.client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, &pcapi.VM{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("Get = %v, want the object gone", err)
	}
}

func TestPausedObjectIsNotReportedAsReleased(t *testing.T) {
	ready := func(vm *pcapi.VM) {
		vm.Finalizers = []string{"example.com/backup"}
		vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running"}}
	}
	h := newHarness(t, example(deleted, ready, func(vm *pcapi.VM) { vm.Annotations = map[string]string{pcapi.PausedAnnotation: "true"} }))
	h.mustReconcile()
	h.wantWrites(0)
}

// TestStatusThatCouldNotBeWrittenAtTheReleaseIsWrittenLater, whatever enqueues the object meanwhile.
func TestStatusThatCouldNotBeWrittenAtTheReleaseIsWrittenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, example(deleted, func(vm *pcapi.VM) {
			vm.Finalizers = append(vm.Finalizers, "example.com/backup")
			vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running"}}
		}))
		h.kind.plan = func() ([]string, error) { return []string{"release"}, nil }
		h.kind.act = func(ctx context.Context, vm *pcapi.VM, _ string) error {
			return reconciler.Release(ctx, h.client, vm, finalizer)
		}
		h.decide = func(w write) error {
			if w.To == "status" {
				return errBroken
			}
			return nil
		}
		after := h.mustReconcile().RequeueAfter
		equal(t, "time until the status is written", 3*time.Minute, after)
		<-time.After(time.Minute)
		equal(t, "time until then after an event", 2*time.Minute, h.mustReconcile().RequeueAfter)
		<-time.After(2 * time.Minute)
		h.decide = nil
		h.mustReconcile()
		equal(t, "Ready", metav1.ConditionFalse, meta.FindStatusCondition(h.stored().Status.Conditions, pcapi.ReadyCondition).Status)
	})
}

// TestReleasedObjectIsReportedLater: the process that released the object was killed before it wrote the status.
func TestReleasedObjectIsReportedLater(t *testing.T) {
	h := newHarness(t, example(deleted, func(vm *pcapi.VM) {
		vm.Finalizers = []string{"example.com/backup"}
		vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running"}}
	}))
	h.reconciler.Released = func(vm *pcapi.VM) { vm.Status.State = pcapi.VMStateDeleting }
	h.refuse = errBroken
	if _, err := h.reconcile(); err == nil {
		t.Fatal("the status was not written, want an error")
	}
	h.refuse = nil
	h.takeWrites()
	h.mustReconcile()
	h.wantWrites(1)
	ready := meta.FindStatusCondition(h.stored().Status.Conditions, pcapi.ReadyCondition)
	equal(t, "Ready", []string{"False", "Released"}, []string{string(ready.Status), ready.Reason})
	equal(t, "state", pcapi.VMStateDeleting, h.stored().Status.State)
	h.mustReconcile()
	h.wantWrites(0)
}

func TestReleasedObjectThatAnotherFinalizerKeepsIsReportedAsDeleted(t *testing.T) {
	h := newHarness(t, example(deleted, func(vm *pcapi.VM) {
		vm.Finalizers = append(vm.Finalizers, "example.com/backup")
		vm.Status.Conditions = []metav1.Condition{{Type: pcapi.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Running"}, {Type: pcapi.StalledCondition, Status: metav1.ConditionTrue, Reason: "Blocked"}}
	}))
	h.kind.summary = reconciler.Summary{Reason: "Deleted", Message: "it is gone"}
	h.kind.plan = func() ([]string, error) { return []string{"release"}, nil }
	h.kind.act = func(ctx context.Context, vm *pcapi.VM, _ string) error {
		return reconciler.Release(ctx, h.client, vm, finalizer)
	}
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	h.wantWrites(2)
	h.wantEvents("Normal Deleted Delete: it is gone")
	conditions := h.stored().Status.Conditions
	ready := meta.FindStatusCondition(conditions, pcapi.ReadyCondition)
	equal(t, "Ready", []string{"False", "Deleted", "it is gone; finalizers of other controllers keep this object"}, []string{string(ready.Status), ready.Reason, ready.Message})
	if stalled := meta.FindStatusCondition(conditions, pcapi.StalledCondition); stalled != nil {
		t.Errorf("Stalled is %v", stalled)
	}
	h.mustReconcile()
	h.wantWrites(0)
}

// TestReleasedObjectIsNotReconciledFromAStaleCache: an event that arrives before
// the deletion does reads the object with its finalizer.
func TestReleasedObjectIsNotReconciledFromAStaleCache(t *testing.T) {
	h := newHarness(t, example(deleted))
	h.kind.plan = func() ([]string, error) { return []string{"release"}, nil }
	h.kind.act = func(ctx context.Context, vm *pcapi.VM, _ string) error {
		return reconciler.Release(ctx, h.client, vm, finalizer)
	}
	h.reconciler.Client = &cached{Client: h.client, vm: h.stored()}
	h.mustReconcile()
	h.wantWrites(1)
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	h.wantWrites(0)
	equal(t, "calls", []string(nil), h.kind.calls)
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
