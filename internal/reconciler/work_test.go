package reconciler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

// sleep lets the fake time of a synctest bubble pass.
func sleep(d time.Duration) { <-time.After(d) }

var request = ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}}

// TestStoppingManager asks the manager to stop during a reconcile of two steps.
func TestStoppingManager(t *testing.T) {
	const change = reconciler.Mutates | reconciler.NeedsCloud
	tests := []struct {
		name string
		// stopAt is the method or step in which the manager is asked to stop.
		stopAt string
		needs  reconciler.Needs
		calls  []string
		id     string
		reason string
	}{
		{name: "before the reconcile: nothing is done", stopAt: "", needs: change},
		{name: "while it observes: no step begins", stopAt: "observe", needs: change, calls: []string{"observe"}},
		{
			name: "in a create: it ends and its id is recorded; the next step does not begin", stopAt: "one", needs: change,
			calls: []string{"observe", "plan observed", "act observed one", "report observed"}, id: "s1", reason: pcapi.ProgressingReason,
		},
		{
			name: "in the last step: the outcome is recorded", stopAt: "two", needs: change,
			calls: []string{"observe", "plan observed", "act observed one", "act observed two", "report observed"}, id: "s1", reason: "Running",
		},
		{
			name: "in a write to Kubernetes: it ends", stopAt: "one", needs: reconciler.Mutates,
			calls: []string{"observe", "plan observed", "act observed one"},
		},
		{
			name: "in a step without effect: cancelled, and not reported", stopAt: "one", needs: reconciler.NeedsCloud,
			calls: []string{"observe", "plan observed", "act observed one"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t, example())
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			stopIn := func(ctx context.Context, where string) error {
				if where == tc.stopAt {
					stop()
				}
				if tc.needs.Has(reconciler.Mutates) && where != "observe" {
					return ctx.Err()
				}
				if where == tc.stopAt {
					<-ctx.Done()
				}
				return ctx.Err()
			}
			stopIn(ctx, "") //nolint:errcheck // stops only
			h.kind.needs = tc.needs
			h.kind.observe = func(ctx context.Context, _ *pcapi.VM) error { return stopIn(ctx, "observe") }
			h.kind.plan = func() ([]string, error) { return []string{"one", "two"}, nil }
			h.kind.act = func(ctx context.Context, vm *pcapi.VM, step string) error {
				if err := stopIn(ctx, step); err != nil {
					return err
				}
				vm.Status.VMID = "s1"
				return nil
			}
			if _, err := h.reconciler.Reconcile(ctx, request); err != nil {
				t.Errorf("Reconcile: %v", err)
			}
			equal(t, "calls", tc.calls, h.kind.calls)
			stored := h.stored()
			equal(t, "stored id", tc.id, stored.Status.VMID)
			if reason := reasonOf(stored); reason != tc.reason {
				t.Errorf("Ready has reason %q, want %q", reason, tc.reason)
			}
		})
	}
}

func reasonOf(vm *pcapi.VM) string {
	for _, c := range vm.Status.Conditions {
		if c.Type == pcapi.ReadyCondition {
			return c.Reason
		}
	}
	return ""
}

// TestStepOfStoppingManagerIsBounded: the manager may take reconciler.StopTimeout.
func TestStepOfStoppingManagerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, example())
		h.reconciler.Deadline = time.Hour
		ctx, stop := context.WithCancel(t.Context())
		h.kind.plan = func() ([]string, error) { return []string{"one"}, nil }
		h.kind.act = func(ctx context.Context, vm *pcapi.VM, _ string) error {
			stop()
			<-ctx.Done()
			vm.Status.VMID = "s1"
			return reconciler.Wait(time.Second, "OutcomeUnknown", "no answer")
		}
		began := time.Now()
		if _, err := h.reconciler.Reconcile(ctx, request); err != nil {
			t.Errorf("Reconcile: %v", err)
		}
		if took := time.Since(began); took < 30*time.Second || took >= reconciler.StopTimeout {
			t.Errorf("the reconcile took %s after the stop, want at least 30 s and less than %s", took, reconciler.StopTimeout)
		}
		equal(t, "stored id", "s1", h.stored().Status.VMID)
	})
}

func TestResultIsRecordedAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, example())
		h.kind.plan = func() ([]string, error) { return []string{"one"}, nil }
		h.kind.act = func(ctx context.Context, vm *pcapi.VM, _ string) error {
			<-ctx.Done()
			vm.Status.VMID = "s1"
			return reconciler.Wait(time.Second, "OutcomeUnknown", "no answer")
		}
		h.mustReconcile()
		equal(t, "stored id", "s1", h.stored().Status.VMID)
	})
}

// TestProcessThatDoesNotLeadHasNoEffect loses the lease at one point of a reconcile.
func TestProcessThatDoesNotLeadHasNoEffect(t *testing.T) {
	const change = reconciler.Mutates | reconciler.NeedsCloud
	tests := []struct {
		name   string
		lostAt string
		needs  reconciler.Needs
		calls  []string
		writes int
	}{
		{name: "before the reconcile: nothing is done", lostAt: "", needs: change},
		{name: "while it observes: no step begins, nothing is written", lostAt: "observe", needs: change, calls: []string{"observe", "plan observed"}},
		{name: "in a step without effect: nothing is written", lostAt: "one", needs: reconciler.NeedsCloud, calls: []string{"observe", "plan observed", "act observed one"}},
		{name: "in a create: its id is recorded", lostAt: "one", needs: change, calls: []string{"observe", "plan observed", "act observed one", "report observed"}, writes: 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHarness(t, example())
			leading := tc.lostAt != ""
			h.reconciler.Leading = func() bool { return leading }
			h.kind.needs = tc.needs
			h.kind.observe = func(ctx context.Context, _ *pcapi.VM) error {
				leading = tc.lostAt != "observe"
				equal(t, "requests are permitted", leading, cloud.Permitted(ctx))
				return nil
			}
			h.kind.plan = func() ([]string, error) { return []string{"one", "two"}, nil }
			h.kind.act = func(_ context.Context, vm *pcapi.VM, _ string) error {
				leading = false
				vm.Status.VMID = "s1"
				return nil
			}
			result := h.mustReconcile()
			wantRequeue(t, time.Second, result)
			equal(t, "calls", tc.calls, h.kind.calls)
			h.wantWrites(tc.writes)
			equal(t, "stored conditions", 0, len(h.stored().Status.Conditions))
		})
	}
}

// TestProcessThatDoesNotLeadRecordsOntoUnchangedObjectsOnly: another manager may
// have changed the object.
func TestProcessThatDoesNotLeadRecordsOntoUnchangedObjectsOnly(t *testing.T) {
	h := newHarness(t, example())
	leading := true
	h.reconciler.Leading = func() bool { return leading }
	h.kind.needs = reconciler.Mutates | reconciler.NeedsCloud
	h.kind.plan = func() ([]string, error) { return []string{"one"}, nil }
	h.kind.act = func(_ context.Context, vm *pcapi.VM, _ string) error {
		leading = false
		h.edit(func(vm *pcapi.VM) { vm.Labels = map[string]string{"edited": "meanwhile"} })
		vm.Status.VMID = "s1"
		return nil
	}
	h.mustReconcile()
	h.wantWrites(1)
	equal(t, "stored id", "", h.stored().Status.VMID)
}

func TestErrorOfStepIsReturnedUnlessStopping(t *testing.T) {
	broken := errors.New("it broke")
	h := newHarness(t, example())
	h.kind.needs = reconciler.NeedsCloud
	h.kind.plan = func() ([]string, error) { return []string{"one"}, nil }
	h.kind.act = func(context.Context, *pcapi.VM, string) error { return broken }
	if _, err := h.reconcile(); !errors.Is(err, broken) {
		t.Errorf("Reconcile = %v, want %v", err, broken)
	}
}

// TestSlowStatusWriteHasTimeOfTheReconcile: a client that limits its requests
// makes many writes wait.
func TestSlowStatusWriteHasTimeOfTheReconcile(t *testing.T) {
	tests := map[string]struct {
		takes  time.Duration
		stop   bool
		stored bool
	}{
		"as long as the deadline: stored":                      {takes: time.Minute, stored: true},
		"longer than the deadline and the grace: not stored":   {takes: 66 * time.Second},
		"the manager stops, within its grace: stored":          {takes: 30 * time.Second, stop: true, stored: true},
		"the manager stops, longer than its grace: not stored": {takes: 41 * time.Second, stop: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, example())
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				h.reconciler.Client = slow{Client: h.client, takes: tc.takes, begun: func() {
					if tc.stop {
						stop()
					}
				}}
				_, err := h.reconciler.Reconcile(ctx, request)
				if stored := h.stored().Status.Host != ""; stored != tc.stored || (err == nil) != tc.stored {
					t.Errorf("stored: %v, %v; want stored: %v", stored, err, tc.stored)
				}
			})
		})
	}
}

// slow delays status writes.
type slow struct {
	client.Client

	takes time.Duration
	begun func()
}

func (c slow) Status() client.SubResourceWriter { return slowStatus{c.Client.Status(), c} }

type slowStatus struct {
	client.SubResourceWriter

	of slow
}

func (w slowStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	w.of.begun()
	select {
	case <-time.After(w.of.takes):
		return w.SubResourceWriter.Patch(ctx, o, p, opts...)
	case <-ctx.Done():
		return ctx.Err()
	}
}
