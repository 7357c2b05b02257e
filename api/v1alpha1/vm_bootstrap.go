package v1alpha1

// SSHAuthorizedKey is one line of an authorized_keys file without options: the type
// of the key, its base64 and, optionally, a comment.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=4096
// +kubebuilder:validation:XValidation:rule="self.matches('^(ssh-(ed25519|rsa)|ecdsa-sha2-nistp(256|384|521)|sk-(ssh-ed25519|ecdsa-sha2-nistp256)@openssh[.]com) [A-Za-z0-9+/]+={0,2}( [^[:cntrl:]]*)?$')",reason=FieldValueInvalid,message="must be one line of a public key, as in a file id_ed25519.pub: a type such as ssh-ed25519 or ssh-rsa, the base64 of the key, and optionally a comment; no options and no private key"
type SSHAuthorizedKey string

// VMBootstrap is what a VM reads at its first boot.
type VMBootstrap struct {
	// cloudInit is for images that run cloud-init.
	// +required
	CloudInit VMCloudInit `json:"cloudInit"`
}

// VMCloudInit is user data for cloud-init. It needs at least one of its fields.
// +kubebuilder:validation:XValidation:rule="has(self.userDataSecretRef) || has(self.sshAuthorizedKeys)",reason=FieldValueRequired,fieldPath=".userDataSecretRef",message="cloudInit needs userDataSecretRef, sshAuthorizedKeys or both"
type VMCloudInit struct {
	// userDataSecretRef names the Secret of this namespace whose data is the user
	// data, in any format of cloud-init. It is read when the VM is created in the
	// cloud, and not again. The Secret needs the label
	// samplecontroller.k8s.io/user-data with the value "true", and the operator the
	// right to get it.
	// +optional
	UserDataSecretRef *SecretKeyReference `json:"userDataSecretRef,omitempty"`

	// sshAuthorizedKeys are public keys that may log in as the default user of the
	// image, 1-16, in addition to those of the user data.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +optional
	SSHAuthorizedKeys []SSHAuthorizedKey `json:"sshAuthorizedKeys,omitempty"`
}

// SecretKeyReference names a key of a Secret of the same namespace.
type SecretKeyReference struct {
	// name is the name of the Secret. Required, 1-253 characters.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`

	// key is the key of the Secret, 1-253 characters. Defaults to user-data.
	// +kubebuilder:default=user-data
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +optional
	Key string `json:"key,omitempty"`
}
