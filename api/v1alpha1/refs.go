package v1alpha1

// CloudReference names a Cloud.
type CloudReference struct {
	// name of a Cloud. 1-63 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
}

// NetworkReference names a Network of the same namespace.
type NetworkReference struct {
	// name of the Network. 1-253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// SecretReference names a Secret in the operator's namespace. No other
// namespace can be named.
type SecretReference struct {
	// name of the Secret. 1-253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}
