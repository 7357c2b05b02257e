package mockcloud

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
)

// DiskTypes are the types of disks. The first is that of disks whose type is not chosen.
var DiskTypes = []string{"standard", "fast"}

// TemplateDiskSize is the size of the root disk of each template in GiB.
const TemplateDiskSize = 10

// Disk is a disk of a server beside those of its template.
type Disk struct {
	Name string `json:"name"`
	// Size is in GiB.
	Size int `json:"size"`
	// Type is one of DiskTypes.
	Type string `json:"type,omitempty"`
	// Keep is whether the disk is kept when the server is deleted. The ledger has which are.
	Keep bool `json:"keep,omitempty"`
}

// patchDisk is a disk as a change has it.
type patchDisk struct {
	Name string `json:"name"`
	// Size is 0 for a disk that keeps its size. Keep is nil for one that is kept or not as before.
	Size int    `json:"size,omitempty"`
	Type string `json:"type,omitempty"`
	Keep *bool  `json:"keep,omitempty"`
}

// RootDisk is the disk that a server boots from.
type RootDisk struct {
	// Size is in GiB.
	Size int `json:"size,omitempty"`
	// Type is one of DiskTypes.
	Type string `json:"type,omitempty"`
}

// The limits of the disks of a server.
const (
	maxDisks    = 64
	maxDiskSize = 16384
)

var diskName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// checkDisks returns an error for disks that no server could have. Their sizes are at least as given.
func checkDisks(disks []Disk, least int) error {
	if len(disks) > maxDisks {
		return invalid("more than %d disks", maxDisks)
	}
	names := map[string]bool{}
	for _, disk := range disks {
		switch {
		case !diskName.MatchString(disk.Name):
			return invalid("disk %q: a name is a DNS label", disk.Name)
		case names[disk.Name]:
			return invalid("disk %q: it is there twice", disk.Name)
		case disk.Size < least || disk.Size > maxDiskSize:
			return invalid("disk %q: the size is 1-%d GiB", disk.Name, maxDiskSize)
		case len(disk.Type) > maxText:
			return invalid("disk %q: type is longer than %d bytes", disk.Name, maxText)
		}
		names[disk.Name] = true
	}
	return nil
}

// check returns an error for a root disk that no server could have.
func (d *RootDisk) check() error {
	switch {
	case d == nil:
		return nil
	case *d == RootDisk{}:
		return invalid("rootDisk has neither size nor type")
	case d.Size < 0 || d.Size > maxDiskSize:
		return invalid("rootDisk: the size is 1-%d GiB", maxDiskSize)
	case len(d.Type) > maxText:
		return invalid("rootDisk: type is longer than %d bytes", maxText)
	}
	return nil
}

// supportedDisks returns an error for disks whose capability is off.
func supportedDisks(c *core, disks []Disk, root *RootDisk) error {
	kept := slices.ContainsFunc(disks, func(d Disk) bool { return d.Keep })
	typed := root != nil && root.Type != "" || slices.ContainsFunc(disks, func(d Disk) bool { return d.Type != "" })
	switch {
	case disks != nil && !c.has(Disks):
		return unsupported("disks")
	case root != nil && !c.has(WithRootDisk):
		return unsupported("rootDisk")
	case typed && !c.has(WithDiskTypes):
		return unsupported("diskTypes")
	case kept && !c.has(KeepDisks):
		return unsupported("keepDisks")
	}
	return nil
}

// admitDisks returns an error for a new server whose disks have types that do not exist, or whose root disk is too small.
func admitDisks(b createServer) error {
	if b.RootDisk != nil {
		if size := b.RootDisk.Size; size != 0 && size < TemplateDiskSize {
			return invalid("rootDisk: the size is %d GiB, and the root disk of the template has %d GiB", size, TemplateDiskSize)
		}
		if err := admitDiskType(b.RootDisk.Type); err != nil {
			return err
		}
	}
	for _, disk := range b.Disks {
		if err := admitDiskType(disk.Type); err != nil {
			return err
		}
	}
	return nil
}

func admitDiskType(name string) error {
	if name != "" && !slices.Contains(DiskTypes, name) {
		return problem(http.StatusUnprocessableEntity, CodeDiskTypeUnknown, "there is no type of disks %q", name)
	}
	return nil
}

// rootDiskOf returns the root disk of a new server.
func rootDiskOf(asked *RootDisk) *RootDisk {
	root := deref(asked, RootDisk{})
	if root.Size == 0 {
		root.Size = TemplateDiskSize
	}
	if root.Type == "" {
		root.Type = DiskTypes[0]
	}
	return &root
}

// shownDisks returns the disks as the capabilities show them.
func shownDisks(c *core, disks []Disk, root *RootDisk) ([]Disk, *RootDisk) {
	if !c.has(Disks) {
		disks = nil
	}
	if !c.has(WithRootDisk) {
		root = nil
	}
	disks = slices.Clone(disks)
	for i := range disks {
		disks[i].Keep = disks[i].Keep && c.has(KeepDisks)
		if !c.has(WithDiskTypes) {
			disks[i].Type = ""
		}
	}
	if root != nil && !c.has(WithDiskTypes) {
		root = &RootDisk{Size: root.Size}
	}
	return disks, root
}

// keptDisks returns the names of the disks that are kept when the server is deleted.
func keptDisks(disks []Disk) (names []string) {
	for _, disk := range disks {
		if disk.Keep {
			names = append(names, disk.Name)
		}
	}
	return names
}

// reverted returns the disks of a server that has the disks now and is reverted to others. A revert does not change which disks are kept,
// and does not remove kept disks.
func reverted(disks, now []Disk) []Disk {
	next := slices.Clone(disks)
	for _, disk := range now {
		i := slices.IndexFunc(next, func(d Disk) bool { return d.Name == disk.Name })
		switch {
		case i >= 0:
			next[i].Keep = disk.Keep
		case disk.Keep:
			next = append(next, disk)
		}
	}
	return next
}

// sizeOfDisk returns the size of the disk of this name, 0 if there is none.
func sizeOfDisk(disks []Disk, name string) int {
	if i := slices.IndexFunc(disks, func(d Disk) bool { return d.Name == name }); i >= 0 {
		return disks[i].Size
	}
	return 0
}

// checkGrowth returns an error if a disk would shrink, or a new one has a type that does not exist, or if there would be
// too many.
func (p patchServer) checkGrowth(r *record) error {
	for _, disk := range p.Disks {
		has := sizeOfDisk(r.Disks, disk.Name)
		switch {
		case has == 0 && disk.Size == 0:
			return invalid("disk %q: the server has no such disk", disk.Name)
		case disk.Size != 0 && disk.Size < has:
			return invalid("disk %q: it has %d GiB and cannot shrink", disk.Name, has)
		case has > 0:
			continue // it keeps its type
		}
		if err := admitDiskType(disk.Type); err != nil {
			return err
		}
	}
	if p.RootDisk != nil && r.RootDisk != nil && p.RootDisk.Size < r.RootDisk.Size {
		return invalid("rootDisk: it has %d GiB and cannot shrink", r.RootDisk.Size)
	}
	if len(p.withDisks(r.Disks)) > maxDisks {
		return invalid("more than %d disks", maxDisks)
	}
	return nil
}

// checkRootDisk returns an error for a root disk that no change could make.
func (p patchServer) checkRootDisk() error {
	if p.RootDisk != nil && (p.RootDisk.Size == 0 || p.RootDisk.Type != "") {
		return invalid("rootDisk: a change has its size alone")
	}
	return p.RootDisk.check()
}

func (p patchServer) changesRootDisk(r *record) bool {
	return p.RootDisk != nil && p.RootDisk.Size != deref(r.RootDisk, RootDisk{}).Size
}

// disks returns the disks of the change.
func (p patchServer) disks() (disks []Disk) {
	for _, disk := range p.Disks {
		disks = append(disks, Disk{Name: disk.Name, Size: disk.Size, Type: disk.Type, Keep: deref(disk.Keep, false)})
	}
	return disks
}

// checkDisks returns an error for disks that no change could make.
func (p patchServer) checkDisks() error {
	for _, disk := range p.Disks {
		if disk.Size == 0 && disk.Keep == nil {
			return invalid("disk %q has neither size nor keep", disk.Name)
		}
	}
	return checkDisks(p.disks(), 0)
}

// supportedDisks returns an error for disks whose capability is off.
func (p patchServer) supportedDisks(c *core) error {
	if !c.has(KeepDisks) && slices.ContainsFunc(p.Disks, func(d patchDisk) bool { return d.Keep != nil }) {
		return unsupported("keepDisks")
	}
	return supportedDisks(c, p.disks(), p.RootDisk)
}

// resizesDisks reports whether the change adds or grows disks.
func (p patchServer) resizesDisks(r *record) bool {
	return slices.ContainsFunc(p.Disks, func(d patchDisk) bool { return d.Size != 0 && sizeOfDisk(r.Disks, d.Name) != d.Size })
}

// withDisks returns the disks after those of the change were added, or gave what they have to the ones of their names.
func (p patchServer) withDisks(disks []Disk) []Disk {
	next := slices.Clone(disks)
	for _, disk := range p.Disks {
		i := slices.IndexFunc(next, func(d Disk) bool { return d.Name == disk.Name })
		if i < 0 {
			next = append(next, typedDisks(Disk{Name: disk.Name, Size: disk.Size, Type: disk.Type, Keep: deref(disk.Keep, false)})...)
			continue
		}
		next[i].Size, next[i].Keep = cmp.Or(disk.Size, next[i].Size), deref(disk.Keep, next[i].Keep)
	}
	return next
}

// typedDisks returns the disks with the type that they get without one.
func typedDisks(disks ...Disk) []Disk {
	disks = slices.Clone(disks)
	for i := range disks {
		disks[i].Type = cmp.Or(disks[i].Type, DiskTypes[0])
	}
	return disks
}
