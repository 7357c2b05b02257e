package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// refusal is an answer of the API server that says no.
func refusal(err *apierrors.StatusError) func() *http.Response {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	body, _ := json.Marshal(status)
	return func() *http.Response {
		return &http.Response{
			StatusCode: int(status.Code), ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
		}
	}
}

// misfortunes befall a write to the API server.
var misfortunes = map[string]answer{
	"conflict":                    {response: refusal(apierrors.NewConflict(schema.GroupResource{Resource: "vms"}, vm, errors.New("changed meanwhile")))},
	"error":                       {response: refusal(apierrors.NewInternalError(errors.New("etcd is unhappy")))},
	"error, but written":          {took: true, response: refusal(apierrors.NewInternalError(errors.New("etcd is unhappy")))},
	"timeout":                     {response: refusal(apierrors.NewTimeoutError("try again", 1))},
	"timeout, but written":        {took: true, response: refusal(apierrors.NewTimeoutError("try again", 1))},
	"too many requests":           {response: refusal(apierrors.NewTooManyRequests("slowly", 1))},
	"connection cut":              {},
	"connection cut, but written": {took: true},
}

var _ = Describe("A Kubernetes API server", func() {
	It("that fails the first writes of every kind leaves one server, and then none", func(ctx SpecContext) {
		worlds := map[string]setting{}
		for _, p := range []profile{extended, core, bare} {
			for name, instead := range misfortunes {
				worlds[p.name+", "+name] = setting{profile: p, lie: atFirst(instead)}
			}
		}
		inWorlds(ctx, worlds, func(ctx context.Context, w *world) error {
			for _, do := range []step{create(vm), remove(vm, gone)} {
				if err := errors.Join(w.take(ctx, do), w.settled(ctx)); err != nil {
					return err
				}
			}
			return nil
		})
	})

	It("that is away while VMs are made and deleted loses none and doubles none", func(ctx SpecContext) {
		names := named("vm", 10)
		inWorlds(ctx, on(extended, core, bare), func(ctx context.Context, w *world) error {
			for _, do := range []func(string) step{createOne, removeOne} {
				if err := errors.Join(w.forsaken(ctx, each(names, do)), w.settled(ctx)); err != nil {
					return err
				}
			}
			return nil
		})
	})
})

// atFirst gives the first writes of each object and subresource another answer.
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

// forsaken has the API server leave at the fifth change in the cloud, and come
// back once the cloud was listed a few times meanwhile.
func (w *world) forsaken(ctx context.Context, do step) error {
	var changes atomic.Int32
	away := make(chan struct{})
	w.gate.lie(func(e effect) *answer {
		if e.side == cloudSide && changes.Add(1) == 5 {
			w.kube.leave()
			close(away)
		}
		return nil
	})
	defer w.kube.come()
	if err := do(ctx, w); err != nil {
		return err
	}
	select {
	case <-away:
	case <-ctx.Done():
		return errors.New("there were no five changes in the cloud")
	}
	return w.listings(ctx, 3)
}
