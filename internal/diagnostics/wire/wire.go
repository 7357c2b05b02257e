// Package wire has the answers of the diagnostics endpoint as JSON. The operator writes and
// the kubectl plugin reads them.
package wire

import "time"

// Paths of the endpoint. That of an object has the kind, such as VM, and for a Cloud an
// underscore in place of a namespace.
const (
	VersionPath = "/v1/version"
	AllClouds   = "/v1/clouds"
	CloudsPath  = "/v1/clouds/"
	ObjectsPath = "/v1/objects/"
	MetricsPath = "/metrics"
	NoNamespace = "_"
)

// States of servers that are listed, values of the parameter state.
const (
	// StateUnmanaged is that no object has or claims the server, and it has no owner labels.
	StateUnmanaged = "unmanaged"
	// StateOrphaned is that it has the owner labels of this cluster and no object.
	StateOrphaned = "orphaned"
)

// Reasons of errors.
const (
	// NotLeading is that another process leads, which is to be asked.
	NotLeading = "NotLeading"
	// NotFound is that this manager has no such Cloud, or that there is no such path.
	NotFound = "NotFound"
	// Unavailable is that the Cloud has not been listed yet.
	Unavailable = "Unavailable"
	// Invalid is that the request is none.
	Invalid = "Invalid"
)

// Error is the body of an answer that is no success.
type Error struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Version describes a manager.
type Version struct {
	Version string `json:"version"`
	// Leading is whether the manager acts, and so answers for its Clouds.
	Leading bool `json:"leading"`
}

// Clouds has the Clouds of a manager.
type Clouds struct {
	// Names are sorted.
	Names []string `json:"names"`
}

// Cloud is what a manager knows of a Cloud.
type Cloud struct {
	Cloud string `json:"cloud"`
	// Unavailable is why the cloud cannot be used now; empty if it can.
	Unavailable  string   `json:"unavailable,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`
	// LastPoll is when the servers were last listed, or the listing was tried.
	LastPoll *time.Time `json:"lastPoll,omitempty"`
	Listing  *Listing   `json:"listing,omitempty"`
	// Braked is whether the brake is on, and Missing are then the VMs whose servers the last
	// complete listing lacks.
	Braked  bool      `json:"braked"`
	Missing *Missing  `json:"missing,omitempty"`
	Limiter *Limiter  `json:"limiter,omitempty"`
	Workers []Workers `json:"workers,omitempty"`
}

// Missing are VMs whose servers a listing lacks.
type Missing struct {
	// Count is how many there are.
	Count int `json:"count"`
	// VMs are the first of them, sorted by namespace and name.
	VMs []MissingVM `json:"vms"`
}

// MissingVM is a VM whose server a listing lacks.
type MissingVM struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// ID is that of the server.
	ID string `json:"id"`
}

// Listing is the last complete listing.
type Listing struct {
	Begun           time.Time `json:"begun"`
	DurationSeconds float64   `json:"durationSeconds"`
	Servers         int       `json:"servers"`
}

// Limiter has the requests to the cloud that are under way or wait.
type Limiter struct {
	RequestsPerSecond float64 `json:"requestsPerSecond"`
	Burst             int     `json:"burst"`
	MaxInFlight       int     `json:"maxInFlight"`
	InFlight          int     `json:"inFlight"`
	Waiting           int     `json:"waiting"`
	// Flows are those with requests that wait or come back later. One with a slash in its
	// name is a class of calls of all namespaces, and one without a name is the manager's.
	Flows []Flow `json:"flows,omitempty"`
}

// Flow has the requests of one namespace.
type Flow struct {
	Namespace string `json:"namespace"`
	Waiting   int    `json:"waiting"`
	// RetryAt is when the last of the requests that were refused for the limits comes back.
	RetryAt *time.Time `json:"retryAt,omitempty"`
}

// Workers has the objects of a Cloud that one controller reconciles now, or that wait.
type Workers struct {
	Controller   string           `json:"controller"`
	PerNamespace int              `json:"perNamespace"`
	PerCloud     int              `json:"perCloud"`
	Running      int              `json:"running"`
	Waiting      int              `json:"waiting"`
	Namespaces   []NamespaceShare `json:"namespaces,omitempty"`
}

// NamespaceShare is the part of one namespace.
type NamespaceShare struct {
	Namespace string `json:"namespace"`
	Running   int    `json:"running"`
	Waiting   int    `json:"waiting"`
}

// Servers is a list of servers, sorted by name and then by id.
type Servers struct {
	Cloud string `json:"cloud"`
	// ListedAt is when the listing began that has them.
	ListedAt time.Time `json:"listedAt"`
	Counts   Counts    `json:"counts"`
	Servers  []Server  `json:"servers"`
}

// Counts has the servers of the cloud by whose they are.
type Counts struct {
	// Managed are those of objects, and those that objects import or claim by their name.
	Managed   int `json:"managed"`
	Unmanaged int `json:"unmanaged"`
	Orphaned  int `json:"orphaned"`
	// OtherClusters are those with the owner labels of other clusters.
	OtherClusters int `json:"otherClusters"`
}

// Server is one server of the cloud.
type Server struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	State     string `json:"state,omitempty"`
	CPU       int    `json:"cpu,omitempty"`
	MemoryMiB int    `json:"memoryMiB,omitempty"`
	Folder    string `json:"folder,omitempty"`
	Zone      string `json:"zone,omitempty"`
	Image     string `json:"image,omitempty"`
	// CreatedAt is absent where the cloud does not say.
	CreatedAt *time.Time `json:"createdAt,omitempty"`
	// Owner is the object that the owner labels of an orphan name.
	Owner *Owner `json:"owner,omitempty"`
}

// Owner names an object that existed.
type Owner struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid"`
}

// Object has the last steps of an object, the oldest first.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Steps     []Step `json:"steps"`
}

// Step is a step that called the cloud or changed something.
type Step struct {
	Step            string    `json:"step"`
	Time            time.Time `json:"time"`
	DurationSeconds float64   `json:"durationSeconds"`
	// Reason and Message are those of the outcome, absent if the step succeeded.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}
