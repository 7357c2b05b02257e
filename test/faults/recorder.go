package faults

import (
	"context"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// recorder watches the VMs of a namespace without a proxy, and records what must
// never be observed.
type recorder struct {
	// left describes what is left of the server of an object that is gone.
	left func(vm *pcapi.VM) string

	mu     sync.Mutex
	latest map[string]*pcapi.VM
	ids    map[types.UID]string
	wrong  []string
	stop   func()
	done   chan struct{}
}

func newRecorder(left func(*pcapi.VM) string) *recorder {
	return &recorder{left: left, latest: map[string]*pcapi.VM{}, ids: map[types.UID]string{}, done: make(chan struct{})}
}

// watch starts to watch. Of objects created after it returned, every status is
// observed. The watch is resumed where it ended if the API server drops it.
func (r *recorder) watch(ctx context.Context, c client.WithWatch, namespace string) error {
	var now pcapi.VMList
	if err := c.List(ctx, &now, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list VMs: %w", err)
	}
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, now.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, &pcapi.VMList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &options})
		},
	})
	if err != nil {
		return fmt.Errorf("watch VMs: %w", err)
	}
	r.stop = stream.Stop
	go func() {
		defer close(r.done)
		for event := range stream.ResultChan() {
			r.observe(event)
		}
	}()
	return nil
}

func (r *recorder) close() {
	if r.stop != nil {
		r.stop()
		<-r.done
	}
}

func (r *recorder) observe(event watch.Event) {
	vm, ok := event.Object.(*pcapi.VM)
	if !ok {
		r.record("the watch of VMs broke: %v", apierrors.FromObject(event.Object))
		return
	}
	was := r.id(vm)
	switch {
	case was != "" && vm.Status.VMID != was:
		r.record("status.vmId of %s was %s and became %q", vm.Name, was, vm.Status.VMID)
	case event.Type == watch.Deleted:
		if left := r.left(vm); left != "" {
			r.record("object %s is gone, and %s", vm.Name, left)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if event.Type == watch.Deleted {
		if now := r.latest[vm.Name]; now != nil && now.UID == vm.UID {
			delete(r.latest, vm.Name)
		}
		return
	}
	r.latest[vm.Name] = vm
}

// id returns the recorded id, and records the first one.
func (r *recorder) id(vm *pcapi.VM) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids[vm.UID] == "" {
		r.ids[vm.UID] = vm.Status.VMID
	}
	return r.ids[vm.UID]
}

func (r *recorder) record(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *recorder) violations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.wrong)
}

// vm returns an object as it was last observed; nil once it is gone. It must not be changed.
func (r *recorder) vm(name string) *pcapi.VM {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest[name]
}

// hasServer reports whether another object than except has recorded a server.
func (r *recorder) hasServer(server string, except types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, vm := range r.latest {
		if vm.Status.VMID == server && vm.UID != except {
			return true
		}
	}
	return false
}
