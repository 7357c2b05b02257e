package v1alpha1

// VMReadinessProbe is when the guest of a VM counts as ready.
// +kubebuilder:validation:XValidation:rule="has(self.address)",reason=FieldValueRequired,fieldPath=".address",message="readinessProbe needs address: {}"
type VMReadinessProbe struct {
	// address: the guest is ready while the VM runs and the cloud shows an address of it
	// that is neither a loopback nor a link-local one.
	// +optional
	Address *VMAddressProbe `json:"address,omitempty"`
}

// VMAddressProbe has no settings.
type VMAddressProbe struct{}
