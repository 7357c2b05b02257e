package faults

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/testkit"
)

// start starts a manager beside those that run.
func (w *world) start(args ...string) (*testkit.Process, error) {
	m, err := testkit.StartProcess(w.env.binary, w.kubeconfig(), w.log, w.maxData, append([]string{
		"--namespace=" + w.name, "--health-probe-bind-address=0", "--zap-log-level=debug",
	}, args...)...)
	if err == nil {
		w.managers = append(w.managers, m)
	}
	return m, err
}

// leader returns the holder of the lease; empty if there is none.
func (w *world) leader(ctx context.Context) (string, error) {
	var l coordinationv1.Lease
	err := w.env.client.Get(ctx, client.ObjectKey{Namespace: w.name, Name: leaseName}, &l)
	return ptr.Deref(l.Spec.HolderIdentity, ""), client.IgnoreNotFound(err)
}

// leaderOtherThan waits until another manager than the last one leads, and returns it.
func (w *world) leaderOtherThan(ctx context.Context, last string) (now string, err error) {
	return now, w.until(ctx, func() error {
		if now, err = w.leader(ctx); err != nil {
			return err
		}
		if now == "" || now == last {
			return fmt.Errorf("%q leads", now)
		}
		return nil
	})
}

// crash kills the last manager, of which an effect is held, and starts another.
// meanwhile, if set, is done while no manager runs.
func (w *world) crash(ctx context.Context, at *hold, meanwhile step) error {
	if err := w.managers[len(w.managers)-1].Kill(); err != nil {
		return err
	}
	w.gate.managerKilled()
	defer at.release()
	if meanwhile != nil {
		if err := meanwhile(ctx, w); err != nil {
			return err
		}
	}
	if _, err := w.start(); err != nil {
		return err
	}
	if at.phase != late {
		return nil
	}
	before := w.gate.listingCount()
	return w.until(ctx, func() error {
		if w.gate.listingCount() == before {
			return errors.New("the cloud was not listed by the new manager")
		}
		return nil
	})
}
