package external

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/tenancy"
)

// FindVM returns the VM that an object of its namespace refers to, which is shared with the cache; nil if there is none.
func FindVM(ctx context.Context, from client.Reader, namespace, name string) (*pcapi.VM, error) {
	var vm pcapi.VM
	err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &vm, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("read VM %q: %w", name, err)
	}
	return &vm, nil
}

// CloudOfVM returns the name of the Cloud that a VM of a namespace uses; without a VM, that of objects which name none.
func CloudOfVM(ctx context.Context, from client.Reader, namespace string, vm *pcapi.VM) (string, error) {
	if vm == nil {
		vm = &pcapi.VM{}
	}
	if recorded := RecordedCloud(vm, vm.Status.VMID, vm.Status.Cloud, pcapi.VMFinalizer); recorded != "" {
		return recorded, nil
	}
	return tenancy.CloudFor(ctx, from, namespace, vm.Spec.CloudRef)
}
