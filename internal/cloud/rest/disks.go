package rest

import (
	"cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// wireDisk is a disk as requests have it: its size is in GiB, 0 if a change leaves it as it is.
type wireDisk struct {
	Name string `json:"name"`
	Size int    `json:"size,omitempty"`
	Type string `json:"type,omitempty"`
	// Keep is nil if a change leaves it as it is.
	Keep *bool `json:"keep,omitempty"`
}

// wireRootDisk is the root disk as requests have it: its size is in GiB.
type wireRootDisk struct {
	Size int    `json:"size,omitempty"`
	Type string `json:"type,omitempty"`
}

func encodeRootDisk(op string, root cloud.RootDisk) (*wireRootDisk, *cloud.Error) {
	if root == (cloud.RootDisk{}) {
		return nil, nil
	}
	size, err := gib(op, root.SizeMiB)
	return &wireRootDisk{Size: size, Type: root.Type}, err
}

func wireDisks(op string, disks cloud.Disks) ([]wireDisk, *cloud.Error) {
	var wire []wireDisk
	for _, disk := range disks.List() {
		encoded, err := encodeDisk(op, disk)
		if err != nil {
			return nil, err
		}
		wire = append(wire, encoded)
	}
	return wire, nil
}

func encodeDisk(op string, disk cloud.Disk) (wireDisk, *cloud.Error) {
	size, err := gib(op, disk.SizeMiB)
	wire := wireDisk{Name: disk.Name, Size: size, Type: disk.Type}
	if disk.Keep {
		wire.Keep = &disk.Keep
	}
	return wire, err
}

// addDisk adds to an update what a change says of a disk, of which another one may say something, too.
func (w *wireUpdate) addDisk(disk wireDisk) {
	for i, has := range w.Disks {
		if has.Name == disk.Name {
			w.Disks[i] = wireDisk{Name: disk.Name, Size: max(has.Size, disk.Size), Type: cmp.Or(has.Type, disk.Type), Keep: cmp.Or(has.Keep, disk.Keep)}
			return
		}
	}
	w.Disks = append(w.Disks, disk)
}

// disks reads the disks of a server. Those without a name are those of its template.
func (r *reader) disks(value []byte) cloud.Disks {
	if isNull(value) {
		return ""
	}
	var list []cloud.Disk
	if !values(value, func(value []byte) {
		if disk := r.disk(value); disk.Name != "" {
			list = append(list, disk)
		}
	}) {
		r.ignored.add("disks", "not an array")
	}
	disks, valid := cloud.NewDisks(list)
	if !valid {
		r.ignored.add("disks", "a disk without a size, or with a name that is no DNS label or not the only one")
	}
	return disks
}

func (r *reader) disk(value []byte) (d cloud.Disk) {
	fields(value, func(field, value []byte) {
		switch string(field) {
		case "name":
			d.Name = addressText(value)
		case "size":
			d.SizeMiB = r.memory("disks", value)
		case "type":
			d.Type = r.diskType("disks", value)
		case "keep":
			d.Keep = string(value) == "true"
		}
	})
	return d
}

// rootDisk reads the root disk of a server.
func (r *reader) rootDisk(value []byte) (d cloud.RootDisk) {
	if isNull(value) {
		return d
	}
	if !fields(value, func(field, value []byte) {
		switch string(field) {
		case "size":
			d.SizeMiB = r.memory("rootDisk", value)
		case "type":
			d.Type = r.diskType("rootDisk", value)
		}
	}) {
		r.ignored.add("rootDisk", "not an object")
	}
	return d
}

// diskType reads the name of a type of disks.
func (r *reader) diskType(field string, value []byte) string {
	name := r.text(field, value)
	if name != "" && !cloud.ValidDiskType(name) {
		r.ignored.add(field, "a type that is no name")
		return ""
	}
	return name
}
