package reconciler_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

const (
	finalizer = "example.com/toy"
	host      = "h1"
)

// testKind is a kind whose methods a test sets. With none set it is in sync.
type testKind struct {
	observe func(ctx context.Context, vm *pcapi.VM) error
	plan    func() ([]string, error)
	act     func(ctx context.Context, vm *pcapi.VM, step string) error
	report  func(vm *pcapi.VM, outcome error)
	summary reconciler.Summary
	// needs are those of each step, Mutates if zero.
	needs reconciler.Needs
	// calls are the methods called, in order.
	calls []string
}

var _ reconciler.Kind[*pcapi.VM, string] = &testKind{}

type plan = reconciler.Plan[*pcapi.VM, string]

func (k *testKind) New() *pcapi.VM    { return &pcapi.VM{} }
func (k *testKind) Finalizer() string { return finalizer }
func (k *testKind) EventConditions() []reconciler.EventCondition {
	return append(reconciler.EventConditions(pcapi.CreatedCondition, pcapi.ReadyCondition),
		reconciler.EventCondition{Type: pcapi.ConformantCondition, Warnings: []string{pcapi.ListingIncompleteReason}})
}

func (k *testKind) Observe(ctx context.Context, vm *pcapi.VM) (string, error) {
	k.calls = append(k.calls, "observe")
	if k.observe != nil {
		return "observed", k.observe(ctx, vm)
	}
	return "observed", nil
}

func (k *testKind) Plan(_ *pcapi.VM, obs string) plan {
	k.calls = append(k.calls, "plan "+obs)
	if k.plan == nil {
		return plan{}
	}
	names, outcome := k.plan()
	p := plan{Outcome: outcome}
	for _, name := range names {
		p.Steps = append(p.Steps, reconciler.Step[*pcapi.VM, string]{
			Name: name, Needs: cmp.Or(k.needs, reconciler.Mutates),
			Run: func(ctx context.Context, vm *pcapi.VM, obs string) error { return k.Act(ctx, vm, obs, name) },
		})
	}
	return p
}

func (k *testKind) Act(ctx context.Context, vm *pcapi.VM, obs, step string) error {
	k.calls = append(k.calls, "act "+obs+" "+step)
	if k.act != nil {
		return k.act(ctx, vm, step)
	}
	return nil
}

func (k *testKind) Report(vm *pcapi.VM, obs string, outcome error) reconciler.Summary {
	k.calls = append(k.calls, "report "+obs)
	vm.Status.Host = host
	if k.report != nil {
		k.report(vm, outcome)
	}
	return k.summary
}

// outcome makes each reconcile end in err without a step.
func (k *testKind) outcome(err error) {
	k.plan = func() ([]string, error) { return nil, err }
}

// write is one change sent to the API server.
type write struct{ To, Data string }

// harness is one VM on a fake API server, and the reconciler of testKind.
type harness struct {
	t          *testing.T
	kind       *testKind
	client     client.Client
	reconciler *reconciler.Reconciler[*pcapi.VM, string]
	// writes are the patches sent, and events the events recorded, since they were last taken.
	writes []write
	events []string
	// refuse is the error of the next patches, and decide that of each patch, with
	// a nil error for those that are sent.
	refuse error
	decide func(write) error
}

func example(change ...func(*pcapi.VM)) *pcapi.VM {
	vm := &pcapi.VM{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-a", Generation: 3, Finalizers: []string{finalizer}},
		Spec:       pcapi.VMSpec{VMName: "web"},
	}
	for _, f := range change {
		f(vm)
	}
	return vm
}

func newHarness(t *testing.T, vm *pcapi.VM) *harness {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		t.Fatalf("AddToScheme: %v", err)
	}
	h := &harness{t: t, kind: &testKind{summary: reconciler.Summary{Reason: "Running", Message: "all is well"}}}
	h.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(vm).WithStatusSubresource(&pcapi.VM{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				return h.sent("object", o, p, func() error { return c.Patch(ctx, o, p, opts...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				return h.sent(sub, o, p, func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
			},
		}).Build()
	h.reconciler = &reconciler.Reconciler[*pcapi.VM, string]{Client: h.client, Kind: h.kind, Recorder: h, Deadline: time.Minute, Live: h.client}
	return h
}

func (h *harness) sent(to string, o client.Object, p client.Patch, forward func() error) error {
	data, err := p.Data(o)
	if err != nil {
		return fmt.Errorf("patch of %s: %w", to, err)
	}
	h.writes = append(h.writes, write{To: to, Data: string(data)})
	if h.refuse != nil {
		return h.refuse
	}
	if h.decide != nil {
		if err := h.decide(h.writes[len(h.writes)-1]); err != nil {
			return err
		}
	}
	return forward()
}

// Eventf records an event as one line.
func (h *harness) Eventf(_, _ runtime.Object, level, reason, action, note string, args ...any) {
	h.events = append(h.events, fmt.Sprintf("%s %s %s: %s", level, reason, action, fmt.Sprintf(note, args...)))
}

func (h *harness) reconcile() (ctrl.Result, error) {
	h.t.Helper()
	h.kind.calls = nil
	return h.reconciler.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}})
}

// mustReconcile reconciles and fails the test on an error.
func (h *harness) mustReconcile() ctrl.Result {
	h.t.Helper()
	result, err := h.reconcile()
	if err != nil {
		h.t.Fatalf("Reconcile: %v", err)
	}
	return result
}

func (h *harness) stored() *pcapi.VM {
	h.t.Helper()
	vm := &pcapi.VM{}
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: "ns", Name: "a"}, vm); err != nil {
		h.t.Fatalf("Get: %v", err)
	}
	return vm
}

// edit changes the stored object as a user does. It does not count as a write.
func (h *harness) edit(change func(*pcapi.VM)) {
	h.t.Helper()
	vm := h.stored()
	change(vm)
	if err := h.client.Update(h.t.Context(), vm); err != nil {
		h.t.Fatalf("Update: %v", err)
	}
}

// editStatus changes the stored status as another process does.
func (h *harness) editStatus(change func(*pcapi.VM)) {
	h.t.Helper()
	vm := h.stored()
	change(vm)
	if err := h.client.Status().Update(h.t.Context(), vm); err != nil {
		h.t.Fatalf("Update of the status: %v", err)
	}
}

// takeWrites returns the writes since it was last called.
func (h *harness) takeWrites() []write {
	writes := h.writes
	h.writes = nil
	return writes
}

// wantSent compares the number of writes and keeps them.
func (h *harness) wantSent(n int) {
	h.t.Helper()
	if len(h.writes) != n {
		h.t.Errorf("%d writes, want %d: %v", len(h.writes), n, h.writes)
	}
}

func (h *harness) wantWrites(n int) {
	h.t.Helper()
	if got := h.takeWrites(); len(got) != n {
		h.t.Errorf("%d writes, want %d: %v", len(got), n, got)
	}
}

func (h *harness) wantEvents(want ...string) {
	h.t.Helper()
	equal(h.t, "events", want, h.events)
	h.events = nil
}

func equal(t *testing.T, what string, want, got any, opts ...gocmp.Option) {
	t.Helper()
	if diff := gocmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
