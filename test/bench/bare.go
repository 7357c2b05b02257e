package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

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

// bareLoop is the lower bound of the cost to make VM objects Ready: it watches for
// new objects and sends the same writes as the operator, without a cloud, a cache
// or a queue.
type bareLoop struct {
	vms     rest.Interface
	events  kubernetes.Interface
	params  runtime.ParameterCodec
	workers int
	// sample is a VM that the operator made Ready, and event its event.
	sample pcapi.VM
	event  eventsv1.Event
	status []byte
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
	var events eventsv1.EventList
	if err := s.client.List(ctx, &events, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for _, event := range events.Items {
		if event.Regarding.UID == loop.sample.UID {
			loop.event = event
			return loop, nil
		}
	}
	return nil, fmt.Errorf("the operator recorded no event about VM %s", sample)
}

// start starts the watch. After ctx has ended and everything is written, the
// channel receives the error.
func (b *bareLoop) start(ctx context.Context) (<-chan error, error) {
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
				if vm, isVM := event.Object.(*pcapi.VM); isVM && event.Type == watch.Added && !known[vm.Namespace+"/"+vm.Name] {
					queue <- vm
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return b.serve(context.WithoutCancel(ctx), queue), nil
}

func (b *bareLoop) serve(ctx context.Context, queue <-chan *pcapi.VM) <-chan error {
	var workers sync.WaitGroup
	failed := make(chan error, bareQueue)
	for range b.workers {
		workers.Go(func() {
			for vm := range queue {
				if err := b.write(ctx, vm); err != nil {
					failed <- err
					continue
				}
				// The operator records events concurrently, too.
				workers.Go(func() { failed <- b.recordEvent(ctx, vm) })
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

// write sends the two patches that make a VM object Ready.
func (b *bareLoop) write(ctx context.Context, vm *pcapi.VM) error {
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

func (b *bareLoop) recordEvent(ctx context.Context, vm *pcapi.VM) error {
	event := b.event.DeepCopy()
	event.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: strings.Replace(event.Name, b.sample.Name, vm.Name, 1)}
	event.EventTime = metav1.NowMicro()
	event.Regarding.Name, event.Regarding.UID, event.Regarding.ResourceVersion = vm.Name, vm.UID, vm.ResourceVersion
	_, err := b.events.EventsV1().Events(namespace).Create(ctx, event, metav1.CreateOptions{})
	return err
}

// release removes the finalizers of the objects, before or after their deletion.
func (b *bareLoop) release(ctx context.Context, prefix string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	return each(n, func(i int) error {
		return b.patch(newVM(prefix, i, "").Name, []byte(`{"metadata":{"finalizers":null}}`)).Do(ctx).Error()
	})
}

// serverCPU returns the CPU time of the API server.
func (s *stage) serverCPU(ctx context.Context) (time.Duration, error) {
	clients, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return 0, err
	}
	page, err := clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	seconds, err := sum(page, "process_cpu_seconds_total")
	return time.Duration(seconds * float64(time.Second)), err
}
