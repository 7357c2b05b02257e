package v1alpha1

// VMReadinessProbe is when the guest of a VM counts as ready: while all that is set holds.
// +kubebuilder:validation:XValidation:rule="has(self.address) || has(self.guestHeartbeat) || has(self.tcpSocket)",reason=FieldValueInvalid,message="readinessProbe needs at least one of address: {}, guestHeartbeat: {} and tcpSocket"
// +kubebuilder:validation:XValidation:rule="has(self.tcpSocket) || !(has(self.periodSeconds) || has(self.timeoutSeconds) || has(self.failureThreshold))",reason=FieldValueInvalid,message="periodSeconds, timeoutSeconds and failureThreshold need tcpSocket: add it, or remove them"
type VMReadinessProbe struct {
	// address: the guest is ready while the VM runs and the cloud shows an address of it
	// that is neither a loopback nor a link-local one.
	// +optional
	Address *VMAddressProbe `json:"address,omitempty"`

	// guestHeartbeat: the guest is ready while the VM runs and the cloud receives heartbeats
	// of an agent in the guest, such as VMware Tools.
	// +optional
	GuestHeartbeat *VMGuestHeartbeatProbe `json:"guestHeartbeat,omitempty"`

	// tcpSocket: the guest is ready while the VM runs and accepts TCP connections of the
	// operator at a port of its primary address. Administrators decide to which networks the
	// operator may connect.
	// +optional
	TCPSocket *VMTCPSocketProbe `json:"tcpSocket,omitempty"`

	// periodSeconds is the time from one connection to the next, in seconds, 5-3600. It is
	// longer while there are more probes than the operator can make. Defaults to 10.
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=3600
	// +optional
	PeriodSeconds int32 `json:"periodSeconds,omitempty"`

	// timeoutSeconds is how long the operator waits for a connection, in seconds, 1-30.
	// Defaults to 3.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=30
	// +optional
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`

	// failureThreshold is after how many connections that fail in a row a guest that was ready
	// is not ready any more, 1-10. Defaults to 3.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	FailureThreshold int32 `json:"failureThreshold,omitempty"`
}

// VMAddressProbe has no settings.
type VMAddressProbe struct{}

// VMGuestHeartbeatProbe has no settings.
type VMGuestHeartbeatProbe struct{}

// VMTCPSocketProbe is where a guest accepts connections.
type VMTCPSocketProbe struct {
	// port is the TCP port, 1-65535.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
