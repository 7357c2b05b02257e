package v1alpha1

// PowerState is whether a VM runs.
// +kubebuilder:validation:Enum=On;Off;Suspended;Unmanaged
type PowerState string

const (
	PowerOn        PowerState = "On"
	PowerOff       PowerState = "Off"
	PowerSuspended PowerState = "Suspended"
	// PowerUnmanaged leaves to others whether the VM runs.
	PowerUnmanaged PowerState = "Unmanaged"
)

// Runs reports whether a VM with this power state may run. The empty one is On.
func (p PowerState) Runs() bool { return p != PowerOff && p != PowerSuspended }

// PowerOffMode is how a VM that runs is stopped.
// +kubebuilder:validation:Enum=TrySoft;Soft;Hard
type PowerOffMode string

const (
	PowerOffModeTrySoft PowerOffMode = "TrySoft"
	PowerOffModeSoft    PowerOffMode = "Soft"
	PowerOffModeHard    PowerOffMode = "Hard"
)
