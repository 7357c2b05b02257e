package fake

import "github.com/privatecloud/operator/internal/cloud"

// MaxDiskMiB bounds the size of a disk, in MiB.
const MaxDiskMiB = 1024 << 10

// checkDisks refuses disks of a new server that are too large.
func checkDisks(op string, disks cloud.Disks) error {
	for _, disk := range disks.List() {
		if err := checkDisk(op, "", disk); err != nil {
			return err
		}
	}
	return nil
}

// checkDisk refuses a disk that is smaller than the one that the server has, or too large.
func checkDisk(op string, has cloud.Disks, disk cloud.Disk) error {
	switch {
	case disk.SizeMiB < has.Size(disk.Name):
		return failure(op, cloud.Rejected, "the disk %s cannot shrink", quote(disk.Name))
	case disk.SizeMiB > MaxDiskMiB:
		return failure(op, cloud.Rejected, "the disk %s is larger than %d MiB", quote(disk.Name), MaxDiskMiB)
	}
	return nil
}
