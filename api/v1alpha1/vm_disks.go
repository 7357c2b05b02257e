package v1alpha1

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// VMDisk is a disk of a VM beside those of its template. It is created empty with the VM,
// or added to it.
type VMDisk struct {
	// name identifies the disk among those of the VM. Required, 1-63 characters: lower-case
	// letters, digits and hyphens, which are not at the ends.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`

	// size is the size of the disk, a quantity such as 20Gi or 1Ti, 1Gi-64Ti. Required. It
	// can grow, and never shrinks.
	// +required
	Size VMDiskSize `json:"size"`

	// type is the name of the type of the disk in the cloud, 1-255 characters. If absent, the
	// cloud decides. Cannot be changed once the VM has the disk.
	// +optional
	Type VMDiskType `json:"type,omitempty"`

	// deletionPolicy is what happens to the disk when the VM is deleted in the cloud: Delete,
	// the default, deletes it with the VM, and Keep detaches it and leaves it in the cloud.
	// +optional
	DeletionPolicy VMDiskDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// VMDiskDeletionPolicy is what happens to a disk when its VM is deleted in the cloud.
// +kubebuilder:validation:Enum=Delete;Keep
type VMDiskDeletionPolicy string

// Values of VMDiskDeletionPolicy.
const (
	VMDiskDelete VMDiskDeletionPolicy = "Delete"
	VMDiskKeep   VMDiskDeletionPolicy = "Keep"
)

// VMRootDisk is the disk that a VM boots from.
// +kubebuilder:validation:XValidation:rule="has(self.size) || has(self.type)",reason=FieldValueRequired,message="rootDisk has neither size nor type: set one of them, or remove rootDisk"
type VMRootDisk struct {
	// size is the size of the disk, a quantity such as 20Gi or 1Ti, 1Gi-64Ti. If absent, the
	// disk has the size of that of the template, and keeps the size that it has. It can grow,
	// and never shrinks.
	// +optional
	Size VMDiskSize `json:"size,omitempty"`

	// type is the name of the type of the disk in the cloud, 1-255 characters. If absent, the
	// cloud decides. Cannot be changed once the VM exists.
	// +optional
	Type VMDiskType `json:"type,omitempty"`
}

// VMDiskType is the name of a type of disks in the cloud. It has 1-255 characters, which can be printed.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:XValidation:rule="self.matches('^[\\\\p{L}\\\\p{M}\\\\p{N}\\\\p{P}\\\\p{S} ]*$')",reason=FieldValueInvalid,message="the type of a disk is the name that it has in the cloud, without control characters and spaces other than the usual one"
type VMDiskType string

// VMDiskSize is the size of a disk: a quantity in whole Gi or Ti, 1Gi-64Ti. It is a text and
// not a resource.Quantity, so that its length has a bound, which the rules about it need.
// +kubebuilder:validation:MaxLength=7
// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]*[GT]i$') && !quantity('64Ti').isLessThan(quantity(self))",reason=FieldValueInvalid,message="a size is a whole number of Gi or Ti, 1Gi-64Ti, such as 20Gi"
type VMDiskSize string

// Bytes returns the size in bytes, 0 for a text that is no quantity.
func (s VMDiskSize) Bytes() int64 {
	quantity, err := resource.ParseQuantity(string(s))
	if err != nil {
		return 0
	}
	return quantity.Value()
}

// Canonical returns the same size in Ti if that is a whole number, else as it is.
func (s VMDiskSize) Canonical() VMDiskSize {
	const bytesPerTi = 1 << 40
	if bytes := s.Bytes(); bytes > 0 && bytes%bytesPerTi == 0 {
		return VMDiskSize(strconv.FormatInt(bytes/bytesPerTi, 10) + "Ti")
	}
	return s
}

// VMDiskStatus is what the cloud reports of a disk.
type VMDiskStatus struct {
	// name is the name of the disk.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`

	// size is the size of the disk, a quantity in whole MiB such as 20Gi. Absent if the disk
	// is lost, and while the cloud does not show the server.
	// +kubebuilder:validation:MaxLength=20
	// +optional
	Size string `json:"size,omitempty"`

	// type is the name of the type of the disk. Absent where the cloud does not show it.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Type string `json:"type,omitempty"`

	// deletionPolicy is Keep if the cloud keeps the disk when the VM is deleted. Absent otherwise.
	// +optional
	DeletionPolicy VMDiskDeletionPolicy `json:"deletionPolicy,omitempty"`

	// lost is true for a disk of the spec that the VM had and does not have any more: it was
	// removed in the cloud. It is not created again.
	// +optional
	Lost bool `json:"lost,omitempty"`
}

// VMRootDiskStatus is what the cloud reports of the root disk.
type VMRootDiskStatus struct {
	// size is the size of the disk, a quantity in whole MiB such as 20Gi. Absent where the cloud
	// does not show it.
	// +kubebuilder:validation:MaxLength=20
	// +optional
	Size string `json:"size,omitempty"`

	// type is the name of the type of the disk. Absent where the cloud does not show it.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Type string `json:"type,omitempty"`
}
