package metricsapi

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/lean"
)

// GroupIndex is the index of VMs by the UID of the VmGroup that owns them.
const GroupIndex = "group"

// NewCache returns a cache of VmGroups and VMs with only those fields that the
// metrics need. The caller must start it. synced reports whether it has all
// objects that existed at its start.
func NewCache(ctx context.Context, config *rest.Config) (kept cache.Cache, synced func() bool, err error) {
	scheme := runtime.NewScheme()
	if err := pcapi.AddToScheme(scheme); err != nil {
		return nil, nil, fmt.Errorf("build the scheme: %w", err)
	}
	kept, err = cache.New(config, cache.Options{
		Scheme: scheme,
		ByObject: map[client.Object]cache.ByObject{
			&pcapi.VmGroup{}: {Transform: stripGroup},
			&pcapi.VM{}:      {Transform: stripVM},
		},
		// Only these two kinds are read, and objects of the cache are not changed.
		ReaderFailOnMissingInformer:  true,
		DefaultUnsafeDisableDeepCopy: new(true),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make the cache of VmGroups and VMs: %w", err)
	}
	if err := kept.IndexField(ctx, &pcapi.VM{}, GroupIndex, groupOf); err != nil {
		return nil, nil, fmt.Errorf("index VMs by the VmGroup that owns them; are the operator's CRDs installed? %w", err)
	}
	vms, err := kept.GetInformer(ctx, &pcapi.VM{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, nil, fmt.Errorf("watch VMs: %w", err)
	}
	groups, err := kept.GetInformer(ctx, &pcapi.VmGroup{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, nil, fmt.Errorf("watch VmGroups; are the operator's CRDs of this version installed? %w", err)
	}
	return kept, func() bool { return vms.HasSynced() && groups.HasSynced() }, nil
}

func groupOf(object client.Object) []string {
	owner := metav1.GetControllerOf(object)
	if owner == nil || owner.Kind != "VmGroup" {
		return nil
	}
	return []string{string(owner.UID)}
}

func stripGroup(object any) (any, error) {
	group, ok := object.(*pcapi.VmGroup)
	if !ok {
		return object, nil
	}
	return &pcapi.VmGroup{
		TypeMeta:   group.TypeMeta,
		ObjectMeta: stripMeta(group.ObjectMeta),
		Status:     pcapi.VmGroupStatus{CPUUtilization: group.Status.CPUUtilization},
	}, nil
}

func stripVM(object any) (any, error) {
	vm, ok := object.(*pcapi.VM)
	if !ok {
		return object, nil
	}
	meta := stripMeta(vm.ObjectMeta)
	meta.Labels, meta.OwnerReferences = nil, vm.OwnerReferences
	lean.Trim(&meta)
	return &pcapi.VM{TypeMeta: vm.TypeMeta, ObjectMeta: meta, Status: pcapi.VMStatus{CPUUtilization: vm.Status.CPUUtilization}}, nil
}

func stripMeta(meta metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion, Labels: meta.Labels,
	}
}
