package v1alpha1

// VMReadinessProbe is when the guest of a VM counts as ready.
// +kubebuilder:validation:XValidation:rule="has(self.address) != has(self.guestHeartbeat)",reason=FieldValueInvalid,message="readinessProbe needs either address: {} or guestHeartbeat: {}"
type VMReadinessProbe struct {
	// address: the guest is ready while the VM runs and the cloud shows an address of it
	// that is neither a loopback nor a link-local one.
	// +optional
	Address *VMAddressProbe `json:"address,omitempty"`

	// guestHeartbeat: the guest is ready while the VM runs and the cloud receives heartbeats
	// of an agent in the guest, such as VMware Tools.
	// +optional
	GuestHeartbeat *VMGuestHeartbeatProbe `json:"guestHeartbeat,omitempty"`
}

// VMAddressProbe has no settings.
type VMAddressProbe struct{}

// VMGuestHeartbeatProbe has no settings.
type VMGuestHeartbeatProbe struct{}
