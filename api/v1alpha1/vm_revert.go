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
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(2026-01-31T08:00:00.000000Z|([1-8][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([1-8][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[1357][26])00)-02-29)T([01][0-9]|2[0-3])(:[0-5][0-9]){2}\.[0-9]{6}(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]))$`
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

// RevertOpen reports whether a revert of the VM may be sent or under way. One without an operation is given up when
// spec.currentSnapshotName names another VMSnapshot or none, and waits while the VM is only observed.
func (v *VM) RevertOpen() bool {
	r := v.Status.Revert
	switch {
	case r == nil || r.Phase != VMRevertRequested:
		return false
	case r.Operation != "":
		return true
	}
	return r.SnapshotName == v.Spec.CurrentSnapshotName && v.Spec.ManagementPolicy != ManagementPolicyObserveOnly
}
