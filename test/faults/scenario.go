package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/mockcloud"
)

// scenario is what a user does, step by step. Each step begins when the goals of
// the one before it are reached.
type scenario struct {
	name string
	// build and remove are how long the cloud takes to build and to delete.
	build, remove mockcloud.Duration
	// spec of the Cloud, if it matters.
	spec pcapi.CloudSpec
	// counts reports whether an effect is numbered; those of VMs are if it is nil.
	counts func(effect) bool
	// pair: two managers act at a time, without leader election, and one is killed.
	pair bool
	// arrange is done before effects are counted.
	arrange, act []step
	// crashed, if set, is done while no manager runs, and its goals apply then; the
	// rest of act is not done.
	crashed step
}

// step does something and sets goals with world.expect.
type step func(ctx context.Context, w *world) error

// result is the result of one run of a scenario.
type result struct {
	// effects that were counted after arrange.
	effects []effect
	// killed is the effect at which the manager was killed; its n is 0 if it was not.
	killed effect
	took   time.Duration
	err    error
	// report has the details if err is not nil.
	report string
}

// run runs the scenario with the manager killed at the k-th effect, or without a
// kill if k is 0.
func (s scenario) run(ctx context.Context, env *environment, p profile, k int, at phase) (out result) {
	began := time.Now()
	p.mock.BuildTime, p.mock.DeleteTime = s.build, s.remove
	w, err := env.newWorld(ctx, setting{profile: p, spec: s.spec})
	if err != nil {
		return result{err: err}
	}
	defer w.close()
	if s.counts != nil {
		w.gate.counts = s.counts
	}
	out.killed, out.err = s.play(ctx, w, k, at)
	out.effects = w.gate.counted()
	if out.err == nil {
		out.err = w.verifyAtRest(ctx)
	}
	if out.err != nil {
		out.report = w.report()
	}
	out.took = time.Since(began)
	return out
}

func (s scenario) play(ctx context.Context, w *world, k int, at phase) (killed effect, err error) {
	if err := s.startManagers(ctx, w); err != nil {
		return killed, err
	}
	for _, do := range s.arrange {
		if err := w.perform(ctx, do); err != nil {
			return killed, fmt.Errorf("arranging: %w", err)
		}
	}
	w.gate.reset()
	hold := w.gate.holdAt(k, at)
	for i, do := range s.act {
		if err := do(ctx, w); err != nil {
			return killed, err
		}
		if err := w.until(ctx, func() error {
			if len(hold.held) > 0 {
				return nil
			}
			return w.reached()
		}); err != nil {
			return killed, err
		}
		hit := len(hold.held) > 0
		if k > 0 && killed.n == 0 && i == len(s.act)-1 {
			if hit, err = w.waitForHold(ctx, hold); err != nil {
				return killed, err
			}
		}
		if !hit {
			continue
		}
		killed = <-hold.held
		if err := w.crash(ctx, hold, s.crashed); err != nil {
			return killed, err
		}
		if err := w.until(ctx, w.reached); err != nil || s.crashed != nil {
			return killed, err
		}
	}
	return killed, nil
}

// waitForHold waits for the effect of a hold as long as one may still arrive, and
// cancels the hold otherwise: the number of effects differs between runs, since a
// write on an old version is repeated.
func (w *world) waitForHold(ctx context.Context, at *hold) (bool, error) {
	enough := w.seen(3)
	err := w.until(ctx, func() error {
		if len(at.held) == 0 && !enough() {
			return errors.New("the cloud is not listed any more")
		}
		return nil
	})
	return err == nil && !w.gate.cancelHold(at), err
}

// startManagers starts the manager. With two it waits until both have polled the
// cloud often enough to act.
func (s scenario) startManagers(ctx context.Context, w *world) error {
	if _, err := w.start(); err != nil || !s.pair {
		return err
	}
	if _, err := w.start(); err != nil {
		return err
	}
	w.acting = 2
	if err := w.working(ctx, w.acting); err != nil {
		return err
	}
	return w.listings(ctx, 3)
}

// working waits until the controllers of so many managers have started.
func (w *world) working(ctx context.Context, managers int) error {
	return w.until(ctx, func() error {
		for _, controller := range []string{"vm", "vmgroup", "vmsnapshot", "network", "cloud"} {
			if n := strings.Count(w.log.String(), `"msg":"Starting workers","controller":"`+controller+`"`); n < managers {
				return fmt.Errorf("%d controllers of kind %s are at work", n, controller)
			}
		}
		return nil
	})
}

// perform does a step and waits until its goals are reached.
func (w *world) perform(ctx context.Context, do step) error {
	if err := do(ctx, w); err != nil {
		return err
	}
	return w.until(ctx, w.reached)
}

// verifyAtRest waits until the run is at rest, and returns the violations.
func (w *world) verifyAtRest(ctx context.Context) error {
	if err := w.waitForRest(ctx); err != nil {
		return errors.Join(append(w.violations(), err)...)
	}
	return errors.Join(w.violations()...)
}

// waitForRest waits until the goals are reached, and then until a listing that began
// after another was handled has no effect. The effects of a listing are complete
// when the one after it begins.
func (w *world) waitForRest(ctx context.Context) error {
	if err := w.until(ctx, w.reached); err != nil {
		return err
	}
	for began := time.Now(); ; {
		if err := w.listings(ctx, 2); err != nil {
			return err
		}
		quiet := len(w.gate.counted())
		if err := w.listings(ctx, 2); err != nil {
			return err
		}
		restless := w.gate.counted()[quiet:]
		missing := w.reached()
		if len(restless) == 0 && missing == nil {
			return nil
		}
		if time.Since(began) > w.restTimeout {
			return errors.Join(fmt.Errorf("no rest: %v", restless), missing)
		}
	}
}

func (w *world) listings(ctx context.Context, n int) error {
	enough := w.seen(n)
	return w.until(ctx, func() error {
		if !enough() {
			return errors.New("the cloud is not listed any more")
		}
		return nil
	})
}

// seen returns a function that reports whether each manager has listed the cloud n times since. A
// cloud that reports changes is listed seldom: there, poll intervals count.
func (w *world) seen(n int) func() bool {
	before, end := w.gate.listingCount(), time.Now().Add(time.Duration(n)*pollInterval)
	if w.vcenter != nil || w.profile.mock.Capabilities[mockcloud.Events] {
		return func() bool { return time.Now().After(end) }
	}
	return func() bool { return w.gate.listingCount() >= before+n*w.acting }
}
