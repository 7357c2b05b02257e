package fake

import "github.com/privatecloud/operator/internal/cloud"

// MaxDiskMiB bounds the size of a disk, in MiB.
const MaxDiskMiB = 1024 << 10

// checkDisks refuses disks that are smaller than those that a server has, or too large.
func checkDisks(op string, has, wanted cloud.Disks) error {
	for _, disk := range wanted.List() {
		switch {
		case disk.SizeMiB < has.Size(disk.Name):
			return failure(op, cloud.Rejected, "the disk %s cannot shrink", quote(disk.Name))
		case disk.SizeMiB > MaxDiskMiB:
			return failure(op, cloud.Rejected, "the disk %s is larger than %d MiB", quote(disk.Name), MaxDiskMiB)
		}
	}
	return nil
}
