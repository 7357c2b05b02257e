package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const vmLifecycle = "vm-lifecycle"

// lifecycle is a test that creates and deletes a VM on the mock cloud of the Cloud
// "default": the VM becomes Ready and is deleted, the cloud's ledger agrees, and
// nothing else was changed.
type lifecycle struct {
	client    client.Client
	namespace string
	// timeout is how long the VM may take to become Ready, and to be deleted.
	timeout time.Duration
	// log is what was observed, line by line.
	log strings.Builder
}

func (l *lifecycle) logf(format string, args ...any) {
	fmt.Fprintf(&l.log, format+"\n", args...)
}

func (l *lifecycle) run(ctx context.Context) (err error) {
	cloud, err := l.ledger(ctx)
	if err != nil {
		return err
	}
	before, err := l.scales(ctx)
	if err != nil {
		return err
	}
	vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "scorecard-" + rand.String(5)}}
	vm.Spec.VMName = vm.Name
	if err := l.client.Create(ctx, vm); err != nil {
		return fmt.Errorf("create a VM: %w (kubectl apply -k config/scorecard/rbac makes a service account that may)", err)
	}
	defer func() {
		if err != nil {
			// The context of the test may have ended.
			err = errors.Join(err, client.IgnoreNotFound(l.client.Delete(context.WithoutCancel(ctx), vm)))
		}
	}()
	if err := l.becomesReady(ctx, vm); err != nil {
		return err
	}
	if err := l.isDeleted(ctx, vm); err != nil {
		return err
	}
	entries, err := cloud.read(ctx)
	if err != nil {
		return err
	}
	if err := verify(entries, string(vm.UID), vm.Status.VMID); err != nil {
		return err
	}
	l.logf("the cloud's ledger has one create and one delete of its server")
	after, err := l.scales(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(before, after); diff != "" {
		return fmt.Errorf("deployments of namespace %s were scaled meanwhile (-before +after):\n%s", l.namespace, diff)
	}
	l.logf("no deployment was scaled")
	return nil
}

// ledger returns the ledger of the mock cloud, from now on.
func (l *lifecycle) ledger(ctx context.Context) (*ledger, error) {
	var cloud pcapi.Cloud
	if err := l.client.Get(ctx, client.ObjectKey{Name: pcapi.DefaultCloudName}, &cloud); err != nil {
		return nil, fmt.Errorf("get the Cloud that VMs use: %w", err)
	}
	from := &ledger{endpoint: cloud.Spec.Endpoint}
	entries, err := from.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("this test needs the mock cloud, and the namespace that it is in: %w", err)
	}
	from.since = len(entries)
	return from, nil
}

// scales returns the replicas of each Deployment in the operator's namespace.
func (l *lifecycle) scales(ctx context.Context) (map[string]int32, error) {
	var list appsv1.DeploymentList
	if err := l.client.List(ctx, &list, client.InNamespace(l.namespace)); err != nil {
		return nil, fmt.Errorf("list deployments: %w", err)
	}
	scales := map[string]int32{}
	for i := range list.Items {
		scales[list.Items[i].Name] = *list.Items[i].Spec.Replicas
	}
	return scales, nil
}

func (l *lifecycle) becomesReady(ctx context.Context, vm *pcapi.VM) error {
	start := time.Now()
	err := l.await(ctx, func(ctx context.Context) (bool, error) {
		err := l.client.Get(ctx, client.ObjectKeyFromObject(vm), vm)
		return meta.IsStatusConditionTrue(vm.Status.Conditions, pcapi.ReadyCondition), err
	})
	if err != nil {
		return fmt.Errorf("VM %s did not become Ready, its conditions are %s: %w", vm.Name, conditions(vm), err)
	}
	for _, kind := range []string{pcapi.NameCheckedCondition, pcapi.CreatedCondition} {
		if !meta.IsStatusConditionTrue(vm.Status.Conditions, kind) {
			return fmt.Errorf("VM %s is Ready without %s, its conditions are %s", vm.Name, kind, conditions(vm))
		}
	}
	if vm.Status.VMID == "" || vm.Status.State != pcapi.VMStateRunning || vm.Status.ObservedGeneration != vm.Generation {
		return fmt.Errorf("VM %s is Ready with the status %+v", vm.Name, vm.Status)
	}
	l.logf("VM %s became Ready in %s", vm.Name, time.Since(start).Round(time.Millisecond))
	return nil
}

func (l *lifecycle) isDeleted(ctx context.Context, vm *pcapi.VM) error {
	start := time.Now()
	if err := l.client.Delete(ctx, vm); err != nil {
		return fmt.Errorf("delete VM %s: %w", vm.Name, err)
	}
	last := vm.DeepCopy()
	err := l.await(ctx, func(ctx context.Context) (bool, error) {
		err := l.client.Get(ctx, client.ObjectKeyFromObject(vm), last)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("VM %s was not deleted, its conditions are %s: %w", vm.Name, conditions(last), err)
	}
	l.logf("VM %s was deleted in %s", vm.Name, time.Since(start).Round(time.Millisecond))
	return nil
}

func (l *lifecycle) await(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, l.timeout, true, done)
}

func conditions(vm *pcapi.VM) string {
	var all []string
	for _, c := range vm.Status.Conditions {
		all = append(all, fmt.Sprintf("%s=%s %s %q", c.Type, c.Status, c.Reason, c.Message))
	}
	return "[" + strings.Join(all, ", ") + "]"
}
