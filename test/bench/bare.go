package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// bareQueue is the maximum number of VMs that wait for a worker.
const bareQueue = 100_000

// bareLoop is the lower bound of the cost to make VM objects Ready, and to release
// deleted ones: it watches the objects and sends the same writes as the operator,
// without a cloud, a cache or a queue.
type bareLoop struct {
	vms     rest.Interface
	events  kubernetes.Interface
	params  runtime.ParameterCodec
	workers int
	// sample is a VM that the operator made Ready.
	sample pcapi.VM
	status []byte
	// created and deleted are the events that the operator recorded of the sample.
	created, deleted *eventsv1.Event
}

// task is what the loop does for the VMs of some events.
type task struct {
	// due reports whether the VM of an event of the watch is to be written. It is true
	// of one event of a VM. isNew is whether the VM did not exist when the watch began.
	due func(event watch.EventType, vm *pcapi.VM, isNew bool) bool
	// write sends the writes but the event.
	write func(ctx context.Context, vm *pcapi.VM) error
	// event is recorded of each VM.
	event *eventsv1.Event
}

// making makes new VMs Ready.
func (b *bareLoop) making() task {
	return task{event: b.created, write: b.makeReady, due: func(event watch.EventType, _ *pcapi.VM, isNew bool) bool {
		return event == watch.Added && isNew
	}}
}

// releasing releases deleted VMs.
func (b *bareLoop) releasing() task {
	return task{event: b.deleted, write: b.release, due: func(event watch.EventType, vm *pcapi.VM, _ bool) bool {
		return event == watch.Modified && !vm.DeletionTimestamp.IsZero() && len(vm.Finalizers) > 0
	}}
}

// newBareLoop returns a loop that writes the same as the operator wrote for the VM
// sample.
func newBareLoop(ctx context.Context, s *stage, sample string) (*bareLoop, error) {
	config := rest.CopyConfig(s.config)
	config.UserAgent = string(bare)
	loop := &bareLoop{workers: s.options.workers, params: metav1.ParameterCodec}
	var err error
	if loop.events, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	version := pcapi.GroupVersion
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(s.client.Scheme()).WithoutConversion()
	if loop.vms, err = rest.RESTClientFor(config); err != nil {
		return nil, err
	}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: sample}, &loop.sample); err != nil {
		return nil, err
	}
	if loop.status, err = json.Marshal(loop.sample.Status); err != nil {
		return nil, err
	}
	loop.created, err = loop.eventOf(ctx, pcapi.CreatedReason)
	return loop, err
}

// eventOf returns the event that the operator recorded of the sample with a reason.
func (b *bareLoop) eventOf(ctx context.Context, reason string) (*eventsv1.Event, error) {
	list, err := b.events.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, event := range list.Items {
		if event.Regarding.UID == b.sample.UID && event.Reason == reason {
			return &event, nil
		}
	}
	return nil, fmt.Errorf("the operator recorded no event %s about VM %s", reason, b.sample.Name)
}

// start starts the watch and the task. After ctx has ended and everything is written,
// the channel receives the error.
func (b *bareLoop) start(ctx context.Context, t task) (<-chan error, error) {
	events, known, err := informed(ctx, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			var list pcapi.VMList
			err := b.vms.Get().Namespace(namespace).Resource("vms").VersionedParams(&options, b.params).Do(ctx).Into(&list)
			return &list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return b.vms.Get().Namespace(namespace).Resource("vms").VersionedParams(&options, b.params).Watch(ctx)
		},
	})
	if err != nil {
		return nil, err
	}
	queue := make(chan *pcapi.VM, bareQueue)
	go func() {
		defer close(queue)
		defer events.Stop()
		for {
			select {
			case event := <-events.ResultChan():
				if vm, isVM := event.Object.(*pcapi.VM); isVM && t.due(event.Type, vm, !known[vm.Namespace+"/"+vm.Name]) {
					queue <- vm
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return b.serve(context.WithoutCancel(ctx), t, queue), nil
}

// during runs the task while do runs, and until everything is written.
func (b *bareLoop) during(ctx context.Context, t task, do func() error) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	done, err := b.start(working, t)
	if err != nil {
		return err
	}
	err = do()
	stop()
	return errors.Join(err, <-done)
}

func (b *bareLoop) serve(ctx context.Context, t task, queue <-chan *pcapi.VM) <-chan error {
	var workers sync.WaitGroup
	failed := make(chan error, bareQueue)
	for range b.workers {
		workers.Go(func() {
			for vm := range queue {
				if err := t.write(ctx, vm); err != nil {
					failed <- err
					continue
				}
				// The operator records events concurrently, too.
				workers.Go(func() { failed <- b.recordEvent(ctx, t.event, vm) })
			}
		})
	}
	done := make(chan error, 1)
	go func() {
		workers.Wait()
		close(failed)
		var errs []error
		for err := range failed {
			errs = append(errs, err)
		}
		done <- errors.Join(errs...)
	}()
	return done
}

// makeReady sends the two patches that make a VM object Ready.
func (b *bareLoop) makeReady(ctx context.Context, vm *pcapi.VM) error {
	claim, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": b.sample.Annotations, "finalizers": b.sample.Finalizers, "resourceVersion": vm.ResourceVersion,
	}})
	if err != nil {
		return err
	}
	var answer pcapi.VM
	if err := b.patch(vm.Name, claim).Do(ctx).Into(&answer); err != nil {
		return err
	}
	status := bytes.ReplaceAll(b.status, []byte(b.sample.Status.VMID), []byte(uuid.NewString()))
	report, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": vm.UID}, "status": json.RawMessage(status)})
	if err != nil {
		return err
	}
	return b.patch(vm.Name, report).SubResource("status").Do(ctx).Into(&answer)
}

func (b *bareLoop) patch(name string, body []byte) *rest.Request {
	return b.vms.Patch(types.MergePatchType).Namespace(namespace).Resource("vms").Name(name).Body(body)
}

func (b *bareLoop) recordEvent(ctx context.Context, sample *eventsv1.Event, vm *pcapi.VM) error {
	event := sample.DeepCopy()
	event.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: strings.Replace(event.Name, b.sample.Name, vm.Name, 1)}
	event.EventTime = metav1.NowMicro()
	event.Regarding.Name, event.Regarding.UID, event.Regarding.ResourceVersion = vm.Name, vm.UID, vm.ResourceVersion
	_, err := b.events.EventsV1().Events(namespace).Create(ctx, event, metav1.CreateOptions{})
	return err
}

// release sends the patch that releases a deleted VM object.
func (b *bareLoop) release(ctx context.Context, vm *pcapi.VM) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": nil, "finalizers": nil, "resourceVersion": vm.ResourceVersion,
	}})
	if err != nil {
		return err
	}
	var answer pcapi.VM
	return b.patch(vm.Name, body).Do(ctx).Into(&answer)
}
