package v1alpha1

// Annotations that users set.
const (
	// PausedAnnotation with any value but "false" stops the operator from reconciling
	// the object, including its deletion. Every kind supports it.
	PausedAnnotation = "samplecontroller.k8s.io/paused"
	// ReconcileRequestedAtAnnotation requests a reconcile whenever its value
	// changes. A name that the cloud refused is checked again. Every kind supports it.
	ReconcileRequestedAtAnnotation = "samplecontroller.k8s.io/reconcile-requested-at"
	// DeletionProtectionAnnotation with any value but "false" on a VM, Network or VMSnapshot keeps its
	// server, network or snapshot: a deletion of the object waits until the annotation is removed, and a
	// VmGroup deletes no such member. On a VmGroup it protects all members. With the component deletion-protection, the API
	// server refuses the deletion of such objects of every kind.
	DeletionProtectionAnnotation = "samplecontroller.k8s.io/deletion-protection"
	// AcknowledgeAnnotation on a Cloud releases its brake. Its value is the
	// snapshot that the Braked condition names.
	AcknowledgeAnnotation = "samplecontroller.k8s.io/acknowledge"
	// ApprovedPlanAnnotation on a VM or VmGroup whose spec.approval is Required approves the
	// plan in its status of which the value is the hash. A space and the name of the user who approves
	// it may follow the hash, for the record. A VmGroup sets it on members that it created.
	ApprovedPlanAnnotation = "samplecontroller.k8s.io/approved-plan"
	// DeleteFirstAnnotation on a member of a VmGroup, with any value but "false", makes the
	// group delete this member before all others when it scales down.
	DeleteFirstAnnotation = "samplecontroller.k8s.io/delete-first"
)

// Annotations that the operator sets together with its finalizer.
const (
	// ClaimedNameAnnotation on a VM is the name that the cloud allowed when the
	// finalizer was added.
	ClaimedNameAnnotation = "samplecontroller.k8s.io/claimed-name"
	// ClaimedCloudAnnotation on a VM or a Network is the name of the Cloud that
	// the object referred to when the finalizer was added.
	ClaimedCloudAnnotation = "samplecontroller.k8s.io/claimed-cloud"
	// ClaimedUIDAnnotation on an object with a claim is the UID of the object for which the operator
	// wrote the claim. An object with another UID is a copy, and has no claim.
	ClaimedUIDAnnotation = "samplecontroller.k8s.io/claimed-uid"
	// ClaimRenewedAtAnnotation on an object with a claim is when the operator wrote the
	// claim again, before another create, in RFC 3339.
	ClaimRenewedAtAnnotation = "samplecontroller.k8s.io/claim-renewed-at"
)

// DefaultCloudLabel on a namespace is the name of the Cloud for objects of this
// namespace that have no cloudRef.
const DefaultCloudLabel = "samplecontroller.k8s.io/default-cloud"

// CredentialsForLabel on a Secret is the name of the only Cloud that may use it.
const CredentialsForLabel = "samplecontroller.k8s.io/credentials-for"

// UserDataLabel with the value "true" on a Secret allows VMs of its namespace to use
// its data as their user data.
const UserDataLabel = "samplecontroller.k8s.io/user-data"

// Labels on the members of a VmGroup.
const (
	// GroupLabel is the name of the group, shortened if it is too long for a label.
	GroupLabel = "samplecontroller.k8s.io/group"
	// RevisionLabel is the revision of the group's template that the member was
	// created from or resized to.
	RevisionLabel = "samplecontroller.k8s.io/revision"
)

// Finalizers.
const (
	// VMFinalizer is on a VM as long as a server of it may exist in the cloud.
	VMFinalizer = "samplecontroller.k8s.io/vm"
	// VmGroupFinalizer is on a VmGroup as long as it may have members.
	VmGroupFinalizer = "samplecontroller.k8s.io/vmgroup"
	// NetworkFinalizer is on a Network as long as it may exist in the cloud.
	NetworkFinalizer = "samplecontroller.k8s.io/network"
	// VMSnapshotFinalizer is on a VMSnapshot as long as it may exist in the cloud.
	VMSnapshotFinalizer = "samplecontroller.k8s.io/vmsnapshot"
	// CloudFinalizer is on a Cloud as long as VMs and Networks may refer to it.
	CloudFinalizer = "samplecontroller.k8s.io/cloud"
)
