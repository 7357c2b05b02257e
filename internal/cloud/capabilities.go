package cloud

import "slices"

// Capability names something that a cloud can do beyond the core profile.
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
	// Sizing is that a server can be created with CPU, MemoryGiB and Template. Every
	// cloud has it that reports capabilities at all.
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

// Has reports whether the cloud can do it.
func (c Capabilities) Has(name Capability) bool {
	_, found := slices.BinarySearch(c, name)
	return found
}
