package v1alpha1

// The trio that kubectl wait, Flux and Argo CD read (kstatus).
const (
	// ReadyCondition is True when the cloud agrees with the spec. Always present.
	ReadyCondition = "Ready"
	// ReconcilingCondition is True while work towards the spec is under way, and absent otherwise.
	ReconcilingCondition = "Reconciling"
	// StalledCondition is True when nothing will change until somebody acts, and absent otherwise.
	StalledCondition = "Stalled"
)

// Reasons that any kind's Ready, Reconciling and Stalled conditions may bear.
const (
	// PausedReason surfaces when the object bears the paused annotation.
	PausedReason = "Paused"
	// ProgressingReason surfaces while a step has been taken and its effect is awaited.
	ProgressingReason = "Progressing"
	// ErrorReason surfaces when a pass ended in an error that is tried again.
	ErrorReason = "Error"
)
