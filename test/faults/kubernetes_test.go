package faults

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// failedWrites are what can happen to a write to the API server.
var failedWrites = map[string]answer{
	"conflict":                    {response: refusal(apierrors.NewConflict(schema.GroupResource{Resource: "vms"}, vm, errors.New("changed meanwhile")))},
	"error":                       {response: refusal(apierrors.NewInternalError(errors.New("etcd is unavailable")))},
	"error, but written":          {took: true, response: refusal(apierrors.NewInternalError(errors.New("etcd is unavailable")))},
	"timeout":                     {response: refusal(apierrors.NewTimeoutError("try again", 1))},
	"timeout, but written":        {took: true, response: refusal(apierrors.NewTimeoutError("try again", 1))},
	"too many requests":           {response: refusal(apierrors.NewTooManyRequests("slow down", 1))},
	"connection cut":              {},
	"connection cut, but written": {took: true},
}

func TestFirstWritesOfEveryObjectFail(t *testing.T) {
	t.Parallel()
	settings := map[string]setting{}
	for _, p := range []profile{extended, core, bare} {
		for name, instead := range failedWrites {
			settings[p.name+": "+name] = setting{profile: p, respond: atFirst(instead)}
		}
	}
	chosen := third(slices.Sorted(maps.Keys(settings)), seed(t), "first writes")
	maps.DeleteFunc(settings, func(name string, _ setting) bool { return !slices.Contains(chosen, name) })
	inWorlds(t, settings, func(ctx context.Context, w *world) error {
		for _, do := range []step{create(vm), remove(vm, gone)} {
			if err := errors.Join(w.perform(ctx, do), w.verifyAtRest(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestAPIServerIsUnreachableWhile10VMsAreCreatedAndDeleted(t *testing.T) {
	t.Parallel()
	names := named("vm", 10)
	inWorlds(t, on(extended, core, bare), func(ctx context.Context, w *world) error {
		for _, do := range []func(string) step{createOne, removeOne} {
			if err := errors.Join(w.withoutAPIServer(ctx, each(names, do)), w.verifyAtRest(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}

// atFirst answers the first writes of each object and subresource.
func atFirst(instead answer) func(effect) *answer {
	const often = 3
	counts := map[string]int{}
	return func(e effect) *answer {
		if e.side == kubernetesSide {
			counts[e.path]++
			if counts[e.path] <= often {
				return &instead
			}
		}
		return nil
	}
}

// withoutAPIServer does a step. The API server is disconnected at the fifth
// change in the cloud, for three poll intervals. The cloud may not be listed
// meanwhile: a read of the Cloud waits until the cache shows the last write of it,
// and the API server may be gone between the two.
func (w *world) withoutAPIServer(ctx context.Context, do step) error {
	var changes atomic.Int32
	away := make(chan struct{})
	w.gate.respond(func(e effect) *answer {
		if e.side == cloudSide && changes.Add(1) == 5 {
			w.kube.disconnect()
			close(away)
		}
		return nil
	})
	defer w.kube.connect()
	if err := do(ctx, w); err != nil {
		return err
	}
	select {
	case <-away:
	case <-ctx.Done():
		return errors.New("there were no five changes in the cloud")
	}
	end := time.Now().Add(3 * pollInterval)
	return w.until(ctx, func() error {
		if time.Now().Before(end) {
			return errors.New("the API server is away")
		}
		return nil
	})
}
