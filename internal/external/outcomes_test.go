package external_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/test/volume"
)

// describe formats an outcome without its message and its times.
func describe(outcome error) string {
	reason := reconciler.Reason(outcome)
	if wait, ok := errors.AsType[*reconciler.WaitError](outcome); ok {
		if wait.Quiet {
			return "quiet wait: " + reason
		}
		return "wait: " + reason
	}
	if _, ok := errors.AsType[*reconciler.BlockedError](outcome); ok {
		return "blocked: " + reason
	}
	if reconciler.IsStalled(outcome) {
		return "stalled: " + reason
	}
	if outcome != nil {
		return "error: " + outcome.Error()
	}
	return ""
}

func TestFailed(t *testing.T) {
	const rejected, unavailable = "stalled: Rejected", "wait: CloudUnavailable"
	own := reconciler.Stalled("Own", 0, errors.New("why"))
	tests := []struct {
		name string
		err  error
		want string
		// onDemand and listed report whether a poll is requested for a kind that looks
		// on demand, and for one whose resources the inventory lists.
		onDemand, listed bool
	}{
		{name: "NotFound: stalled", err: &cloud.Error{Kind: cloud.NotFound}, want: rejected},
		{name: "Prohibited: stalled", err: &cloud.Error{Kind: cloud.Prohibited}, want: rejected},
		{name: "Taken: stalled", err: &cloud.Error{Kind: cloud.Taken}, want: rejected},
		{name: "KeyReused: stalled", err: &cloud.Error{Kind: cloud.KeyReused}, want: rejected},
		{name: "Quota: wait", err: &cloud.Error{Kind: cloud.Quota}, want: "wait: QuotaExceeded"},
		{name: "NoHost: wait", err: &cloud.Error{Kind: cloud.NoHost}, want: "wait: Unschedulable"},
		{name: "Forbidden: stalled", err: &cloud.Error{Kind: cloud.Forbidden}, want: rejected},
		{name: "Rejected: stalled", err: &cloud.Error{Kind: cloud.Rejected}, want: rejected},
		{name: "Unsupported: stalled", err: &cloud.Error{Kind: cloud.Unsupported}, want: "stalled: Unsupported"},
		{name: "Throttled: wait without a poll", err: &cloud.Error{Kind: cloud.Throttled}, want: "wait: Pending"},
		{name: "Busy: wait without a poll", err: &cloud.Error{Kind: cloud.Busy}, want: "wait: Progressing"},
		{name: "Failed: wait without a poll", err: &cloud.Error{Kind: cloud.Failed}, want: "wait: OperationFailed"},
		{name: "NeedsStop: stalled", err: &cloud.Error{Kind: cloud.NeedsStop}, want: "stalled: NeedsRestart"},
		{name: "Conflict: wait, and a poll of listed resources", err: &cloud.Error{Kind: cloud.Conflict}, want: unavailable, listed: true},
		{name: "Unavailable: wait and poll", err: &cloud.Error{Kind: cloud.Unavailable}, want: unavailable, onDemand: true, listed: true},
		{name: "Misconfigured: wait and poll", err: &cloud.Error{Kind: cloud.Misconfigured}, want: unavailable, onDemand: true, listed: true},
		{name: "Unauthorized: wait and poll", err: &cloud.Error{Kind: cloud.Unauthorized}, want: unavailable, onDemand: true, listed: true},
		{name: "Untrusted: wait and poll", err: &cloud.Error{Kind: cloud.Untrusted}, want: unavailable, onDemand: true, listed: true},
		{name: "Unreadable: wait and poll", err: &cloud.Error{Kind: cloud.Unreadable}, want: unavailable, onDemand: true, listed: true},
		{name: "wrapped Unavailable: wait and poll", err: fmt.Errorf("grow: %w", &cloud.Error{Kind: cloud.Unavailable}), want: unavailable, onDemand: true, listed: true},
		{name: "an outcome: returned", err: own, want: "stalled: Own"},
		{name: "another error: returned", err: errors.New("broken"), want: "error: broken"},
	}
	for _, tc := range tests {
		for onDemand, polled := range map[bool]bool{true: tc.onDemand, false: tc.listed} {
			t.Run(fmt.Sprintf("%s/onDemand=%t", tc.name, onDemand), func(t *testing.T) {
				h := newHarness()
				h.list(t)
				h.kind.OnDemand = onDemand
				got := h.kind.Failed(object(), h.observe(), tc.err)
				if describe(got) != tc.want {
					t.Errorf("outcome %q, want %q", describe(got), tc.want)
				}
				if requested := h.inventory.NextPoll() <= time.Second; requested != polled {
					t.Errorf("the next poll is in %v, want it requested: %t", h.inventory.NextPoll(), polled)
				}
			})
		}
	}
}

func TestFailedDelays(t *testing.T) {
	after := func(t *testing.T, err error) time.Duration {
		t.Helper()
		wait, ok := errors.AsType[*reconciler.WaitError](err)
		if !ok {
			t.Fatalf("outcome %v, want a wait", err)
		}
		return wait.After
	}
	t.Run("failures in a row: the delay doubles up to two minutes", func(t *testing.T) {
		h := newHarness()
		h.list(t)
		for want := time.Second; want < 4*time.Minute; want *= 2 {
			if got := after(t, h.kind.Failed(object(), h.observe(), &cloud.Error{Kind: cloud.Unavailable})); got != min(want, 2*time.Minute) {
				t.Errorf("delay %v, want %v", got, min(want, 2*time.Minute))
			}
		}
	})
	for name, test := range map[string]struct{ retryAfter, want time.Duration }{
		"Throttled with RetryAfter: as long as it says": {3 * time.Minute, 3 * time.Minute},
		"Throttled without RetryAfter: one second":      {0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness()
			h.list(t)
			if got := after(t, h.kind.Failed(object(), h.observe(), &cloud.Error{Kind: cloud.Throttled, RetryAfter: test.retryAfter})); got != test.want {
				t.Errorf("delay %v, want %v", got, test.want)
			}
		})
	}
}

// refusals are the kinds of errors by which a cloud refuses a change for a reason of the object's own.
var refusals = []cloud.Kind{
	cloud.Prohibited, cloud.Taken, cloud.KeyReused, cloud.Quota, cloud.NoHost, cloud.Rejected, cloud.Forbidden, cloud.Conflict, cloud.Failed,
	cloud.Busy, cloud.NeedsStop, cloud.GuestUnavailable, cloud.Unsupported,
}

// recheck returns after how long an outcome is reconciled again.
func recheck(outcome error) time.Duration {
	if wait, ok := errors.AsType[*reconciler.WaitError](outcome); ok {
		return wait.After
	}
	if stall, ok := errors.AsType[*reconciler.StalledError](outcome); ok {
		return stall.Recheck
	}
	return -1
}

func TestRefusedDeletionIsTriedAgainWithinTwoMinutesAndSaysSo(t *testing.T) {
	for _, kind := range refusals {
		for _, onDemand := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/onDemand=%t", kind, onDemand), func(t *testing.T) {
				h := newHarness()
				h.list(t)
				h.kind.OnDemand = onDemand
				v := object()
				v.DeletionTimestamp = &metav1.Time{Time: h.now}
				for want := time.Second; want < 4*time.Minute; want *= 2 {
					got := h.kind.Failed(v, h.observe(), &cloud.Error{Kind: kind, Op: "delete disk", Detail: "no"})
					if after := min(want, 2*time.Minute); recheck(got) != after || !strings.Contains(got.Error(), "tried again after "+after.String()) {
						t.Errorf("outcome %q after %v, want one that says that it is tried again after %v", got, recheck(got), after)
					}
				}
			})
		}
	}
}

func TestRefusalOfAChangeWaitsLongOnlyIfTheSpecIsWrong(t *testing.T) {
	long := map[cloud.Kind]bool{
		cloud.Prohibited: true, cloud.Taken: true, cloud.KeyReused: true, cloud.Rejected: true, cloud.NeedsStop: true, cloud.GuestUnavailable: true, cloud.Unsupported: true,
	}
	for _, kind := range refusals {
		t.Run(string(kind), func(t *testing.T) {
			h := newHarness()
			h.list(t)
			got := recheck(h.kind.Failed(object(), h.observe(), &cloud.Error{Kind: kind}))
			if isLong := got > 2*time.Minute; isLong != long[kind] || got <= 0 {
				t.Errorf("tried again after %v, want more than two minutes: %t", got, long[kind])
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	defaults := external.Defaults[*volume.Volume, volume.Disk, *observation]{}
	v, obs := object(), &observation{}
	t.Run("Relate: no error", func(t *testing.T) {
		if err := defaults.Relate(t.Context(), v, obs); err != nil {
			t.Errorf("Relate: %v", err)
		}
	})
	t.Run("Adopted: in sync", func(t *testing.T) {
		if outcome := defaults.Adopted(v, volume.Disk{}); outcome != nil {
			t.Errorf("outcome %v, want in sync", outcome)
		}
	})
	t.Run("Refused: left to the lifecycle", func(t *testing.T) {
		if outcome := defaults.Refused(t.Context(), v, obs, &cloud.Error{Kind: cloud.Rejected}); outcome != nil {
			t.Errorf("outcome %v, want none", outcome)
		}
	})
	t.Run("PlanDeletion: not decided", func(t *testing.T) {
		if plan, decided := defaults.PlanDeletion(v, obs); decided || len(plan.Steps) > 0 || plan.Outcome != nil {
			t.Errorf("plan %v, outcome %v, decided %t; want it not decided", plan.Names(), plan.Outcome, decided)
		}
	})
	tests := []struct {
		kind                cloud.Kind
		unclear, keepsClaim bool
	}{
		{kind: cloud.Taken, unclear: true},
		{kind: cloud.KeyReused, unclear: true},
		{kind: cloud.Quota, keepsClaim: true},
		{kind: cloud.Throttled, keepsClaim: true},
		{kind: cloud.Rejected},
		{kind: cloud.Prohibited},
		{kind: cloud.Unavailable},
	}
	for _, tc := range tests {
		t.Run(fmt.Sprintf("%s: unclear %t, keeps the claim %t", tc.kind, tc.unclear, tc.keepsClaim), func(t *testing.T) {
			err := &cloud.Error{Kind: tc.kind, Op: "create"}
			if cause := defaults.Unclear(v, obs, err); (cause != nil) != tc.unclear {
				t.Errorf("Unclear: %v, want an error: %t", cause, tc.unclear)
			}
			if got := defaults.KeepsClaim(obs, err); got != tc.keepsClaim {
				t.Errorf("KeepsClaim %t, want %t", got, tc.keepsClaim)
			}
		})
	}
}
