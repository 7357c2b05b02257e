package cloud

import (
	"fmt"
	"slices"
)

// Part is the part of a server that a change is about. A planner orders changes by it.
type Part int

const (
	// LabelPart are the labels: the server may have any state.
	LabelPart Part = iota
	// SizePart is the size: some clouds change it only while the server is STOPPED, none while it is SUSPENDED.
	SizePart
	// DiskPart are the disks, also the root disk. The same holds for them.
	DiskPart
	// GroupPart are the security groups: the server may have any state.
	GroupPart
	// KeepPart is whether disks are kept when the server is deleted: the server may have any state.
	KeepPart
	// AddressPart is the public address: the server may have any state.
	AddressPart
	// AllowedPart are the allowed addresses: the server may have any state.
	AllowedPart
	// PowerPart is whether the server runs.
	PowerPart
)

// ServerChange is a change of a server in place. Its value is comparable. The changes are those of this file: a client
// refuses one that it does not know as Unsupported.
type ServerChange interface {
	// Needs returns the capabilities without which the cloud cannot make the change.
	Needs() []Capability
	// Part returns the part of the server that the change is about.
	Part() Part
	// Apply makes the server what it is after the change.
	Apply(s *Server)
	// String returns a text that no other change has.
	fmt.Stringer
}

// SetCPU gives the server this number of cores.
type SetCPU int

// Needs returns Resize.
func (SetCPU) Needs() []Capability { return []Capability{Resize} }

// Part returns SizePart.
func (SetCPU) Part() Part { return SizePart }

// Apply sets the number of cores.
func (c SetCPU) Apply(s *Server) { s.CPU = int(c) }

func (c SetCPU) String() string { return fmt.Sprintf("cpu=%d", int(c)) }

// SetMemory gives the server this memory in MiB.
type SetMemory int

// Needs returns Resize.
func (SetMemory) Needs() []Capability { return []Capability{Resize} }

// Part returns SizePart.
func (SetMemory) Part() Part { return SizePart }

// Apply sets the memory.
func (c SetMemory) Apply(s *Server) { s.MemoryMiB = int(c) }

func (c SetMemory) String() string { return fmt.Sprintf("memory=%dMi", int(c)) }

// SetFlavor gives the server the flavor of this name, instead of a number of cores and a memory.
type SetFlavor string

// Needs returns Flavors and Resize.
func (SetFlavor) Needs() []Capability { return []Capability{Flavors, Resize} }

// Part returns SizePart.
func (SetFlavor) Part() Part { return SizePart }

// Apply sets the flavor.
func (c SetFlavor) Apply(s *Server) { s.Flavor = string(c) }

func (c SetFlavor) String() string { return fmt.Sprintf("flavor=%q", string(c)) }

// SetDisk adds the disk to the server if it has none of the name, and else gives it this size, which is not smaller than
// the one that it has: a smaller size is Rejected, and the update changes nothing then. If the server already
// has the disk, its type does not change, nor does whether it is kept.
type SetDisk Disk

// Needs returns WithDisks, with DiskTypes if the change has a type, and KeepDisks if the disk is to be kept.
func (c SetDisk) Needs() []Capability { return Disk(c).Needs() }

// Part returns DiskPart.
func (SetDisk) Part() Part { return DiskPart }

// Apply adds the disk or sets its size.
func (c SetDisk) Apply(s *Server) {
	changed, _ := NewDisks([]Disk{Disk(c)})
	s.Disks = s.Disks.With(changed)
}

func (c SetDisk) String() string {
	text := fmt.Sprintf("disk %s=%dMi", c.Name, c.SizeMiB)
	if c.Type != "" {
		text += fmt.Sprintf(" of type %q", c.Type)
	}
	if c.Keep {
		text += " that is kept"
	}
	return text
}

// SetDiskKeep sets whether the cloud keeps the disk of this name when the server is deleted. It is Rejected if the server has no
// such disk.
type SetDiskKeep struct {
	Name string
	Keep bool
}

// Needs returns WithDisks and KeepDisks.
func (SetDiskKeep) Needs() []Capability { return []Capability{WithDisks, KeepDisks} }

// Part returns KeepPart.
func (SetDiskKeep) Part() Part { return KeepPart }

// Apply sets it.
func (c SetDiskKeep) Apply(s *Server) { s.Disks = s.Disks.Keeping(c.Name, c.Keep) }

func (c SetDiskKeep) String() string { return fmt.Sprintf("disk %s keep=%t", c.Name, c.Keep) }

// SetRootDisk gives the root disk of the server this size in MiB, which is not smaller than the one that it has: a
// smaller size is Rejected, and the update changes nothing then.
type SetRootDisk int

// Needs returns WithRootDisk.
func (SetRootDisk) Needs() []Capability { return []Capability{WithRootDisk} }

// Part returns DiskPart.
func (SetRootDisk) Part() Part { return DiskPart }

// Apply sets the size of the root disk.
func (c SetRootDisk) Apply(s *Server) { s.RootDisk.SizeMiB = int(c) }

func (c SetRootDisk) String() string { return fmt.Sprintf("root disk %dMi", int(c)) }

// SetSecurityGroups gives all interfaces of the server these groups and no others. It is Rejected if one does not
// exist, and the server keeps those that it has then.
type SetSecurityGroups SecurityGroups

// Needs returns WithSecurityGroups.
func (SetSecurityGroups) Needs() []Capability { return []Capability{WithSecurityGroups} }

// Part returns GroupPart.
func (SetSecurityGroups) Part() Part { return GroupPart }

// Apply sets the groups.
func (c SetSecurityGroups) Apply(s *Server) { s.SecurityGroups = SecurityGroups(c) }

func (c SetSecurityGroups) String() string {
	return fmt.Sprintf("security groups %q", SecurityGroups(c).List())
}

// SetPublicAddress gives the server an address of the external network of this name, which leads to its first
// interface. A server that has one keeps it. It is Rejected if there is no such network, or none of its addresses can
// lead to the server, and Quota if no address is free. Once the server is gone, so is the address, unless the client is a PublicAddressRemover.
type SetPublicAddress string

// Needs returns PublicAddresses.
func (SetPublicAddress) Needs() []Capability { return []Capability{PublicAddresses} }

// Part returns AddressPart.
func (SetPublicAddress) Part() Part { return AddressPart }

// Apply sets a text that is no address: the cloud chooses it.
func (c SetPublicAddress) Apply(s *Server) { s.PublicAddress = "address of " + string(c) }

func (c SetPublicAddress) String() string { return fmt.Sprintf("public address of %q", string(c)) }

// RemovePublicAddress deletes the address that a SetPublicAddress has given the server, if it has one.
type RemovePublicAddress struct{}

// Needs returns PublicAddresses.
func (RemovePublicAddress) Needs() []Capability { return []Capability{PublicAddresses} }

// Part returns AddressPart.
func (RemovePublicAddress) Part() Part { return AddressPart }

// Apply removes the address.
func (RemovePublicAddress) Apply(s *Server) { s.PublicAddress = "" }

func (RemovePublicAddress) String() string { return "without public address" }

// SetAllowedAddresses lets all interfaces of the server use these addresses in addition to their own, and no others. Empty means
// only their own. If the cloud does not allow an address, the change is Rejected, and the server keeps the addresses that it had,
// unless its interfaces differ in what they may use.
type SetAllowedAddresses AllowedAddresses

// Needs returns WithAllowedAddresses.
func (SetAllowedAddresses) Needs() []Capability { return []Capability{WithAllowedAddresses} }

// Part returns AllowedPart.
func (SetAllowedAddresses) Part() Part { return AllowedPart }

// Apply sets the addresses.
func (c SetAllowedAddresses) Apply(s *Server) { s.AllowedAddresses = AllowedAddresses(c) }

func (c SetAllowedAddresses) String() string {
	return fmt.Sprintf("allowed addresses %q", AllowedAddresses(c).List())
}

// SetLabel sets a label of the server.
type SetLabel struct{ Key, Value string }

// Needs returns Labels.
func (SetLabel) Needs() []Capability { return []Capability{Labels} }

// Part returns LabelPart.
func (SetLabel) Part() Part { return LabelPart }

// Apply sets the label.
func (c SetLabel) Apply(s *Server) {
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[c.Key] = c.Value
}

func (c SetLabel) String() string { return fmt.Sprintf("label %q=%q", c.Key, c.Value) }

// RemoveLabel removes the label with this key, if the server has it.
type RemoveLabel string

// Needs returns Labels.
func (RemoveLabel) Needs() []Capability { return []Capability{Labels} }

// Part returns LabelPart.
func (RemoveLabel) Part() Part { return LabelPart }

// Apply removes the label.
func (c RemoveLabel) Apply(s *Server) { delete(s.Labels, string(c)) }

func (c RemoveLabel) String() string { return fmt.Sprintf("without label %q", string(c)) }

// SetPower changes whether the server runs.
type SetPower struct {
	State PowerState
	// Soft: if State is Off, the guest is asked to shut down instead of the server powered off. The server is ACTIVE
	// until the guest has shut down, which may be never. Ignored for any other State. To ask again has no effect. The
	// call fails with GuestUnavailable if the guest cannot be asked.
	Soft bool
}

// ShutsDown reports whether the guest is to be asked to shut down.
func (c SetPower) ShutsDown() bool { return c.Soft && c.State == PowerOff }

// Needs returns Power, with Suspend or SoftPowerOff where the change is such a one.
func (c SetPower) Needs() []Capability {
	switch {
	case c.State == PowerSuspended:
		return []Capability{Power, Suspend}
	case c.ShutsDown():
		return []Capability{Power, SoftPowerOff}
	}
	return []Capability{Power}
}

// Part returns PowerPart.
func (SetPower) Part() Part { return PowerPart }

// Apply sets the state. A guest that is asked to shut down has done so.
func (c SetPower) Apply(s *Server) {
	switch c.State {
	case PowerOn:
		s.State = StateActive
	case PowerOff:
		s.State = StateStopped
	case PowerSuspended:
		s.State = StateSuspended
	}
}

func (c SetPower) String() string { return fmt.Sprintf("power=%s soft=%t", c.State, c.Soft) }

// Update is what UpdateServer changes, in any order. Each size, disk, whether one is kept, label, the root disk, the groups, the public
// address and the power state is changed once at most: a SetFlavor excludes SetCPU and SetMemory, a SetLabel excludes a RemoveLabel of its
// key, and a SetPublicAddress a RemovePublicAddress.
type Update []ServerChange

// Needs returns the capabilities that the changes need.
func (u Update) Needs() []Capability {
	var needs []Capability
	for _, c := range u {
		for _, need := range c.Needs() {
			if !slices.Contains(needs, need) {
				needs = append(needs, need)
			}
		}
	}
	return needs
}

// Has reports whether the update changes one of these parts of the server.
func (u Update) Has(parts ...Part) bool { return len(u.Of(parts...)) > 0 }

// Of returns the changes of these parts of the server.
func (u Update) Of(parts ...Part) Update {
	return u.without(func(c ServerChange) bool { return !slices.Contains(parts, c.Part()) })
}

// Without returns the changes of other parts of the server.
func (u Update) Without(parts ...Part) Update {
	return u.without(func(c ServerChange) bool { return slices.Contains(parts, c.Part()) })
}

func (u Update) without(dropped func(ServerChange) bool) Update {
	return slices.DeleteFunc(slices.Clone(u), dropped)
}

// Resizes reports whether the update changes the size or the disks, which may need a server that is STOPPED.
func (u Update) Resizes() bool { return u.Has(SizePart, DiskPart) }

// Power returns the change of the power state, and whether there is one.
func (u Update) Power() (SetPower, bool) {
	for _, c := range u {
		if power, ok := c.(SetPower); ok {
			return power, true
		}
	}
	return SetPower{}, false
}

// PowersOff reports whether the update stops the server.
func (u Update) PowersOff() bool {
	power, _ := u.Power()
	return power.State == PowerOff
}

// Apply makes the server what it is after the update.
func (u Update) Apply(s *Server) {
	for _, c := range u {
		c.Apply(s)
	}
}

// Changes returns the changes of one type.
func Changes[C ServerChange](u Update) []C {
	var list []C
	for _, change := range u {
		if c, ok := change.(C); ok {
			list = append(list, c)
		}
	}
	return list
}
