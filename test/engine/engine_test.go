// Package engine_test runs internal/reconciler on a real API server: what it
// writes relies on checks of the API server that a fake one may not have.
package engine_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/testkit"
)

var env *testkit.Env

func TestMain(m *testing.M) {
	code := 1
	var err error
	if env, err = testkit.Start(testkit.Options{}); err == nil {
		code = m.Run()
		err = env.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// toy is a kind that is in sync and reports a status.
type toy struct {
	// observe is called after the object was read.
	observe func(ctx context.Context, vm *pcapi.VM) error
	report  func(vm *pcapi.VM)
}

func (k *toy) New() *pcapi.VM                               { return &pcapi.VM{} }
func (k *toy) Finalizer() string                            { return pcapi.VMFinalizer }
func (k *toy) EventConditions() []reconciler.EventCondition { return nil }

func (k *toy) Observe(ctx context.Context, vm *pcapi.VM) (int, error) {
	if k.observe == nil {
		return 0, nil
	}
	return 0, k.observe(ctx, vm)
}

func (k *toy) Plan(*pcapi.VM, int) reconciler.Plan[*pcapi.VM, int] {
	return reconciler.Plan[*pcapi.VM, int]{}
}

func (k *toy) Report(vm *pcapi.VM, _ int, _ error) reconciler.Summary {
	k.report(vm)
	return reconciler.Summary{Reason: "Running", Message: "all is well"}
}

// noEvents records nothing.
type noEvents struct{}

func (noEvents) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

func engine(k *toy) *reconciler.Reconciler[*pcapi.VM, int] {
	return &reconciler.Reconciler[*pcapi.VM, int]{Client: env.Client, Live: env.Client, Kind: k, Recorder: noEvents{}, Deadline: time.Minute}
}

func newVM(t *testing.T) *pcapi.VM {
	t.Helper()
	ns := testkit.Namespace("engine-", nil)
	if err := env.Client.Create(t.Context(), ns); err != nil {
		t.Fatalf("create the namespace: %v", err)
	}
	vm := testkit.VM(ns.Name, "a")
	if err := env.Client.Create(t.Context(), vm); err != nil {
		t.Fatalf("create the VM: %v", err)
	}
	return vm
}

func read(t *testing.T, vm *pcapi.VM) *pcapi.VM {
	t.Helper()
	fresh := &pcapi.VM{}
	if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(vm), fresh); err != nil {
		t.Fatalf("read the VM: %v", err)
	}
	return fresh
}

// replace deletes a VM and creates another one of its name.
func replace(ctx context.Context, vm *pcapi.VM) error {
	if err := env.Client.Delete(ctx, testkit.VM(vm.Namespace, vm.Name)); err != nil {
		return err
	}
	return env.Client.Create(ctx, testkit.VM(vm.Namespace, vm.Name))
}

// TestGuardsOfStatusPatches shows which guard the API server enforces in a merge
// patch of the status of a custom resource.
func TestGuardsOfStatusPatches(t *testing.T) {
	for name, tc := range map[string]struct {
		metadata func(*pcapi.VM) string
		refused  bool
	}{
		"uid of another object: stored": {func(vm *pcapi.VM) string {
			return fmt.Sprintf(`{"uid":%q}`, vm.UID)
		}, false},
		"resourceVersion of another object: refused": {func(vm *pcapi.VM) string {
			return fmt.Sprintf(`{"resourceVersion":%q}`, vm.ResourceVersion)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			earlier := newVM(t)
			if err := replace(t.Context(), earlier); err != nil {
				t.Fatalf("replace the VM: %v", err)
			}
			namesake := read(t, earlier)
			patch := fmt.Sprintf(`{"metadata":%s,"status":{"vmId":"of-another"}}`, tc.metadata(earlier))
			err := env.Client.Status().Patch(t.Context(), namesake, client.RawPatch(types.MergePatchType, []byte(patch)))
			if apierrors.IsConflict(err) != tc.refused || (!tc.refused && err != nil) {
				t.Errorf("Patch = %v, want a conflict: %v", err, tc.refused)
			}
			want := "of-another"
			if tc.refused {
				want = ""
			}
			if got := read(t, earlier).Status.VMID; got != want {
				t.Errorf("stored id %q, want %q", got, want)
			}
		})
	}
}

func TestStatusWrite(t *testing.T) {
	edit := func(ctx context.Context, vm *pcapi.VM) error {
		return env.Client.Patch(ctx, testkit.VM(vm.Namespace, vm.Name), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"cpu":2}}`)))
	}
	for name, tc := range map[string]struct {
		meanwhile func(ctx context.Context, vm *pcapi.VM) error
		id        string
		requeued  bool
	}{
		"nothing changed meanwhile: stored": {meanwhile: nil, id: "s1"},
		"the spec was edited: stored":       {meanwhile: edit, id: "s1"},
		"another manager stored an id: not replaced": {meanwhile: func(ctx context.Context, vm *pcapi.VM) error {
			return env.Client.Status().Patch(ctx, vm.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"vmId":"s0"}}`)))
		}, id: "s0", requeued: true},
		"another object has the name: not stored": {meanwhile: replace, id: ""},
		"the object is gone: no error": {meanwhile: func(ctx context.Context, vm *pcapi.VM) error {
			return env.Client.Delete(ctx, testkit.VM(vm.Namespace, vm.Name))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			vm := newVM(t)
			k := &toy{observe: tc.meanwhile, report: func(vm *pcapi.VM) { vm.Status.VMID = "s1" }}
			result, err := engine(k).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(vm)})
			if err != nil || (result.RequeueAfter > 0) != tc.requeued {
				t.Errorf("Reconcile = %v, %v, want a requeue: %v", result, err, tc.requeued)
			}
			fresh := &pcapi.VM{}
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(vm), fresh); client.IgnoreNotFound(err) != nil {
				t.Fatalf("read the VM: %v", err)
			}
			if fresh.Status.VMID != tc.id {
				t.Errorf("stored id %q, want %q", fresh.Status.VMID, tc.id)
			}
		})
	}
}

// TestStatusThatTheCRDForbids stores statuses that violate the CRD.
func TestStatusThatTheCRDForbids(t *testing.T) {
	for name, tc := range map[string]struct {
		status    func(*pcapi.VMStatus)
		id, names string
	}{
		"a host of 254 bytes: the id is stored": {func(s *pcapi.VMStatus) {
			s.VMID, s.Host = "s1", strings.Repeat("h", 254)
		}, "s1", "status.host"},
		"a condition with an invalid reason: the id is stored": {func(s *pcapi.VMStatus) {
			s.VMID = "s1"
			meta.SetStatusCondition(&s.Conditions, condition("Created", "not a reason"))
		}, "s1", "status.conditions[0].reason"},
		"an id of 300 bytes: reported": {func(s *pcapi.VMStatus) {
			s.VMID = strings.Repeat("i", 300)
		}, "", "status.vmId"},
		"a utilisation of 101 %: the id is stored": {func(s *pcapi.VMStatus) {
			s.VMID, s.CPUUtilization = "s1", new(int32(101))
		}, "s1", "status.cpuUtilization"},
	} {
		t.Run(name, func(t *testing.T) {
			vm := newVM(t)
			r := engine(&toy{report: func(vm *pcapi.VM) { tc.status(&vm.Status) }})
			request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(vm)}
			result, err := r.Reconcile(t.Context(), request)
			if err != nil || result.RequeueAfter < time.Second {
				t.Errorf("Reconcile = %v, %v, want a requeue with back-off", result, err)
			}
			stored := read(t, vm)
			if stored.Status.VMID != tc.id {
				t.Errorf("stored id %q, want %q", stored.Status.VMID, tc.id)
			}
			for _, kind := range []string{pcapi.ReadyCondition, pcapi.StalledCondition} {
				c := meta.FindStatusCondition(stored.Status.Conditions, kind)
				if c == nil || c.Reason != pcapi.StatusRejectedReason || !strings.Contains(c.Message, tc.names) {
					t.Errorf("%s is %+v, want reason %s and the field %s", kind, c, pcapi.StatusRejectedReason, tc.names)
				}
			}
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Errorf("the second Reconcile: %v", err)
			}
			if diff := gocmp.Diff(stored, read(t, vm)); diff != "" {
				t.Errorf("the second reconcile wrote again (-was +is):\n%s", diff)
			}
		})
	}
}

func condition(kind, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason}
}
