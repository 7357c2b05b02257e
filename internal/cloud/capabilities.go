package cloud

import (
	"fmt"
	"slices"
)

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
	// NoStatus is that the cloud reports no utilization of servers at all, so that
	// nobody asks for it.
	NoStatus Capability = "noStatus"
	// Operations is that calls which take time may be answered with an operation.
	Operations Capability = "operations"
	// FolderNames is that UniqueNames holds within a folder: servers in different
	// folders may have one name.
	FolderNames Capability = "folderNames"
	// PowerAtCreate is that a server can be created stopped.
	PowerAtCreate Capability = "powerAtCreate"
	// NetworkAttach is that networks can be listed, and servers be created on them,
	// though networks cannot be created. Networks includes it: see Attaches.
	NetworkAttach Capability = "networkAttach"
	// WithUserData is that a server can be created with data that it reads at its first boot.
	WithUserData Capability = "userData"
	// Addresses is that a server that runs shows its network interfaces.
	Addresses Capability = "addresses"
	// Snapshots is that snapshots of servers can be created and deleted: see Snapshotter.
	Snapshots Capability = "snapshots"
	// Revert is that servers can be reverted to their snapshots: see Reverter. It needs Snapshots.
	Revert Capability = "revert"
	// SoftPowerOff is that guests can be asked to shut down: see SetPower.Soft.
	SoftPowerOff Capability = "softPowerOff"
	// Suspend is that a server that runs can be suspended: see PowerSuspended. It needs Power.
	Suspend Capability = "suspend"
	// WithDisks is that a server can be created with disks, shows them, and that disks can be
	// added to it and grown.
	WithDisks Capability = "disks"
	// WithRootDisk is that a server can be created with the size of its root disk, shows that
	// size, and that its root disk can be grown: see SetRootDisk.
	WithRootDisk Capability = "rootDisk"
	// DiskTypes is that the type of a disk can be chosen when it is created: that of disks with
	// WithDisks, and that of the root disk with WithRootDisk. The types have names. A call with
	// a name that the cloud does not have is Rejected, and creates nothing.
	DiskTypes Capability = "diskTypes"
	// KeepDisks is that disks of WithDisks can be kept when their server is deleted: in a create,
	// when one is added, and by a SetDiskKeep. Servers show which are.
	KeepDisks Capability = "keepDisks"
	// Zones is that a server can be created in a zone, and shows it.
	Zones Capability = "zones"
	// WithAntiAffinity is that a server can be kept on another host than those of its
	// anti-affinity group.
	WithAntiAffinity Capability = "antiAffinity"
	// WithInterfaces is that a server can be created with several network interfaces.
	WithInterfaces Capability = "interfaces"
	// StaticAddresses is that the addresses of the network interfaces of a new server can be
	// chosen.
	StaticAddresses Capability = "staticAddresses"
	// NetworkDNS is that networks have DNS servers, which can be set: see
	// CreateNetwork.DNSNameservers. It needs Networks.
	NetworkDNS Capability = "networkDNS"
	// Routers is that networks can have a router to an external network: see
	// CreateNetwork.ExternalNetwork. It needs Networks.
	Routers Capability = "routers"
	// DualStack is that networks can have an IPv6 range: see
	// CreateNetwork.IPv6CIDR. It needs Networks.
	DualStack Capability = "dualStack"
	// GuestHeartbeat is that a server that runs shows whether an agent in its guest runs.
	GuestHeartbeat Capability = "guestHeartbeat"
	// Flavors is that servers have sizes with names, show them, and can be created and resized by
	// their names.
	Flavors Capability = "flavors"
	// WithSecurityGroups is that a server can be created with security groups, shows them, and
	// that they can be changed.
	WithSecurityGroups Capability = "securityGroups"
	// PublicAddresses is that a server can be given an address of an external network, by which
	// it is reached from outside its own: see SetPublicAddress.
	PublicAddresses Capability = "publicAddresses"
	// WithAllowedAddresses is that a server shows the addresses that it may use beside its own, and
	// that they can be changed: see SetAllowedAddresses.
	WithAllowedAddresses Capability = "allowedAddresses"
	// Console is that what the serial console of a server printed can be read: see
	// ConsoleReader.
	Console Capability = "console"
	// Sizing is that a server can be created with CPU, MemoryMiB and Template. Every
	// cloud has it that reports capabilities at all.
	Sizing Capability = "sizing"
	// ExclusiveNames is that nobody else creates resources with the names that
	// objects of this cluster use. No cloud reports it: the administrator states it.
	ExclusiveNames Capability = "exclusiveNames"
)

// Capabilities is a sorted set of capabilities. It is nil while nobody knows what the cloud can do, and empty, not nil,
// for a cloud that can do none of it.
type Capabilities []Capability

// NewCapabilities returns the set of the given names, sorted, each once. It is never nil.
func NewCapabilities(names ...Capability) Capabilities {
	set := append(Capabilities{}, names...)
	slices.Sort(set)
	return slices.Compact(set)
}

// Has reports whether the cloud can do it.
func (c Capabilities) Has(name Capability) bool {
	_, found := slices.BinarySearch(c, name)
	return found
}

// HasAll reports whether the cloud can do all of it.
func (c Capabilities) HasAll(names ...Capability) bool {
	return !slices.ContainsFunc(names, func(name Capability) bool { return !c.Has(name) })
}

// Attaches reports whether servers can be created on networks.
func (c Capabilities) Attaches() bool { return c.Has(Networks) || c.Has(NetworkAttach) }

// CreateGuarantee states what a lost answer to a create leads to, and reports
// whether a create makes exactly one resource all the same, without a person. Noun
// is the resource; identified says that its owner is known even without labels. A
// name alone does not say so: somebody else may have created a resource of that
// name, unless ExclusiveNames rules it out.
func (c Capabilities) CreateGuarantee(noun string, identified bool) (guarantee string, exactlyOnce bool) {
	owned := identified || c.Has(Labels)
	switch {
	case c.Has(Idempotency):
		return fmt.Sprintf("each %s is created exactly once: the cloud honours idempotency keys", noun), true
	case c.Has(UniqueNames) && owned:
		return fmt.Sprintf("each %s is created exactly once: the cloud keeps names unique", noun), true
	case c.Has(UniqueNames) && c.Has(ExclusiveNames) && !c.Has(FolderNames):
		return fmt.Sprintf("each %s is created exactly once: the cloud keeps names unique, and nobody else uses the names of this cluster", noun), true
	case c.Has(UniqueNames):
		return fmt.Sprintf("this cloud has neither idempotency keys nor labels: if the answer to a create is lost, at most one %s of the name exists, and a person decides who owns it", noun), false
	case owned:
		return fmt.Sprintf("this cloud has neither idempotency keys nor unique names: if the answer to a create is lost, two %ss may exist for a while, and the younger is removed", noun), false
	default:
		return fmt.Sprintf("this cloud has neither idempotency keys, unique names nor labels: if the answer to a create is lost, a %s may remain that only a person can attribute", noun), false
	}
}
