package v1alpha1

// CloudReference names a Cloud.
type CloudReference struct {
	// name is the name of a Cloud. Required, 1-63 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
}

// NetworkReference names a Network of the same namespace.
type NetworkReference struct {
	// name is the name of the Network. Required, 1-253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// SecretReference names a Secret in the operator's namespace. It cannot name a
// Secret in another namespace.
type SecretReference struct {
	// name is the name of the Secret. Required, 1-253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}
