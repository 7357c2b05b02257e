package v1alpha1

// Conditions of a Cloud, besides the summary conditions.
const (
	// AuthenticatedCondition reports whether the cloud accepts the credentials.
	AuthenticatedCondition = "Authenticated"
	// BrakedCondition is True if so many servers vanished at once that the
	// operator creates and deletes nothing until somebody acknowledges it.
	BrakedCondition = "Braked"
	// ConformantCondition reports whether the operator could read all that the cloud
	// answered. If it is False, parts of the answers are ignored.
	ConformantCondition = "Conformant"
	// InUseCondition is True while VMs or Networks keep a Cloud that is being deleted,
	// and names some of them. It is absent otherwise.
	InUseCondition = "InUse"
	// InsecureCondition is True while the spec allows calls of the cloud without encryption,
	// or without a proof that the cloud is the one that the endpoint names. It is absent
	// otherwise.
	InsecureCondition = "Insecure"
)

// Reasons of a Cloud's conditions.
const (
	// ConnectedReason surfaces when the last poll succeeded.
	ConnectedReason = "Connected"
	// ConnectingReason surfaces when the cloud has not been polled yet.
	ConnectingReason = "Connecting"
	// InvalidConfigurationReason surfaces when the type, endpoint, CA or Secret
	// is invalid.
	InvalidConfigurationReason = "InvalidConfiguration"
	// SecretMissingReason surfaces when the Secret with the credentials does not exist.
	SecretMissingReason = "SecretMissing"
	// AuthenticationFailedReason surfaces when the cloud rejects the credentials.
	AuthenticationFailedReason = "AuthenticationFailed"
	// UntrustedReason surfaces when the cloud's certificate cannot be verified.
	UntrustedReason = "Untrusted"
	// UnreachableReason surfaces when the cloud does not answer.
	UnreachableReason = "Unreachable"
	// ThrottledReason surfaces when the cloud asks the operator to wait before the next
	// request, or allows no more of them now.
	ThrottledReason = "Throttled"
	// PollFailedReason surfaces when the cloud's answer to a poll is an error or
	// cannot be decoded.
	PollFailedReason = "PollFailed"
	// AcceptedReason surfaces when the cloud accepts the credentials, or needs none.
	AcceptedReason = "Accepted"
	// ServersVanishedReason surfaces when many servers that this operator manages
	// are missing from one listing.
	ServersVanishedReason = "ServersVanished"
	// ReleasedReason surfaces when the brake is off.
	ReleasedReason = "Released"
	// ReadableReason surfaces when the operator could read all that the cloud answered.
	ReadableReason = "Readable"
	// FieldsIgnoredReason surfaces when fields of the cloud's answers cannot be read.
	FieldsIgnoredReason = "FieldsIgnored"
	// ListingIncompleteReason surfaces when the listing lacks servers that the cloud has.
	ListingIncompleteReason = "ListingIncomplete"
	// LabelsNotKeptReason surfaces when servers do not have the owner labels with which
	// they were created.
	LabelsNotKeptReason = "LabelsNotKept"
	// InUseReason surfaces when the Cloud is being deleted while VMs or Networks refer to it.
	InUseReason = "InUse"
	// NotEncryptedReason surfaces when calls of the cloud are not encrypted, or need not be.
	NotEncryptedReason = "NotEncrypted"
	// CertificateNotVerifiedReason surfaces when the cloud's certificate is not verified.
	CertificateNotVerifiedReason = "CertificateNotVerified"
)
