package v1alpha1

// The summary conditions, which kubectl wait, Flux and Argo CD read (kstatus).
const (
	// ReadyCondition is True if the cloud matches the spec. It is always present.
	ReadyCondition = "Ready"
	// ReconcilingCondition is True while the operator works towards the spec, and absent otherwise.
	ReconcilingCondition = "Reconciling"
	// StalledCondition is True if the operator cannot make progress until somebody acts, and absent otherwise.
	StalledCondition = "Stalled"
)

// Reasons of the Ready, Reconciling and Stalled conditions of every kind.
const (
	// PausedReason surfaces when the object has the paused annotation.
	PausedReason = "Paused"
	// ProgressingReason surfaces when the operator waits for a step to take effect.
	ProgressingReason = "Progressing"
	// ErrorReason surfaces when a reconcile fails with an error and is retried.
	ErrorReason = "Error"
	// ApprovalRequiredReason surfaces while the plan in status.plan of a VM or VmGroup waits
	// for its approval.
	ApprovalRequiredReason = "ApprovalRequired"
	// PlanApprovedReason is that of the event when somebody approved a plan. No condition has it.
	PlanApprovedReason = "PlanApproved"
	// StatusRejectedReason surfaces when the API server refuses the status that the
	// operator computed. What it accepts of it is stored.
	StatusRejectedReason = "StatusRejected"
)
