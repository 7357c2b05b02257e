package cloud

import (
	"context"
	"time"
)

// Client makes calls to one cloud. It MUST be safe for concurrent use, MUST
// fail with *Error alone, and MUST bound each call in time and memory whatever
// the cloud does. A call returns when its context ends.
type Client interface {
	Prober
	NameChecker
	ServerReader
	ServerWriter
	OperationReader
	HostReader
	NetworkReader
	NetworkWriter
	// Close ends the session with the cloud, if there is one. Calls under way
	// finish; later calls are not allowed.
	Close(ctx context.Context)
}

// Prober finds out what the cloud can do.
type Prober interface {
	// Capabilities asks the cloud. A cloud that does not report capabilities has none
	// but those that were configured. A success proves that the cloud answers and
	// accepts the credentials.
	Capabilities(ctx context.Context) (Capabilities, error)
}

// NameChecker asks whether a name may be used.
type NameChecker interface {
	// CheckName returns nil when the name may be used, else an error of Kind
	// Prohibited or Taken, or any that a call can end with.
	CheckName(ctx context.Context, name Name) error
}

// Name is the name of a server that is to be created.
type Name struct {
	Name string
	// Folder is the folder that the server is to be in. A cloud without FolderNames
	// ignores it.
	Folder string
}

// ServerReader reads servers.
type ServerReader interface {
	// GetServer fails with NotFound only when the cloud itself says so.
	GetServer(ctx context.Context, id string) (Server, error)
	// ServerStatus is the fallback for clouds without BulkStatus. It fails with
	// NotFound only when the server does not exist; see ConfirmNotFound.
	ServerStatus(ctx context.Context, id string) (Status, error)
	// ListServers returns one page. Each server of a page is valid: it has an id and a name.
	ListServers(ctx context.Context, opts ListServers) (ServerPage, error)
}

// ServerStreamer is an optional interface of a Client that can list servers without
// holding a page in memory.
type ServerStreamer interface {
	// StreamServers is ListServers that passes the servers of the page on as they
	// arrive, and returns the marker of the following page.
	StreamServers(ctx context.Context, opts ListServers, to ServerSink) (next string, err error)
}

// ServerSink takes the servers of a page.
type ServerSink interface {
	// Begin is called before the first server, and again when the page has to be read
	// again: what was taken of it before does not count.
	Begin()
	// Take takes a server, whose labels are valid until it returns. The listing ends with
	// the error, which is an *Error.
	Take(s Server) error
}

// IgnoredReporter is an optional interface of a Client that reads answers of which
// parts make no sense.
type IgnoredReporter interface {
	// Ignored returns which fields of the cloud's answers were ignored since the last
	// call, with the reason, sorted: `cpuUtilization: not a number`. At most 16.
	Ignored() []string
}

// LoadReporter is an optional interface of a Client that bounds the requests to its cloud.
type LoadReporter interface {
	// Load returns what the client asks of the cloud at the moment. It calls nothing.
	Load() Load
}

// Load is what a client asks of its cloud, and how much it may ask.
type Load struct {
	// RequestsPerSecond is the sustained rate, Burst how many requests may exceed it at
	// once, and MaxInFlight how many may be under way.
	RequestsPerSecond float64
	Burst             int
	MaxInFlight       int
	// InFlight is how many requests are under way, and Waiting how many wait to be sent.
	InFlight, Waiting int
	// Flows are those with requests that wait, or that were refused and come back later,
	// sorted by name.
	Flows []FlowLoad
}

// FlowLoad is the load of the flow of one namespace.
type FlowLoad struct {
	// Name is a namespace, or has a slash: then it is a class of calls of all namespaces.
	Name    string
	Waiting int
	// RetryAt is when the last request of the flow that was refused may come back; zero
	// if that is over.
	RetryAt time.Time
}

// DefectReporter is an optional interface of a Client of which the settings may name
// something that the cloud does not have and that only some servers need.
type DefectReporter interface {
	// Defect returns what that is, such as the resource pool of a zone, as an *Error of the kind
	// Misconfigured, nil if there is nothing. It makes no call: a listing looks again.
	Defect() error
}

// ServerWriter changes servers. A call that is answered with an operation has been
// accepted, and takes effect or fails later.
type ServerWriter interface {
	// CreateServer returns the server, which may still be BUILDING. Its id may be
	// empty if there is an operation. It is sent more than once only with a key that
	// the cloud honours. On an error with Uncertain set, a server may have been
	// created.
	CreateServer(ctx context.Context, req CreateServer) (Result, error)
	// UpdateServer changes the server in place, and returns it as it is after the change
	// was accepted. With an operation, the server may be empty. It fails with NotFound only when the server
	// does not exist; see ConfirmNotFound.
	UpdateServer(ctx context.Context, id string, update Update) (Result, error)
	// DeleteServer returns a result that is Gone, or the server or operation by which
	// its deletion continues. It fails with NotFound when there is nothing to delete.
	DeleteServer(ctx context.Context, id string) (Result, error)
}
