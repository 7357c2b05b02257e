package cloud

import (
	"cmp"
	"context"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The most disks of a server that are kept, and the longest name of the type of one, in characters.
const (
	MaxDisks    = 64
	MaxDiskType = 255
)

// Disk is a disk of a server that has a name.
type Disk struct {
	// Name is unique among the disks of the server: a DNS label.
	Name string
	// SizeMiB is the size in MiB.
	SizeMiB int
	// Type is the name of the type in the cloud. In a request, empty leaves it to the cloud; else it is empty where the
	// cloud does not show it.
	Type string
	// Keep is whether the cloud keeps the disk when the server is deleted, also by somebody else. A disk of a server that was not
	// built, or not completely, need not be kept.
	Keep bool
}

// RootDisk is the disk that a server boots from.
type RootDisk struct {
	// SizeMiB is the size in MiB. In a request, 0 leaves it to the cloud; else it is 0 where the cloud does not show it.
	SizeMiB int
	// Type is as in Disk.
	Type string
}

// Needs returns the capabilities without which no server can be created with the root disk.
func (d RootDisk) Needs() []Capability {
	switch {
	case d == RootDisk{}:
		return nil
	case d.Type != "":
		return []Capability{WithRootDisk, DiskTypes}
	}
	return []Capability{WithRootDisk}
}

// ValidDiskType reports whether a text can be the name of a type of disks: 1-255 characters, all of which can be printed.
func ValidDiskType(name string) bool {
	return name != "" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= MaxDiskType &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Disks are the disks of a server that have a name, in the order of their names. They are
// one text, which can be compared and takes little memory: name=MiB, name=MiB=type with
// the type escaped as in the query of a URL, or name=MiB=type=keep, separated by spaces.
type Disks string

// DisksUnknown are the disks of a server of which the cloud does not say at the moment which it has.
const DisksUnknown Disks = "?"

// keptDisk marks a disk that is kept among Disks.
const keptDisk = "keep"

// diskName is the form of names of disks.
var diskName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// NewDisks returns the disks, and whether each has a valid name that no other one has, a size
// above 0, and a valid type or none: those with another name or size are left out, and so are
// those beyond MaxDisks. Another type is left out, and its disk is kept.
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
		of := ""
		if ValidDiskType(d.Type) {
			of = url.QueryEscape(d.Type)
		} else if d.Type != "" {
			valid = false
		}
		switch {
		case d.Keep:
			text.WriteString("=" + of + "=" + keptDisk)
		case of != "":
			text.WriteString("=" + of)
		}
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
		name, rest, _ := strings.Cut(text, "=")
		size, rest, _ := strings.Cut(rest, "=")
		escaped, kept, _ := strings.Cut(rest, "=")
		mib, _ := strconv.Atoi(size)
		of, _ := url.QueryUnescape(escaped)
		list = append(list, Disk{Name: name, SizeMiB: mib, Type: of, Keep: kept == keptDisk})
	}
	return list
}

// named returns the disk of this name, the zero value if there is none.
func (d Disks) named(name string) Disk {
	for _, disk := range d.List() {
		if disk.Name == name {
			return disk
		}
	}
	return Disk{}
}

// Size returns the size in MiB of the disk of this name, 0 if there is none.
func (d Disks) Size(name string) int { return d.named(name).SizeMiB }

// Type returns the type of the disk of this name, empty if there is none or it is not known.
func (d Disks) Type(name string) string { return d.named(name).Type }

// Kept reports whether the cloud keeps the disk of this name when the server is deleted.
func (d Disks) Kept(name string) bool { return d.named(name).Keep }

// KeptNames returns the names of the disks that the cloud keeps when the server is deleted.
func (d Disks) KeptNames() (names []string) {
	for _, disk := range d.List() {
		if disk.Keep {
			names = append(names, disk.Name)
		}
	}
	return names
}

// Needs returns the capabilities without which no server can be created with the disk.
func (d Disk) Needs() []Capability {
	needs := []Capability{WithDisks}
	if d.Type != "" {
		needs = append(needs, DiskTypes)
	}
	if d.Keep {
		needs = append(needs, KeepDisks)
	}
	return needs
}

// Needs returns the capabilities without which no server can be created with the disks.
func (d Disks) Needs() (needs []Capability) {
	for _, disk := range d.List() {
		for _, need := range disk.Needs() {
			if !slices.Contains(needs, need) {
				needs = append(needs, need)
			}
		}
	}
	return needs
}

// Keeping returns the disks with Keep set to keep for the one of this name.
func (d Disks) Keeping(name string, keep bool) Disks {
	list := d.List()
	for i := range list {
		if list[i].Name == name {
			list[i].Keep = keep
		}
	}
	all, _ := NewDisks(list)
	return all
}

// Reverted returns the disks of a server that has the disks now and is reverted to d. A revert does not change which disks are kept, and
// does not remove kept disks.
func (d Disks) Reverted(now Disks) Disks {
	list := d.List()
	for i := range list {
		if now.Size(list[i].Name) > 0 {
			list[i].Keep = now.Kept(list[i].Name)
		}
	}
	for _, disk := range now.List() {
		if disk.Keep && d.Size(disk.Name) == 0 {
			list = append(list, disk)
		}
	}
	all, _ := NewDisks(list)
	return all
}

// With returns the disks after those of changed were added, or gave their size to the ones of
// their names, which are otherwise as they were.
func (d Disks) With(changed Disks) Disks {
	list := d.List()
	for _, disk := range changed.List() {
		if i := slices.IndexFunc(list, func(has Disk) bool { return has.Name == disk.Name }); i >= 0 {
			list[i].SizeMiB = disk.SizeMiB
		} else {
			list = append(list, disk)
		}
	}
	all, _ := NewDisks(list)
	return all
}

// DiskRemover is an optional interface of a Client with the capability WithDisks whose disks may outlive their server: what deletes
// a server deletes them once it is gone.
type DiskRemover interface {
	// DeleteDisks deletes what is left of the disks that a server had when its deletion began, and of those that were being added to
	// it. A disk that somebody detached before stays, and so does one that the cloud refuses to delete. The server must be gone. It
	// fails with Busy while a disk cannot be deleted yet.
	DeleteDisks(ctx context.Context, serverID string) error
}
