package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VMRevertPhase is how far a revert is.
// +kubebuilder:validation:Enum=Requested;Succeeded;Failed
type VMRevertPhase string

const (
	VMRevertRequested VMRevertPhase = "Requested"
	VMRevertSucceeded VMRevertPhase = "Succeeded"
	VMRevertFailed    VMRevertPhase = "Failed"
)

// VMRevertStatus is what became of a revert.
type VMRevertStatus struct {
	// phase is Requested before the request is sent, and Succeeded or Failed once the
	// cloud has said so.
	// +required
	Phase VMRevertPhase `json:"phase"`
	// snapshotName is the name of the VMSnapshot.
	// +kubebuilder:validation:MaxLength=253
	// +required
	SnapshotName string `json:"snapshotName"`
	// snapshotUID is the UID of the VMSnapshot.
	// +required
	SnapshotUID types.UID `json:"snapshotUID"`
	// snapshotId is the cloud's id of the snapshot.
	// +kubebuilder:validation:MaxLength=253
	// +required
	SnapshotID string `json:"snapshotId"`
	// requestedTime is when the revert was recorded, before it was sent.
	// +required
	RequestedTime metav1.MicroTime `json:"requestedTime"`
	// operation is the cloud's id of the operation that reverts the VM. Absent before the
	// cloud has answered, and after the end.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Operation string `json:"operation,omitempty"`
	// endedTime is when the operator learned that the revert had ended.
	// +optional
	EndedTime *metav1.Time `json:"endedTime,omitempty"`
	// message is why the revert failed.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}
