package vm

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/tenancy"
)

// The cache indexes that only this package uses.
const (
	// serverIndex finds the VMs that have or want to import a server of a cloud.
	serverIndex = "server"
	// nameIndex finds the VMs that want a name on a cloud, or one that is alike, by the
	// normal form of the name.
	nameIndex = "vmname"
)

// unresolved stands for the Cloud of a VM that names none and uses none yet.
const unresolved = ""

// key is a key of serverIndex and nameIndex.
func key(cloudName, value string) string { return cloudName + "/" + value }

// indexedCloud returns the Cloud under which serverIndex and nameIndex hold a VM.
func indexedCloud(vm *pcapi.VM) string {
	switch recorded := recordedCloud(vm); {
	case recorded != "":
		return recorded
	case vm.Spec.CloudRef != nil:
		return vm.Spec.CloudRef.Name
	}
	return unresolved
}

func recordedCloud(vm *pcapi.VM) string {
	return external.RecordedCloud(vm, vm.Status.VMID, vm.Status.Cloud, pcapi.VMFinalizer)
}

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	err := tenancy.IndexByCloud(ctx, indexer, &pcapi.VM{}, func(o client.Object) []string {
		vm := o.(*pcapi.VM)
		return tenancy.CloudKeys(vm.Spec.CloudRef, recordedCloud(vm))
	})
	if err := errors.Join(err, tenancy.IndexByIdentity(ctx, indexer)); err != nil {
		return err
	}
	for index, keys := range indexes {
		err := indexer.IndexField(ctx, &pcapi.VM{}, index, func(o client.Object) []string { return keys(o.(*pcapi.VM)) })
		if err != nil {
			return err
		}
	}
	return nil
}

// indexes returns the keys of a VM, by index.
var indexes = map[string]func(*pcapi.VM) []string{
	nameIndex: func(vm *pcapi.VM) []string {
		return []string{key(indexedCloud(vm), cloud.NormalName(vm.Spec.VMName))}
	},
	controller.VMNetworkIndex: func(vm *pcapi.VM) []string {
		if vm.Spec.NetworkRef == nil {
			return nil
		}
		return []string{vm.Spec.NetworkRef.Name}
	},
	serverIndex: func(vm *pcapi.VM) []string {
		switch {
		case vm.Status.VMID != "":
			return []string{key(indexedCloud(vm), vm.Status.VMID)}
		case vm.Spec.Import != nil:
			return []string{key(indexedCloud(vm), vm.Spec.Import.VMID)}
		default:
			return nil
		}
	},
}
