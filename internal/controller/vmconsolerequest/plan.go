package vmconsolerequest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/console"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
)

// The names of the steps.
const (
	stepRead   = "ReadConsole"
	stepExpire = "Expire"
)

// lifetime is how long a request is kept after its answer, or after it was first refused or had to wait.
const lifetime = 5 * time.Minute

// Plan reads the console once, and deletes the request when its lifetime is over.
func (k *kind) Plan(r *pcapi.VMConsoleRequest, obs *observation) plan {
	switch {
	case timeLeft(r, obs.now) <= 0:
		return reconciler.Do(step{Name: stepExpire, Needs: reconciler.Mutates, Run: k.expire})
	case r.Status.ReadTime != nil:
		return plan{}
	case obs.notReady != nil:
		return reconciler.End[*pcapi.VMConsoleRequest, *observation](untilExpired(r, obs, obs.notReady))
	}
	return reconciler.Do(step{Name: stepRead, Needs: reconciler.NeedsCloud, Run: k.read})
}

// timeLeft returns how long the request is kept. A time that is ahead of the clock, which somebody set back, counts as now.
func timeLeft(r *pcapi.VMConsoleRequest, now time.Time) time.Duration {
	since := begun(r, now)
	if at := r.Status.ReadTime; at != nil && at.Time.Before(now) {
		since = at.Time
	}
	return since.Add(lifetime).Sub(now)
}

// untilExpired returns an outcome that reconciles the request again when its lifetime is over at the latest.
func untilExpired(r *pcapi.VMConsoleRequest, obs *observation, outcome error) error {
	left := timeLeft(r, obs.now)
	within := func(d time.Duration) time.Duration {
		if d == 0 {
			return left
		}
		return min(d, left)
	}
	if e, ok := errors.AsType[*reconciler.WaitError](outcome); ok {
		e.After = within(e.After)
	}
	if e, ok := errors.AsType[*reconciler.BlockedError](outcome); ok {
		e.RequeueAfter = within(e.RequeueAfter)
	}
	if e, ok := errors.AsType[*reconciler.StalledError](outcome); ok {
		e.Recheck = within(e.Recheck)
	}
	return outcome
}

// read reads the console, and then the server: only if it is still that of the VM, its id cannot have been given to
// another one before the console was read.
func (k *kind) read(ctx context.Context, r *pcapi.VMConsoleRequest, obs *observation) error {
	reader, ok := obs.client.(cloud.ConsoleReader)
	if !ok {
		return untilExpired(r, obs, stalled(pcapi.UnsupportedReason, "this kind of cloud does not show the consoles of its servers"))
	}
	id := obs.vm.Status.VMID
	text, err := reader.ReadConsole(ctx, id, int(r.Spec.Lines))
	if err != nil {
		return failed(r, obs, err)
	}
	server, err := obs.client.GetServer(ctx, id)
	if err != nil {
		return failed(r, obs, err)
	}
	if !controller.ProvedServer(obs.vm, server, obs.caps) {
		return untilExpired(r, obs, notProved(r, obs))
	}
	obs.console, err = console.Seal(r.Spec.PublicKey, r.UID, text)
	return err
}

// expire deletes the request.
func (k *kind) expire(ctx context.Context, r *pcapi.VMConsoleRequest, _ *observation) error {
	uid := r.UID
	if err := client.IgnoreNotFound(k.client.Delete(ctx, r, client.Preconditions{UID: &uid})); err != nil {
		return fmt.Errorf("delete VMConsoleRequest %s, whose time is over: %w", client.ObjectKeyFromObject(r), err)
	}
	return &reconciler.WaitError{After: time.Second, Reason: pcapi.ProgressingReason, Message: "this VMConsoleRequest is being deleted", Quiet: true}
}

// failed returns the outcome of a failed call.
func failed(r *pcapi.VMConsoleRequest, obs *observation, err error) error {
	if cloud.KindOf(err) == "" {
		return err
	}
	return untilExpired(r, obs, outcomeOf(r, obs, err))
}

func outcomeOf(r *pcapi.VMConsoleRequest, obs *observation, err error) error {
	after := max(untilRetry(r, obs.now), cloud.RetryAfter(err))
	switch {
	case cloud.Is(err, cloud.Unsupported):
		return stalled(pcapi.UnsupportedReason, "%w", cloud.Public(err))
	case cloud.Is(err, cloud.Rejected, cloud.Forbidden, cloud.Prohibited):
		return stalled(pcapi.RejectedReason, "%w", cloud.Public(err))
	case cloud.Is(err, cloud.Busy, cloud.NotFound, cloud.NotFoundUnproven):
		return reconciler.Wait(after, pcapi.VMNotReadyReason, "%v", cloud.Public(err))
	}
	return reconciler.Wait(after, pcapi.CloudUnavailableReason, "%v", cloud.Public(err))
}

// stalled is the outcome for a request that is refused.
func stalled(reason, format string, args ...any) error {
	return reconciler.Stalled(reason, 0, fmt.Errorf(format, args...))
}
