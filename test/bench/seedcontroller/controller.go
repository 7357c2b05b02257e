package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// finalizer keeps a VM object until its server is deleted.
const finalizer = "bench.privatecloud/seed-controller"

// controller makes a server for each VM object.
type controller struct {
	vms      rest.Interface
	cloud    *cloudClient
	poll     time.Duration
	informer cache.SharedIndexInformer
	queue    workqueue.TypedRateLimitingInterface[string]
}

func newController(vms rest.Interface, cloud *cloudClient, poll time.Duration) *controller {
	params := metav1.ParameterCodec
	return &controller{
		vms: vms, cloud: cloud, poll: poll,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		informer: cache.NewSharedIndexInformer(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				var list pcapi.VMList
				err := vms.Get().Resource("vms").VersionedParams(&options, params).Do(ctx).Into(&list)
				return &list, err
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.Watch = true
				return vms.Get().Resource("vms").VersionedParams(&options, params).Watch(ctx)
			},
		}, &pcapi.VM{}, 0, nil),
	}
}

// run processes VMs until ctx ends. It calls started when the informer has listed them.
func (c *controller) run(ctx context.Context, workers int, started func()) error {
	enqueue := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			c.queue.Add(key)
		}
	}
	_, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, object any) {
		if vm, isVM := object.(*pcapi.VM); isVM && vm.DeletionTimestamp != nil {
			enqueue(vm)
		}
	}})
	if err != nil {
		return fmt.Errorf("watching VMs: %w", err)
	}
	go c.informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), c.informer.HasSynced) {
		return errors.New("the VMs were not listed")
	}
	started()
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	running.Go(func() { c.pollAll(ctx) })
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
	return nil
}

// next processes one VM. An error makes the queue repeat it with a back-off.
func (c *controller) next(ctx context.Context) bool {
	key, stopped := c.queue.Get()
	if stopped {
		return false
	}
	defer c.queue.Done(key)
	if err := c.sync(ctx, key); err != nil {
		fmt.Fprintln(os.Stderr, key, err)
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

func (c *controller) sync(ctx context.Context, key string) error {
	object, exists, err := c.informer.GetStore().GetByKey(key)
	if err != nil || !exists {
		return err
	}
	vm := object.(*pcapi.VM).DeepCopy()
	switch {
	case vm.DeletionTimestamp != nil:
		return c.release(ctx, vm)
	case vm.Status.VMID != "":
		return nil
	case len(vm.Finalizers) == 0:
		vm.Finalizers = []string{finalizer}
		if vm, err = c.update(ctx, vm, ""); err != nil {
			return err
		}
	}
	return c.create(ctx, vm)
}

// create makes the server. A failed create is repeated.
func (c *controller) create(ctx context.Context, vm *pcapi.VM) error {
	var made server
	err := c.cloud.checkName(ctx, vm.Spec.VMName)
	if err == nil {
		made, err = c.cloud.create(ctx, vm.Spec.VMName)
	}
	if err != nil {
		return errors.Join(err, c.setStatus(ctx, vm, func(status *pcapi.VMStatus) { status.State = pcapi.VMStateFailed }))
	}
	return c.setStatus(ctx, vm, func(status *pcapi.VMStatus) {
		status.VMID, status.State, status.CPUUtilization = made.ID, pcapi.VMStateRunning, made.CPUUtilization
	})
}

// setStatus writes a status that changes, and reads the VM again if it was old.
func (c *controller) setStatus(ctx context.Context, vm *pcapi.VM, set func(*pcapi.VMStatus)) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		before := vm.Status.DeepCopy()
		set(&vm.Status)
		if reflect.DeepEqual(before, &vm.Status) {
			return nil
		}
		_, err := c.update(ctx, vm, "status")
		if apierrors.IsConflict(err) {
			var last pcapi.VM
			if getErr := c.vms.Get().Namespace(vm.Namespace).Resource("vms").Name(vm.Name).Do(ctx).Into(&last); getErr != nil {
				return getErr
			}
			vm = &last
		}
		return err
	})
}

// release deletes the server, and removes the finalizer.
func (c *controller) release(ctx context.Context, vm *pcapi.VM) error {
	if len(vm.Finalizers) == 0 {
		return nil
	}
	if vm.Status.VMID != "" {
		if err := c.cloud.remove(ctx, vm.Status.VMID); err != nil {
			return err
		}
	}
	vm.Finalizers = nil
	_, err := c.update(ctx, vm, "")
	return err
}

// pollAll reads the CPU use of all VMs, one after the other, at the poll interval.
func (c *controller) pollAll(ctx context.Context) {
	ticker := time.NewTicker(c.poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, object := range c.informer.GetStore().List() {
			if ctx.Err() != nil {
				return
			}
			c.pollOne(ctx, object.(*pcapi.VM))
		}
	}
}

// pollOne writes the CPU use of a VM if it has changed.
func (c *controller) pollOne(ctx context.Context, vm *pcapi.VM) {
	if vm.Status.VMID == "" || vm.DeletionTimestamp != nil {
		return
	}
	use, err := c.cloud.utilization(ctx, vm.Status.VMID)
	if err == nil {
		err = c.setStatus(ctx, vm.DeepCopy(), func(status *pcapi.VMStatus) { status.CPUUtilization = new(use) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, vm.Name, err)
	}
}

func (c *controller) update(ctx context.Context, vm *pcapi.VM, subresource string) (*pcapi.VM, error) {
	var answer pcapi.VM
	request := c.vms.Put().Namespace(vm.Namespace).Resource("vms").Name(vm.Name).Body(vm)
	if subresource != "" {
		request = request.SubResource(subresource)
	}
	return &answer, request.Do(ctx).Into(&answer)
}
