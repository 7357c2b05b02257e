package fake

import (
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// MaxDiskMiB bounds the size of a disk, in MiB.
	MaxDiskMiB = 1024 << 10
	// TemplateDiskMiB is the size of the root disk of each template, in MiB.
	TemplateDiskMiB = 10 << 10
	// NoDiskType is the type of disks that no cloud has. Every other one exists.
	NoDiskType = "nowhere"
)

// checkDisks refuses disks of a new server that are too large, or of a type that does not exist.
func checkDisks(op string, req cloud.CreateServer) error {
	for _, disk := range req.Disks.List() {
		if err := checkDisk(op, "", disk); err != nil {
			return err
		}
	}
	if size := req.RootDisk.SizeMiB; size != 0 && size < TemplateDiskMiB {
		return failure(op, cloud.Rejected, "the root disk is smaller than that of the template, which has %d MiB", TemplateDiskMiB)
	}
	if err := checkDiskType(op, req.RootDisk.Type); err != nil {
		return err
	}
	return checkRootDisk(op, 0, req.RootDisk.SizeMiB)
}

// checkRootDisk refuses a root disk that is smaller than the one that the server has, or too large.
func checkRootDisk(op string, has, size int) error {
	switch {
	case size < has:
		return failure(op, cloud.Rejected, "the root disk cannot shrink")
	case size > MaxDiskMiB:
		return failure(op, cloud.Rejected, "the root disk is larger than %d MiB", MaxDiskMiB)
	}
	return nil
}

func checkDiskType(op, name string) error {
	if name == NoDiskType {
		return failure(op, cloud.Rejected, "there is no type of disks %s", quote(name))
	}
	return nil
}

// checkKeep refuses to keep a disk that the server does not have.
func checkKeep(op string, has cloud.Disks, name string) error {
	if has.Size(name) == 0 {
		return failure(op, cloud.Rejected, "the server has no disk %s", quote(name))
	}
	return nil
}

// KeptDisks returns the names of the disks that were kept when a server was deleted.
func (c *Cloud) KeptDisks(serverID string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.servers.keptDisks[serverID])
}

// rootDiskOf returns the root disk of a new server, the zero value on a cloud that does not show it.
func rootDiskOf(req cloud.CreateServer, caps cloud.Capabilities) cloud.RootDisk {
	root := req.RootDisk
	if root.SizeMiB == 0 && caps.Has(cloud.WithRootDisk) {
		root.SizeMiB = TemplateDiskMiB
	}
	return root
}

// checkDisk refuses a disk that is smaller than the one that the server has, or too large, and a new one of a type that
// does not exist.
func checkDisk(op string, has cloud.Disks, disk cloud.Disk) error {
	switch {
	case has.Size(disk.Name) == 0 && disk.Type == NoDiskType:
		return checkDiskType(op, disk.Type)
	case disk.SizeMiB < has.Size(disk.Name):
		return failure(op, cloud.Rejected, "the disk %s cannot shrink", quote(disk.Name))
	case disk.SizeMiB > MaxDiskMiB:
		return failure(op, cloud.Rejected, "the disk %s is larger than %d MiB", quote(disk.Name), MaxDiskMiB)
	}
	return nil
}
