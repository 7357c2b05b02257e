package vm

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/tenancy"
)

// The cache indexes that only this package uses. They are divided into buckets, see matching.
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

// nameKey is the key of nameIndex of a VM that wants its name on a Cloud.
func nameKey(vm *pcapi.VM, on string) string { return key(on, cloud.NormalName(vm.Spec.VMName)) }

// serverKey is a key of serverIndex. A cloud may spell a UUID in another way than spec.import.
func serverKey(cloudName, id string) string { return key(cloudName, cloud.CanonicalUUID(id)) }

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
	err = indexer.IndexField(ctx, &pcapi.VM{}, controller.VMNetworkIndex, func(o client.Object) []string { return controller.NetworksOf(o.(*pcapi.VM)) })
	if err != nil {
		return err
	}
	err = indexer.IndexField(ctx, &pcapi.VM{}, addressIndex, func(o client.Object) []string { return addressKeys(o.(*pcapi.VM)) })
	if err != nil {
		return err
	}
	err = indexer.IndexField(ctx, &pcapi.VM{}, classIndex, func(o client.Object) []string { return untakenClass(o.(*pcapi.VM)) })
	if err != nil {
		return err
	}
	err = indexer.IndexField(ctx, &pcapi.VM{}, antiAffinityIndex, func(o client.Object) []string { return antiAffinityKeys(o.(*pcapi.VM)) })
	if err != nil {
		return err
	}
	err = indexer.IndexField(ctx, &pcapi.VMSnapshot{}, controller.VMSnapshotVMIndex, func(o client.Object) []string { return []string{o.(*pcapi.VMSnapshot).Spec.VMName} })
	if err != nil {
		return err
	}
	for index, keys := range indexes {
		err := indexer.IndexField(ctx, &pcapi.VM{}, index, func(o client.Object) []string { return buckets(keys(o.(*pcapi.VM))) })
		if err != nil {
			return err
		}
	}
	return nil
}

// indexes returns the keys of a VM, by index.
var indexes = map[string]func(*pcapi.VM) []string{
	nameIndex: func(vm *pcapi.VM) []string {
		return []string{nameKey(vm, indexedCloud(vm))}
	},
	serverIndex: func(vm *pcapi.VM) []string {
		switch {
		case vm.Status.VMID != "":
			return []string{serverKey(indexedCloud(vm), vm.Status.VMID)}
		case vm.Spec.Import != nil:
			return []string{serverKey(indexedCloud(vm), vm.Spec.Import.VMID)}
		default:
			return nil
		}
	},
}

// indexBuckets is the number of buckets of an index: with 50,000 VMs, six share one. The
// cache keeps two sets for each value of an index, some 600 bytes for one that a single VM has.
const indexBuckets = 1 << 13

var bucketSeed = maphash.MakeSeed()

// bucket returns the value under which the cache has the VMs with a key, among others.
func bucket(key string) string {
	return strconv.FormatUint(maphash.String(bucketSeed, key)%indexBuckets, 36)
}

func buckets(keys []string) []string {
	for i, key := range keys {
		keys[i] = bucket(key)
	}
	return keys
}

// matching selects the VMs with a key, and others that has does not hold for.
func matching(index, key string) client.MatchingFields {
	return client.MatchingFields{index: bucket(key)}
}

// has reports whether a VM has a key.
func has(vm *pcapi.VM, index, key string) bool { return slices.Contains(indexes[index](vm), key) }

// onServer returns requests for the VMs that serverIndex holds for a server of a Cloud.
func onServer(ctx context.Context, find tenancy.Finder, cloudName, id string) []reconcile.Request {
	wanted := serverKey(cloudName, id)
	return find.Accepted(ctx, func(o client.Object) bool { return has(o.(*pcapi.VM), serverIndex, wanted) }, matching(serverIndex, wanted))
}
