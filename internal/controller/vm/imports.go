package vm

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
)

// errOwned does not say which object: it may be in a namespace of somebody else.
var errOwned = errors.New("this VM belongs to another object: import another, or release it there with deletionPolicy Orphan")

// observeImport finds out whether the VM may import the server that its spec names.
// An import that is on record stays, and so does one whose server carries the labels
// of the VM.
func (o *observer) observeImport(ctx context.Context, vm *pcapi.VM, obs *observation) error {
	if vm.Status.VMID != "" || vm.Spec.Import == nil || obs.Spec == nil || !vm.DeletionTimestamp.IsZero() {
		return nil
	}
	if obs.Resource != nil && obs.Owned && obs.Resource.Labels[inventory.UIDLabel] != "" {
		return nil
	}
	obs.importErr = tenancy.MayImport(obs.Spec, vm.Namespace, vm.Spec.Import.VMID)
	if obs.importErr == nil && obs.Resource != nil && !obs.Foreign && obs.Resource.Labels[inventory.UIDLabel] != "" {
		alive, err := o.ownerAlive(ctx, obs.Resource.Labels)
		if alive {
			obs.importErr = errOwned
		}
		return err
	}
	return nil
}

// ownerAlive reports whether the object that owner labels name exists. It reads from
// the API server, since the cache may lag behind.
func (o *observer) ownerAlive(ctx context.Context, labels map[string]string) (bool, error) {
	owner := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: pcapi.GroupVersion.String(), Kind: "VM"}}
	key := client.ObjectKey{Namespace: labels[inventory.NamespaceLabel], Name: labels[inventory.NameLabel]}
	if key.Namespace == "" || key.Name == "" {
		return false, nil
	}
	err := o.Live.Get(ctx, key, &owner)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		log.FromContext(ctx).Error(err, "look for the object that owns the server to import")
		return false, reconciler.Wait(time.Second, pcapi.PendingReason, "the object that owns the server cannot be read now")
	}
	return string(owner.UID) == labels[inventory.UIDLabel], nil
}
