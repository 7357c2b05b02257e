package cloud

import (
	"context"
	"time"
)

// Snapshot is a snapshot of a server as the cloud reports it.
type Snapshot struct {
	// ID is chosen by the cloud and never changes. It is unique among the snapshots of a server.
	ID   string
	Name string
	// SizeBytes is what the snapshot takes in the cloud; 0 where the cloud did not say.
	SizeBytes int64
	// CreatedAt is zero where the cloud did not say.
	CreatedAt time.Time
}

// CreateSnapshot describes a new snapshot of a server. ServerID and Name are required.
type CreateSnapshot struct {
	ServerID    string
	Name        string
	Description string
	// Memory: the snapshot is to hold the memory of the server, too.
	Memory bool
	// Quiesce is how long the guest may take to bring its file systems to rest before
	// the snapshot, in whole seconds; 0 for a snapshot without that.
	Quiesce time.Duration

	// IdempotencyKey makes the call safe to send again, as with CreateServer.
	IdempotencyKey string
}

// Snapshotter is an optional interface of a Client, which one with the capability
// Snapshots implements. DeleteServer deletes the snapshots of a server with it, unless the
// client is a SnapshotRemover. Those that outlive their server are listed and deleted as before.
type Snapshotter interface {
	// ListSnapshots returns all snapshots of a server, each of them valid: it has an id
	// and a name. It fails with NotFound only when the cloud itself says that there is no
	// such server, and no snapshot is left of it. It fails with Busy while the cloud takes a
	// snapshot that it may not list yet, and returns those that it lists.
	ListSnapshots(ctx context.Context, serverID string) ([]Snapshot, error)
	// CreateSnapshot is sent more than once only with a key that the cloud honours. On
	// an error with Uncertain set, a snapshot may have been created. It fails with Busy
	// while the server cannot have one.
	CreateSnapshot(ctx context.Context, req CreateSnapshot) (Snapshot, error)
	// DeleteSnapshot deletes a snapshot and keeps those that were taken after it. It
	// fails with NotFound when there is nothing to delete.
	DeleteSnapshot(ctx context.Context, serverID, id string) error
}

// SnapshotRemover is an optional interface of a Snapshotter whose snapshots outlive their
// server: what deletes a server deletes them once it is gone.
type SnapshotRemover interface {
	// DeleteSnapshots deletes the snapshots that this operator took of a server while the
	// label that identifies its owner had this value; empty for none. The server must be
	// gone, or its deletion accepted. It succeeds if nothing is left that it can delete: snapshots that the cloud does
	// not list, protects or uses stay. Another error leaves the rest to the next call.
	DeleteSnapshots(ctx context.Context, serverID, owner string) error
}

// RevertServer describes the revert of a server to one of its snapshots. ServerID and
// SnapshotID are required.
type RevertServer struct {
	ServerID, SnapshotID string
	// IdempotencyKey makes the call safe to send again on a cloud that honours keys of reverts.
	IdempotencyKey string
	// Again: an earlier call with the key may have been sent.
	Again bool
}

// Reverter is an optional interface of a Client, which one with the capability Revert
// implements.
type Reverter interface {
	// RevertServer makes the disks of a server what they were when the snapshot was taken,
	// and its size, where snapshots have one. It may stop the server. It fails with NotFound
	// only when the cloud itself says that there is no such server or snapshot, with Busy
	// while the server cannot be reverted, as one that is SUSPENDED on some clouds, and with Unsupported, without sending anything, if
	// Again is set on a cloud that does not honour keys of reverts. On an error with Uncertain
	// set, the server may be reverted.
	RevertServer(ctx context.Context, req RevertServer) (Result, error)
}
