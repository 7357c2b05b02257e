package openstack

import (
	"cmp"
	"context"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/utils"

	"github.com/privatecloud/operator/internal/cloud"
)

// rootDisk is the name by which the volume that a server boots from is known. No other disk can have it.
const rootDisk = "_root"

// forNew returns the disks of a new server in the form of a create, which compute makes with it; nil if the server has only the disk
// of its flavor. A create that has such a list must have the disk of the image in it.
func (c *volumeClient) forNew(ctx context.Context, op string, req cloud.CreateServer, imageID string, least imageNeeds, chosen flavor) ([]servers.BlockDevice, *cloud.Error) {
	if req.Disks == "" && req.RootDisk == (cloud.RootDisk{}) {
		return nil, nil
	}
	if usable, err := c.hasDisks(ctx, op); err != nil || !usable {
		lacking := "disks"
		if req.Disks == "" {
			lacking = "rootDisk"
		}
		return nil, cmp.Or(err, refuse(op, cloud.Unsupported, "this cloud lacks %s", lacking))
	}
	root := servers.BlockDevice{SourceType: servers.SourceImage, DestinationType: servers.DestinationLocal, UUID: imageID, BootIndex: 0, DeleteOnTermination: true}
	if req.RootDisk != (cloud.RootDisk{}) {
		gib := req.RootDisk.SizeMiB / mibPerGiB
		if req.RootDisk.SizeMiB == 0 {
			gib = max(least.disk, chosen.Disk, 1)
		}
		if err := checkDisk(op, cloud.Disk{Name: rootDisk, SizeMiB: req.RootDisk.SizeMiB}); err != nil {
			return nil, err
		}
		if gib < least.disk {
			return nil, refuse(op, cloud.Rejected, "a root disk of %d GiB is too small for %s", gib, least)
		}
		root.DestinationType, root.VolumeSize, root.VolumeType, root.Tag = servers.DestinationVolume, gib, req.RootDisk.Type, rootDisk
	}
	devices := []servers.BlockDevice{root}
	for _, disk := range req.Disks.List() {
		if err := checkDisk(op, disk); err != nil {
			return nil, err
		}
		if len(disk.Name) > maxDeviceTag {
			return nil, refuse(op, cloud.Rejected, "the name of disk %s has more than %d characters, which this cloud takes for a disk of a new server",
				quote(disk.Name), maxDeviceTag)
		}
		devices = append(devices, servers.BlockDevice{
			SourceType: servers.SourceBlank, DestinationType: servers.DestinationVolume, VolumeSize: disk.SizeMiB / mibPerGiB, VolumeType: disk.Type,
			BootIndex: -1, DeleteOnTermination: true, Tag: disk.Name,
		})
	}
	return devices, nil
}

// diskText names a disk in messages.
func diskText(name string) string {
	if name == rootDisk {
		return "the root disk"
	}
	return "disk " + quote(name)
}

// checkDisk refuses a disk that the service cannot make.
func checkDisk(op string, disk cloud.Disk) *cloud.Error {
	switch {
	case disk.SizeMiB%mibPerGiB != 0:
		return refuse(op, cloud.Rejected, "the size of %s is no whole number of GiB", diskText(disk.Name))
	case disk.SizeMiB/mibPerGiB > maxVolumeGiB:
		return refuse(op, cloud.Rejected, "%s is larger than %d GiB", diskText(disk.Name), maxVolumeGiB)
	}
	return nil
}

// diskSet are the volumes of a server that are its disks, or are to be.
type diskSet struct {
	// attached are those that the server has by the names of the disks, and pending those that were made for it and that it does not
	// have yet.
	attached map[string]blockVolume
	pending  map[string][]blockVolume
	// unrecorded are attached ones of which it is not recorded yet which disk they are.
	unrecorded map[string]bool
}

// diskSetOf reads the volumes of a server. Volumes that compute made with it are found by their tags.
func (c *volumeClient) diskSetOf(ctx context.Context, op string, s *server) (diskSet, *cloud.Error) {
	set := diskSet{attached: map[string]blockVolume{}, pending: map[string][]blockVolume{}, unrecorded: map[string]bool{}}
	listed, err := c.listOf(ctx, op, s.ID)
	if err != nil {
		return diskSet{}, err
	}
	attached := map[string]bool{}
	for _, a := range s.Volumes {
		attached[a.ID] = true
	}
	found := map[string]bool{}
	for _, v := range listed {
		disk := v.diskOf(s.ID)
		switch {
		case disk == "":
		case attached[v.ID] || v.attachedTo(s.ID):
			found[v.ID], set.attached[disk], set.unrecorded[v.ID] = true, v, v.pending()
		case v.pending():
			set.pending[disk] = append(set.pending[disk], v)
		}
	}
	if !slices.ContainsFunc(s.Volumes, func(a attachedVolume) bool { return a.Goes && !found[a.ID] }) {
		return set, nil
	}
	tags, err := c.tagsOf(ctx, op, s.ID)
	if err != nil {
		return diskSet{}, err
	}
	for _, a := range s.Volumes {
		if !a.Goes || found[a.ID] || tags[a.ID] == "" {
			continue
		}
		v, err := c.get(ctx, op, a.ID)
		if err != nil {
			return diskSet{}, err
		}
		if v.Metadata[volumeServerKey] == "" {
			set.attached[tags[a.ID]], set.unrecorded[a.ID] = v, true
		}
	}
	return set, nil
}

// change begins to add disks to a server, and to enlarge those that are smaller. It reports whether something is to be done until
// the server has them, which finish does.
func (c *volumeClient) change(ctx context.Context, op string, s *server, disks []cloud.Disk) (begun bool, err *cloud.Error) {
	set, err := c.diskSetOf(ctx, op, s)
	if err != nil {
		return false, err
	}
	for _, want := range disks {
		if err := checkDisk(op, want); err != nil {
			return false, err
		}
		v, attached := set.attached[want.Name]
		switch {
		case want.SizeMiB < v.GiB*mibPerGiB:
			return false, refuse(op, cloud.Rejected, "%s has %d GiB, and disks cannot shrink", diskText(want.Name), v.GiB)
		case want.Name == rootDisk && !attached:
			return false, refuse(op, cloud.Rejected, "the root disk is that of flavor %s and no volume that the operator made: change the size of the VM, or create it anew with rootDisk",
				quote(s.Flavor.Name))
		}
	}
	c.forget(s)
	for _, want := range disks {
		v, attached := set.attached[want.Name]
		switch {
		case attached && v.GiB*mibPerGiB == want.SizeMiB:
			begun = begun || v.Status == volumeExtending || set.unrecorded[v.ID]
			continue
		case attached && v.Status != volumeExtending:
			err = c.extend(ctx, op, v, want.SizeMiB/mibPerGiB, want.Name)
		case !attached && len(set.pending[want.Name]) == 0:
			err = c.create(ctx, op, s, want)
		}
		if err != nil {
			return false, err
		}
		begun = true
	}
	return begun, nil
}

// finish does what is left until the volumes that were made for a server are its disks: it attaches them, and records which disk
// they are. It reports whether that is done. A failure is why it cannot be done.
func (c *volumeClient) finish(ctx context.Context, op string, s *server) (done bool, failure, err *cloud.Error) {
	set, err := c.diskSetOf(ctx, op, s)
	if err != nil {
		return false, nil, err
	}
	c.forget(s)
	done = true
	for disk, v := range set.attached {
		switch v.Status {
		case volumeInUse:
		case volumeErrorExtends:
			return false, refuse(op, cloud.Failed, "the cloud could not enlarge %s: its volume has the status %s, which an administrator of the cloud resets",
				diskText(disk), v.Status), nil
		default:
			done = false
			continue
		}
		if set.unrecorded[v.ID] {
			if err := c.record(ctx, op, s, v.ID, disk, v.Name == volumeName(s.Name, disk)); err != nil {
				return false, nil, err
			}
		}
	}
	for disk, volumes := range set.pending {
		_, has := set.attached[disk]
		for _, v := range volumes {
			switch {
			case has && v.Status != volumeAvailable: // a create whose answer was lost made another one
			case has:
				err = c.remove(ctx, op, v.ID)
			case v.Status == volumeError:
				if err := c.remove(ctx, op, v.ID); err != nil {
					return false, nil, err
				}
				return false, refuse(op, cloud.Failed, "the cloud could not make the volume of disk %s", quote(disk)), nil
			case v.Status == volumeAvailable:
				done, has = false, true
				err = explainVolume(c.attach(ctx, op, s.ID, v.ID), disk)
			default:
				done, has = false, true
			}
			switch {
			case err == nil:
			case cloud.Is(err, cloud.Rejected, cloud.Forbidden):
				return false, refuse(op, cloud.Failed, "%s", err.Detail), nil
			default:
				return false, nil, err
			}
		}
	}
	return done, nil, nil
}

var _ cloud.DiskRemover = (*Client)(nil)

// DeleteDisks deletes the volumes of a server that is gone which compute left: those of disks that were added while their server was
// deleted, and those that it could not delete.
func (c *Client) DeleteDisks(ctx context.Context, serverID string, names []string) error {
	op := "delete the disks of server " + quote(serverID)
	ctx, end, failed := c.session.beginAbout(ctx, op, serverID)
	if failed != nil {
		return failed
	}
	defer end()
	if usable, err := c.volumes.hasDisks(ctx, op); err != nil || !usable {
		return asError(err)
	}
	listed, err := c.volumes.listOf(ctx, op, serverID)
	if err != nil {
		return err
	}
	made, err := c.volumes.unrecordedOf(ctx, op, serverID)
	if err != nil {
		return err
	}
	for _, v := range append(listed, made...) {
		disk := v.diskOf(serverID)
		recorded := disk != "" && !v.pending()
		if recorded && disk != rootDisk && !slices.Contains(names, disk) || disk == "" && !v.madeWith(serverID) {
			continue
		}
		if err := c.volumes.removeLeft(ctx, op, serverID, v); err != nil {
			return err
		}
	}
	return nil
}

// removeLeft deletes a volume whose server is gone, unless somebody has attached it to another one.
func (c *volumeClient) removeLeft(ctx context.Context, op, serverID string, v blockVolume) *cloud.Error {
	switch {
	case v.Status == volumeDeleting, len(v.Attachments) > 0 && !v.attachedTo(serverID):
		return nil
	case v.Status == volumeAvailable, v.Status == volumeError, v.Status == volumeErrorDeleting:
		return c.remove(ctx, op, v.ID)
	}
	return refuse(op, cloud.Busy, "volume %s is %s: it is deleted once it is available", v.ID, quote(v.Status))
}

// hasDisks reports whether servers can have disks, as far as it is known: the cloud has a block storage service, which accepts
// the account.
func (c *volumeClient) hasDisks(ctx context.Context, op string) (bool, *cloud.Error) {
	offered, err := c.offered(ctx, op)
	c.mu.Lock()
	defer c.mu.Unlock()
	return offered && !c.unusable, err
}

// offered reports whether the cloud has a block storage service, and a compute service that tells the disks of servers.
func (c *volumeClient) offered(ctx context.Context, op string) (bool, *cloud.Error) {
	got, err := c.session.auth.grant(ctx, op, nil)
	if err != nil {
		return false, err
	}
	_, minor, failed := utils.ParseMicroversion(got.microversion)
	return failed == nil && minor >= disksMicroversion && got.services[volume] != "", nil
}
