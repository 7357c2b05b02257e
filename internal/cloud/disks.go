package cloud

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// MaxDisks is the most disks of a server that are kept.
const MaxDisks = 64

// Disk is a disk of a server that has a name.
type Disk struct {
	// Name is unique among the disks of the server: a DNS label.
	Name string
	// SizeMiB is the size in MiB.
	SizeMiB int
}

// Disks are the disks of a server that have a name, in the order of their names. They are
// one text, which can be compared and takes little memory: name=MiB, separated by spaces.
type Disks string

// DisksUnknown are the disks of a server of which the cloud does not say at the moment which it has.
const DisksUnknown Disks = "?"

// diskName is the form of names of disks.
var diskName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// NewDisks returns the disks, and whether each has a valid name that no other one has and a
// size above 0: those that have not are left out, and so are those beyond MaxDisks.
func NewDisks(list []Disk) (disks Disks, valid bool) {
	sorted := slices.SortedStableFunc(slices.Values(list), func(a, b Disk) int { return cmp.Compare(a.Name, b.Name) })
	var text strings.Builder
	valid = true
	last, kept := "", 0
	for _, d := range sorted {
		switch {
		case d.SizeMiB <= 0 || d.Name == last || !diskName.MatchString(d.Name):
			valid = false
			continue
		case kept == MaxDisks:
			return Disks(text.String()), valid
		case kept > 0:
			text.WriteByte(' ')
		}
		last = d.Name
		kept++
		text.WriteString(d.Name)
		text.WriteByte('=')
		text.WriteString(strconv.Itoa(d.SizeMiB))
	}
	return Disks(text.String()), valid
}

// List returns each disk.
func (d Disks) List() []Disk {
	if d == "" || d == DisksUnknown {
		return nil
	}
	var list []Disk
	for text := range strings.SplitSeq(string(d), " ") {
		name, size, _ := strings.Cut(text, "=")
		mib, _ := strconv.Atoi(size)
		list = append(list, Disk{Name: name, SizeMiB: mib})
	}
	return list
}

// Size returns the size in MiB of the disk of this name, 0 if there is none.
func (d Disks) Size(name string) int {
	for _, disk := range d.List() {
		if disk.Name == name {
			return disk.SizeMiB
		}
	}
	return 0
}

// With returns the disks after those of changed were added, or replaced the ones of their
// names.
func (d Disks) With(changed Disks) Disks {
	list := slices.DeleteFunc(d.List(), func(disk Disk) bool { return changed.Size(disk.Name) > 0 })
	all, _ := NewDisks(append(list, changed.List()...))
	return all
}

// DiskRemover is an optional interface of a Client with the capability WithDisks whose disks may outlive their server: what deletes
// a server deletes them once it is gone.
type DiskRemover interface {
	// DeleteDisks deletes what is left of the disks of these names of a server, and of disks that were being added to it. A disk of
	// another name, which somebody detached from the server, stays. The server must be gone. It fails with Busy while a disk
	// cannot be deleted yet.
	DeleteDisks(ctx context.Context, serverID string, names []string) error
}
