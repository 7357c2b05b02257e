package v1alpha1

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	casesensitive "k8s.io/apimachinery/pkg/util/json"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// decodeVM returns a VM with only those fields that decide whether and how its name is
// checked.
func decodeVM(object view) (*pcapi.VM, error) {
	var members struct {
		Metadata view `json:"metadata"`
		Spec     view `json:"spec"`
		Status   view `json:"status"`
	}
	var metadata struct {
		Name              view `json:"name"`
		Namespace         view `json:"namespace"`
		DeletionTimestamp view `json:"deletionTimestamp"`
		OwnerReferences   view `json:"ownerReferences"`
	}
	var spec struct {
		VMName   view `json:"vmname"`
		Folder   view `json:"folder"`
		CloudRef view `json:"cloudRef"`
		Import   view `json:"import"`
	}
	var cloudRef struct {
		Name view `json:"name"`
	}
	var status struct {
		VMID view `json:"vmId"`
	}
	if err := object.decode(&members); err != nil {
		return nil, err
	}
	err := errors.Join(members.Metadata.decode(&metadata), members.Spec.decode(&spec), members.Status.decode(&status))
	if err != nil {
		return nil, err
	}
	vm := &pcapi.VM{}
	if !spec.Import.absent() {
		vm.Spec.Import = &pcapi.VMImport{}
	}
	if !spec.CloudRef.absent() {
		vm.Spec.CloudRef = &pcapi.CloudReference{}
		err = errors.Join(spec.CloudRef.decode(&cloudRef), cloudRef.Name.scalar(&vm.Spec.CloudRef.Name))
	}
	return vm, errors.Join(err,
		decodeController(metadata.OwnerReferences, vm),
		metadata.Name.scalar(&vm.Name),
		metadata.Namespace.scalar(&vm.Namespace),
		metadata.DeletionTimestamp.scalar(&vm.DeletionTimestamp),
		spec.VMName.scalar(&vm.Spec.VMName),
		spec.Folder.scalar(&vm.Spec.Folder),
		status.VMID.scalar(&vm.Status.VMID),
	)
}

// decodeController decodes the owner that is the controller of the VM, if it is among the
// first owners.
func decodeController(owners view, vm *pcapi.VM) error {
	const most = 64
	var first [most]view
	if owners.absent() {
		return nil
	}
	if err := casesensitive.Unmarshal(owners, &first); err != nil {
		return err
	}
	for i := range first {
		var members struct {
			APIVersion view `json:"apiVersion"`
			Kind       view `json:"kind"`
			Controller view `json:"controller"`
		}
		if err := first[i].decode(&members); err != nil {
			return err
		}
		var reference metav1.OwnerReference
		err := errors.Join(members.APIVersion.scalar(&reference.APIVersion), members.Kind.scalar(&reference.Kind), members.Controller.scalar(&reference.Controller))
		if err != nil {
			return err
		}
		if reference.Controller != nil && *reference.Controller {
			vm.OwnerReferences = []metav1.OwnerReference{reference}
			return nil
		}
	}
	return nil
}
