package cloud

import "context"

// Result is the answer to a change of a server that the cloud accepted.
type Result struct {
	// Server is the server as it is now. Its id may be empty while a create runs, and
	// is empty once the server is deleted.
	Server Server
	// Operation is the id of the operation by which the cloud continues. Empty means
	// that Server says all: it may be in a transitional state.
	Operation string
	// Detached names, as the cloud does, the disks that others attached to a deleted server, and
	// that were detached and kept. It may be set together with an error.
	Detached []string
}

// Gone reports whether a deletion has ended.
func (r Result) Gone() bool { return r.Operation == "" && r.Server.ID == "" }

// OperationReader reads operations. Its calls need Operations.
type OperationReader interface {
	// GetOperation fails with NotFound only when the cloud itself says that it does
	// not know the operation, or not any more.
	GetOperation(ctx context.Context, id string) (Operation, error)
}

// Operation is a change that the cloud works on, or has worked on.
type Operation struct {
	// Done is whether it has ended. Then Err is why it failed, nil if it took effect.
	Done bool
	Err  *Error
	// Progress is how much of it is done in percent, 0-100; 0 where the cloud does
	// not say.
	Progress int
	// ServerID is the server that it is about, empty while there is none. A create that
	// failed without one has made none.
	ServerID string
	// Server is the server after a change that took effect, read after the end of the
	// operation; nil where the cloud did not say. It has the id ServerID.
	Server *Server
	// Gone is whether a deletion that took effect proves that the server does not exist
	// any more, whatever reads say.
	Gone bool
}

// ConfirmNotFound returns err, unless it says that the server of this id does not
// exist while the server does. A backend uses it for calls about a part of a server,
// such as its metadata, that the cloud may refuse with a 404 of the part's own.
func ConfirmNotFound(ctx context.Context, servers ServerReader, id string, err error) error {
	if !Is(err, NotFound, NotFoundUnproven) {
		return err
	}
	_, confirmed := servers.GetServer(ctx, id)
	if confirmed != nil {
		return confirmed
	}
	return &Error{Kind: Busy, Op: opOf(err), Detail: "the cloud does not find a part of the server, which exists", Err: err}
}
