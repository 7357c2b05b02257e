package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	// peerCloud is the Cloud of the operator as a peer.
	peerCloud = "peer"
	// peerLooks is the number of looks that are counted at rest.
	peerLooks = 2
)

// vmObjects creates and deletes VM objects for a controller that makes a server for each.
type vmObjects struct {
	s      *stage
	prefix string
	// ready reports whether the controller is done with a VM.
	ready func(*pcapi.VM) bool
}

func (v *vmObjects) create(ctx context.Context, n int, patience time.Duration) (int, error) {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f, err := v.s.follow(patient, v.prefix)
	if err != nil {
		return 0, err
	}
	defer f.stop()
	created := make(chan error, 1)
	go func() { created <- v.s.put(ctx, v.prefix, n, peerCloud) }()
	err = f.count(patient, n, "ready", func(event watch.Event, vm *pcapi.VM) bool { return event.Type != watch.Deleted && v.ready(vm) })
	if err := <-created; err != nil {
		return 0, err
	}
	if err == nil {
		return n, nil
	}
	say("  %v", err)
	vms, err := v.list(ctx)
	return len(slices.DeleteFunc(vms, func(vm pcapi.VM) bool { return !v.ready(&vm) })), err
}

// list returns all VM objects.
func (v *vmObjects) list(ctx context.Context) ([]pcapi.VM, error) {
	var list pcapi.VMList
	if err := v.s.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing VMs: %w", err)
	}
	return list.Items, nil
}

// remove deletes all VM objects. Those that the controller still keeps after patience lose
// their finalizers.
func (v *vmObjects) remove(ctx context.Context, _ int, patience time.Duration) error {
	vms, err := v.list(ctx)
	if err != nil {
		return err
	}
	err = each(len(vms), func(i int) error { return v.s.client.Delete(ctx, &vms[i]) })
	if err != nil {
		return fmt.Errorf("deleting the VMs: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var some pcapi.VMList
		err := v.s.client.List(ctx, &some, client.InNamespace(namespace), client.Limit(1))
		return len(some.Items) == 0, err
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	if vms, err = v.list(ctx); err != nil {
		return err
	}
	say("  %d VM objects are not deleted after %s", len(vms), patience)
	return each(len(vms), func(i int) error {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		return client.IgnoreNotFound(v.s.client.Patch(ctx, &vms[i], patch))
	})
}

// awaitLooks waits for a number of poll intervals.
func awaitLooks(ctx context.Context) (int, error) {
	select {
	case <-time.After(peerLooks * peerPoll):
		return peerLooks, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// operatorPeer is this operator.
type operatorPeer struct {
	vmObjects
	manager *manager
}

func (*operatorPeer) title() string { return "this operator" }

func (*operatorPeer) writer() agent { return operator }

func (p *operatorPeer) pid() int { return p.manager.pid() }

func (p *operatorPeer) start(ctx context.Context, s *stage, at *mock, _ int) error {
	p.vmObjects = vmObjects{s: s, prefix: fmt.Sprintf("operator%d", s.starts), ready: func(vm *pcapi.VM) bool {
		return meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.ReadyCondition)
	}}
	cloud := newCloud(peerCloud, at)
	cloud.Spec.PollInterval = metav1.Duration{Duration: peerPoll}
	if err := s.client.Create(ctx, cloud); err != nil {
		return fmt.Errorf("creating Cloud %s: %w", peerCloud, err)
	}
	var err error
	if p.manager, err = s.startManager(ctx); err != nil {
		return errors.Join(err, s.client.Delete(ctx, cloud))
	}
	if err := s.listed(ctx, at, 1); err != nil {
		return errors.Join(err, p.stop(ctx))
	}
	return nil
}

func (*operatorPeer) look(ctx context.Context) (int, error) { return awaitLooks(ctx) }

// stop stops the operator once it has released the Cloud.
func (p *operatorPeer) stop(ctx context.Context) error {
	cloud := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: peerCloud}}
	if err := p.s.client.Delete(ctx, cloud); err != nil {
		return errors.Join(fmt.Errorf("deleting Cloud %s: %w", peerCloud, err), p.manager.stop())
	}
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		err := p.s.client.Get(ctx, client.ObjectKeyFromObject(cloud), cloud)
		return err != nil, client.IgnoreNotFound(err)
	})
	return errors.Join(err, p.manager.stop())
}

// seedPeer is the controller of test/bench/seedcontroller.
type seedPeer struct {
	vmObjects
	*process
}

func (*seedPeer) title() string { return "client-go controller, a poll for each VM" }

func (*seedPeer) writer() agent { return seed }

func (p *seedPeer) start(ctx context.Context, s *stage, at *mock, _ int) error {
	p.vmObjects = vmObjects{s: s, prefix: fmt.Sprintf("seed%d", s.starts), ready: func(vm *pcapi.VM) bool { return vm.Status.VMID != "" }}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	p.process, err = start(ctx, "seedcontroller", s.options.seed, s.file(fmt.Sprintf("seed-%d.log", s.starts)), "http://"+address+"/readyz",
		[]string{"KUBECONFIG=" + s.env.Kubeconfig()},
		"--cloud="+at.url, "--health-probe-bind-address="+address, "--workers="+strconv.Itoa(s.options.workers), "--poll-interval="+peerPoll.String())
	return err
}

func (*seedPeer) look(ctx context.Context) (int, error) { return awaitLooks(ctx) }

func (p *seedPeer) stop(context.Context) error { return p.process.stop() }
