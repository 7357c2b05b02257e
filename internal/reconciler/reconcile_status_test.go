package reconciler_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

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
