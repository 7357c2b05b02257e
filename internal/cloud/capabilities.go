package cloud

import "slices"

// Capability names something that a cloud can do beyond the core profile.
// The names are those of GET /capabilities, but for Sizing.
type Capability string

const (
	Idempotency Capability = "idempotency"
	Labels      Capability = "labels"
	UniqueNames Capability = "uniqueNames"
	BulkStatus  Capability = "bulkStatus"
	Async       Capability = "async"
	Power       Capability = "power"
	Resize      Capability = "resize"
	Folders     Capability = "folders"
	Networks    Capability = "networks"
	Hosts       Capability = "hosts"
	Events      Capability = "events"
	Sessions    Capability = "sessions"
	// Sizing is taken for granted of every cloud that answers GET
	// /capabilities: POST /servers takes cpu, memory and template.
	Sizing Capability = "sizing"
)

// Capabilities is a sorted set of capabilities.
type Capabilities []Capability

// NewCapabilities returns the set of the given names, sorted, each once.
func NewCapabilities(names ...Capability) Capabilities {
	set := slices.Clone(names)
	slices.Sort(set)
	return slices.Compact(set)
}

// Has tells whether the cloud can do it.
func (c Capabilities) Has(name Capability) bool {
	_, found := slices.BinarySearch(c, name)
	return found
}
