package mockcloud

import (
	"regexp"
	"slices"
)

// Disk is a disk of a server beside those of its template.
type Disk struct {
	Name string `json:"name"`
	// Size is in GiB.
	Size int `json:"size"`
}

// The limits of the disks of a server.
const (
	maxDisks    = 64
	maxDiskSize = 16384
)

var diskName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func checkDisks(disks []Disk) error {
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
		case disk.Size < 1 || disk.Size > maxDiskSize:
			return invalid("disk %q: the size is 1-%d GiB", disk.Name, maxDiskSize)
		}
		names[disk.Name] = true
	}
	return nil
}

// sizeOfDisk returns the size of the disk of this name, 0 if there is none.
func sizeOfDisk(disks []Disk, name string) int {
	if i := slices.IndexFunc(disks, func(d Disk) bool { return d.Name == name }); i >= 0 {
		return disks[i].Size
	}
	return 0
}

// checkGrowth returns an error if a disk would shrink, or if there would be too many.
func (p patchServer) checkGrowth(r *record) error {
	for _, disk := range p.Disks {
		if has := sizeOfDisk(r.Disks, disk.Name); disk.Size < has {
			return invalid("disk %q: it has %d GiB and cannot shrink", disk.Name, has)
		}
	}
	if len(withDisks(r.Disks, p.Disks)) > maxDisks {
		return invalid("more than %d disks", maxDisks)
	}
	return nil
}

func (p patchServer) changesDisks(r *record) bool {
	return slices.ContainsFunc(p.Disks, func(d Disk) bool { return sizeOfDisk(r.Disks, d.Name) != d.Size })
}

// withDisks returns the disks after those of changed were added, or replaced the ones of
// their names.
func withDisks(disks, changed []Disk) []Disk {
	next := slices.Clone(disks)
	for _, disk := range changed {
		if i := slices.IndexFunc(next, func(d Disk) bool { return d.Name == disk.Name }); i >= 0 {
			next[i] = disk
		} else {
			next = append(next, disk)
		}
	}
	return next
}
