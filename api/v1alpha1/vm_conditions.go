package v1alpha1

// Conditions of a VM, besides the summary conditions.
const (
	// NameCheckedCondition reports whether the cloud allows vmname.
	NameCheckedCondition = "NameChecked"
	// CreatedCondition reports whether the VM exists in the cloud.
	CreatedCondition = "Created"
	// GuestReadyCondition reports whether the guest is ready, as spec.readinessProbe says. It
	// is absent without a probe.
	GuestReadyCondition = "GuestReady"
	// DeletingCondition is True while the VM is being deleted, and absent
	// otherwise.
	DeletingCondition = "Deleting"
)

// Reasons of NameChecked.
const (
	// AvailableReason surfaces when the cloud allows the name, or already has this
	// VM under it.
	AvailableReason = "Available"
	// ProhibitedReason surfaces when the cloud does not allow the name. Edit spec.vmname.
	ProhibitedReason = "Prohibited"
	// TakenReason surfaces when another server or VM has the name.
	TakenReason = "Taken"
	// CheckFailedReason surfaces when the check failed. It is retried.
	CheckFailedReason = "CheckFailed"
)

// Reasons of Created.
const (
	// CreatedReason surfaces when the operator created the server.
	CreatedReason = "Created"
	// AdoptedReason surfaces when the operator found the server of an earlier
	// create and adopted it.
	AdoptedReason = "Adopted"
	// ImportedReason surfaces when the operator took over the server of spec.import.vmId.
	ImportedReason = "Imported"
	// PendingReason surfaces when the create has not been sent yet.
	PendingReason = "Pending"
	// CreatingReason surfaces when the cloud accepted the create and builds the server.
	// The message has the progress where the cloud reports it.
	CreatingReason = "Creating"
	// OutcomeUnknownReason surfaces when the response to a create was lost. The
	// operator looks for the server before it does anything else.
	OutcomeUnknownReason = "OutcomeUnknown"
	// RejectedReason surfaces when the cloud rejects the spec, or lacks something that the spec needs.
	RejectedReason = "Rejected"
	// QuotaExceededReason surfaces when the cloud has no quota or capacity left. The create is retried.
	QuotaExceededReason = "QuotaExceeded"
	// UnschedulableReason surfaces when no host of the cloud can take the VM: it has no room where
	// spec.zone and spec.antiAffinity allow the VM. The create is retried.
	UnschedulableReason = "Unschedulable"
	// AmbiguousReason surfaces when a server, or one of several, may be this VM
	// and nothing proves it.
	AmbiguousReason = "Ambiguous"
	// NotFoundReason surfaces when the cloud does not show a server that it created, and
	// it is not proved yet that the server is gone.
	NotFoundReason = "NotFound"
	// LostReason surfaces when the server disappeared from the cloud and the
	// operator did not delete it. The operator does not create it again.
	LostReason = "Lost"
)

// Reasons of GuestReady.
const (
	// AddressKnownReason surfaces when the cloud shows an address of the VM.
	AddressKnownReason = "AddressKnown"
	// NoAddressReason surfaces when the VM runs and the cloud shows no address of it.
	NoAddressReason = "NoAddress"
	// HeartbeatReason surfaces when the cloud receives heartbeats of the guest.
	HeartbeatReason = "Heartbeat"
	// NoHeartbeatReason surfaces when the VM runs and no agent in its guest has sent a heartbeat.
	NoHeartbeatReason = "NoHeartbeat"
	// HeartbeatLostReason surfaces when the VM runs and its guest sends no heartbeats any more.
	HeartbeatLostReason = "HeartbeatLost"
	// PortOpenReason surfaces when the guest accepts TCP connections at the port of the probe.
	PortOpenReason = "PortOpen"
	// ConnectionRefusedReason surfaces when the VM runs and refuses connections at the port.
	ConnectionRefusedReason = "ConnectionRefused"
	// ConnectionTimeoutReason surfaces when the VM runs and does not answer at the port.
	ConnectionTimeoutReason = "ConnectionTimeout"
	// PortUnsteadyReason surfaces when the guest opened and closed the port too often lately. Each
	// change would be written; the guest is ready again up to five minutes after the port stays open.
	PortUnsteadyReason = "PortUnsteady"
	// ProbePendingReason surfaces when the operator has not connected to the port yet.
	ProbePendingReason = "ProbePending"
	// ProbeNotAllowedReason surfaces when the operator may not connect to the address of the
	// VM. Ask the administrator of the operator.
	ProbeNotAllowedReason = "ProbeNotAllowed"
	// NotRunningReason surfaces when the VM does not run.
	NotRunningReason = "NotRunning"
)

// Reasons of Deleting.
const (
	// RequestedReason surfaces when the delete was sent to the cloud.
	RequestedReason = "Requested"
	// WaitingForCloudReason surfaces when the deletion waits because the cloud cannot be called.
	WaitingForCloudReason = "WaitingForCloud"
	// BlockedReason surfaces when somebody has to act before the deletion can continue.
	BlockedReason = "Blocked"
)

// Reasons of a VM's Ready condition that no other condition has.
const (
	// RunningReason surfaces when the server runs and matches the spec.
	RunningReason = "Running"
	// StoppedReason surfaces when the server is off and matches the spec.
	StoppedReason = "Stopped"
	// SuspendedReason surfaces when the server is suspended and matches the spec.
	SuspendedReason = "Suspended"
	// DeletingReason surfaces when the server is being deleted by somebody else.
	DeletingReason = "Deleting"
	// CloudUnavailableReason surfaces when the Cloud is not Ready, or when it does not exist or
	// does not allow this namespace, which the message leaves open.
	CloudUnavailableReason = "CloudUnavailable"
	// BrakedReason surfaces when the Cloud's brake is on. The operator creates and
	// deletes nothing until it is acknowledged.
	BrakedReason = "Braked"
	// ClassUnavailableReason surfaces while the VMClass of spec.className does not exist, or
	// the namespace may not use it, which the message leaves open.
	ClassUnavailableReason = "ClassUnavailable"
	// UserDataUnavailableReason surfaces when the Secret of the user data does not exist,
	// lacks the key or the label, or cannot be read. It is read again with back-off.
	UserDataUnavailableReason = "UserDataUnavailable"
	// AddressInvalidReason surfaces when the Network of an interface cannot have its static
	// address: the address is outside the range of the Network, or is one that no VM can have.
	// Nothing is sent. Edit spec.network.
	AddressInvalidReason = "AddressInvalid"
	// AddressInUseReason surfaces when another VM of the namespace has, or asked first for, the
	// static address of an interface on the same Network. Nothing is sent. Edit spec.network,
	// or delete the other VM.
	AddressInUseReason = "AddressInUse"
	// UnsupportedReason surfaces when the cloud lacks a capability that the spec needs.
	UnsupportedReason = "Unsupported"
	// OperationFailedReason surfaces when a change that the cloud accepted failed there,
	// for a reason of the cloud's own. It is tried again.
	OperationFailedReason = "OperationFailed"
	// NeedsRestartReason surfaces when the cloud changes the size only while the server
	// is stopped, or when the server is suspended. Stop the VM, or set spec.updatePolicy to
	// RestartAllowed; resume one that is suspended.
	NeedsRestartReason = "NeedsRestart"
	// ShuttingDownReason surfaces when the guest was asked to shut down and still runs.
	ShuttingDownReason = "ShuttingDown"
	// GuestUnavailableReason surfaces when the guest cannot be asked to shut down, mostly
	// because no agent runs in it, and spec.powerOffMode is Soft. It is tried again.
	GuestUnavailableReason = "GuestUnavailable"
	// RestartMissedReason is that of the event of a restart that had not begun an hour
	// after spec.nextRestartTime, or of a VM that is to be off or suspended at that time.
	RestartMissedReason = "RestartMissed"
	// SnapshotUnavailableReason surfaces when the VM cannot be reverted to the VMSnapshot
	// of spec.currentSnapshotName: it does not exist, is being deleted, has no snapshot yet
	// or not any more, or is of another VM or server.
	SnapshotUnavailableReason = "SnapshotUnavailable"
	// RevertedReason is that of the event of a revert that succeeded, and RevertFailedReason
	// surfaces when one failed in the cloud. It is not tried again.
	RevertedReason     = "Reverted"
	RevertFailedReason = "RevertFailed"
	// SnapshotsDeletedReason is that of the event of a deletion of a VM that has VMSnapshots,
	// whose snapshots are deleted with it.
	SnapshotsDeletedReason = "SnapshotsDeleted"
	// DisksDetachedReason is that of the event of a deletion of a VM that had disks which
	// others attached: they were detached before, and are kept.
	DisksDetachedReason = "DisksDetached"
	// DisksKeptReason is that of the event of a deletion of a VM with disks that are kept.
	DisksKeptReason = "DisksKept"
	// DriftReason surfaces when the server differs from the spec in a way that
	// the operator cannot correct.
	DriftReason = "Drift"
	// LabelsMissingReason surfaces when the cloud did not keep the owner labels with which
	// the server was created: they are missing, cut or otherwise altered.
	LabelsMissingReason = "LabelsMissing"
	// ServerErrorReason surfaces when the cloud reports that the server is in error.
	ServerErrorReason = "ServerError"
	// UnknownStateReason surfaces when the cloud reports a state of the server
	// that the operator does not know.
	UnknownStateReason = "UnknownState"
)
