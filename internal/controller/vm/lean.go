package vm

import (
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/lean"
)

// LeanVM drops the managed fields of a VM and what lean.Trim does, and has it share the texts that many VMs have:
// decoded from JSON, each VM has copies of its own, about a quarter of its memory. The cache
// applies it to each VM before anybody reads it. All other fields keep their values.
func LeanVM(o any) (any, error) {
	vm, ok := o.(*pcapi.VM)
	if !ok {
		return o, nil
	}
	lean.Trim(vm)
	if vm.ManagedFields == nil { // the cache may have it already
		return o, nil
	}
	vm.ManagedFields = nil
	leanMeta(&vm.ObjectMeta)
	share(&vm.APIVersion, &vm.Kind, &vm.Spec.ClassName, &vm.Spec.Template, &vm.Spec.Folder)
	share(&vm.Spec.Flavor)
	share(&vm.Spec.PowerState)
	share(&vm.Spec.DeletionPolicy)
	share(&vm.Spec.ManagementPolicy)
	share(&vm.Spec.UpdatePolicy)
	if vm.Spec.CloudRef != nil {
		share(&vm.Spec.CloudRef.Name)
	}
	if vm.Spec.NetworkRef != nil {
		share(&vm.Spec.NetworkRef.Name)
	}
	if vm.Spec.Network != nil {
		for i := range vm.Spec.Network.Interfaces {
			share(&vm.Spec.Network.Interfaces[i].Name, &vm.Spec.Network.Interfaces[i].NetworkRef.Name)
		}
	}
	leanMap(vm.Spec.Tags)
	for i := range vm.Spec.SecurityGroups {
		share(&vm.Spec.SecurityGroups[i])
	}
	for i := range vm.Spec.AllowedAddresses {
		share(&vm.Spec.AllowedAddresses[i])
	}
	if vm.Spec.PublicAddress != nil {
		share(&vm.Spec.PublicAddress.Network)
	}
	for i := range vm.Spec.Disks {
		share(&vm.Spec.Disks[i].Name)
		share(&vm.Spec.Disks[i].Type)
		share(&vm.Spec.Disks[i].DeletionPolicy)
	}
	if root := vm.Spec.RootDisk; root != nil {
		share(&root.Size)
		share(&root.Type)
	}
	leanStatus(&vm.Status)
	return vm, nil
}

func leanStatus(status *pcapi.VMStatus) {
	share(&status.Host, &status.Cloud)
	share(&status.State)
	if status.Image != nil {
		share(&status.Image.Name, &status.Image.ID)
	}
	if status.Class != nil {
		share(&status.Class.Name, &status.Class.Flavor)
	}
	if status.Hardware != nil {
		share(&status.Hardware.Flavor)
	}
	for i := range status.SecurityGroups {
		share(&status.SecurityGroups[i])
	}
	for i := range status.AllowedAddresses {
		share(&status.AllowedAddresses[i])
	}
	for i := range status.Disks {
		share(&status.Disks[i].Name, &status.Disks[i].Type)
		share(&status.Disks[i].DeletionPolicy)
	}
	if root := status.RootDisk; root != nil {
		share(&root.Size, &root.Type)
	}
	status.Conditions = slices.Clone(status.Conditions) // a decoder allocates up to twice as many
	for i := range status.Conditions {
		c := &status.Conditions[i]
		share(&c.Type, &c.Reason, &c.Message)
		share(&c.Status)
	}
}

func leanMeta(m *metav1.ObjectMeta) {
	share(&m.Namespace, &m.GenerateName)
	leanMap(m.Labels)
	leanMap(m.Annotations)
	for i := range m.Finalizers {
		share(&m.Finalizers[i])
	}
	for i := range m.OwnerReferences {
		owner := &m.OwnerReferences[i]
		share(&owner.APIVersion, &owner.Kind, &owner.Name)
		share(&owner.UID)
	}
}

// leanMap has a map share its texts. To assign to a key that exists also replaces the key.
func leanMap[V ~string](m map[string]V) {
	for key, value := range m {
		share(&key)
		share(&value)
		m[key] = value
	}
}

// share replaces each text by one that all equal texts share, as long as any of them is in
// memory until the next garbage collection.
func share[T ~string](texts ...*T) {
	for _, text := range texts {
		*text = unique.Make(*text).Value()
	}
}
