package openstack

import (
	"cmp"
	"context"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

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
	if err := c.checkKept(ctx, op, req.Disks); err != nil {
		return nil, err
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

// diskOfTag returns the name of the disk that a tag of a volume is; empty if it cannot be one.
func diskOfTag(tag string) string {
	if _, valid := cloud.NewDisks([]cloud.Disk{{Name: tag, SizeMiB: 1}}); !valid && tag != rootDisk {
		return ""
	}
	return tag
}

// diskSet are the volumes of a server that are its disks, or are to be.
type diskSet struct {
	// attached are those that the server has by the names of the disks, and pending those that were made for it and that it does not
	// have yet.
	attached map[string]blockVolume
	pending  map[string][]blockVolume
	// unrecorded are attached ones of which it is not recorded yet which disk they are.
	unrecorded map[string]bool
	// marked are the ids of those that the server had when an earlier deletion of it began, and does not have any more.
	marked []string
}

// diskSetOf reads the volumes of a server. Volumes that compute made with it are found by their tags.
func (c *volumeClient) diskSetOf(ctx context.Context, op string, s *server) (diskSet, *cloud.Error) {
	set := diskSet{attached: map[string]blockVolume{}, pending: map[string][]blockVolume{}, unrecorded: map[string]bool{}}
	listed, err := c.listOf(ctx, op, s.ID)
	if err != nil {
		return diskSet{}, err
	}
	attached, found := map[string]bool{}, map[string]bool{}
	for _, a := range s.Volumes {
		attached[a.ID] = true
	}
	for _, v := range listed {
		disk := v.diskOf(s.ID)
		switch {
		case disk == "":
		case attached[v.ID] || v.attachedTo(s.ID):
			if _, twice := set.attached[disk]; !twice {
				found[v.ID], set.attached[disk], set.unrecorded[v.ID] = true, v, v.pending()
			}
		case v.pending():
			set.pending[disk] = append(set.pending[disk], v)
		case v.Metadata[volumeDeletedKey] == s.ID:
			set.marked = append(set.marked, v.ID)
		}
	}
	if !s.hasVolumesOfCreate() {
		return set, nil
	}
	unknown := slices.DeleteFunc(slices.Clone(s.Volumes), func(a attachedVolume) bool { return !a.DeleteOnTermination || found[a.ID] })
	return set, c.addTagged(ctx, op, s, set, unknown)
}

// addTagged adds to the volumes of a server those among some that compute made with it, by their tags.
func (c *volumeClient) addTagged(ctx context.Context, op string, s *server, set diskSet, unknown []attachedVolume) *cloud.Error {
	if len(unknown) == 0 {
		return nil
	}
	tags, err := c.tagsOf(ctx, op, s.ID)
	if err != nil {
		return err
	}
	for _, a := range unknown {
		disk := diskOfTag(tags[a.ID])
		if disk == "" {
			continue
		}
		switch v, err := c.get(ctx, op, a.ID); {
		case err != nil && err.Kind == cloud.NotFound: // compute lists it, and the service has lost it
		case err != nil:
			return err
		case v.Metadata[volumeServerKey] == "":
			set.attached[disk], set.unrecorded[a.ID] = v, true
		}
	}
	return nil
}

// zone returns the availability zone of the volumes of the server; empty if it has none.
func (d diskSet) zone() string {
	for _, v := range d.attached {
		return v.Zone
	}
	return ""
}

// check refuses sizes of disks that cannot be made of what the server has.
func (d diskSet) check(op string, s *server, disks []cloud.Disk) *cloud.Error {
	for _, want := range disks {
		if err := checkDisk(op, want); err != nil {
			return err
		}
		v, attached := d.attached[want.Name]
		switch {
		case want.SizeMiB < v.GiB*mibPerGiB:
			return refuse(op, cloud.Rejected, "%s has %d GiB, and disks cannot shrink", diskText(want.Name), v.GiB)
		case want.Name == rootDisk && !attached:
			return refuse(op, cloud.Rejected, "the root disk is that of flavor %s and no volume that the operator made: change the size of the VM, or create it anew with rootDisk",
				quote(s.Flavor.Name))
		}
	}
	return nil
}

// change begins to add disks to a server, and to enlarge those that are smaller. It reports whether something is to be done until
// the server has them, which finish does. A refusal of one disk counts once nothing is to be done for the others.
func (c *volumeClient) change(ctx context.Context, op string, s *server, disks []cloud.Disk) (begun bool, err *cloud.Error) {
	set, err := c.diskSetOf(ctx, op, s)
	if err != nil {
		return false, err
	}
	if err := set.check(op, s, disks); err != nil {
		return false, err
	}
	if err := c.checkNew(ctx, op, set, disks); err != nil {
		return false, err
	}
	c.forget(s)
	if err := c.removeUnwanted(ctx, op, set, disks); err != nil {
		return false, err
	}
	var refused *cloud.Error
	for _, want := range disks {
		switch needed, err := c.begin(ctx, op, s, set, want); {
		case err != nil:
			refused = cmp.Or(refused, err)
		case needed:
			begun = true
		}
	}
	if begun {
		return true, nil
	}
	return false, refused
}

// checkNew refuses disks that a server does not have yet, of a type that does not exist, or where the cloud cannot keep them as they say.
func (c *volumeClient) checkNew(ctx context.Context, op string, set diskSet, disks []cloud.Disk) *cloud.Error {
	var types []string
	for _, want := range disks {
		if _, attached := set.attached[want.Name]; attached {
			continue
		}
		if want.Keep {
			if err := c.requireKeep(ctx, op); err != nil {
				return err
			}
		}
		if want.Type != "" {
			types = append(types, want.Type)
		}
	}
	return c.checkTypes(ctx, op, types)
}

// begin begins to add or to enlarge a disk. It reports whether something is to be done until the server has it.
func (c *volumeClient) begin(ctx context.Context, op string, s *server, set diskSet, want cloud.Disk) (needed bool, err *cloud.Error) {
	v, attached := set.attached[want.Name]
	switch {
	case !attached && len(set.pending[want.Name]) > 0, attached && v.Status == volumeExtending:
		return true, nil
	case !attached:
		return true, c.create(ctx, op, s, want, set.zone())
	case v.GiB*mibPerGiB == want.SizeMiB:
		return set.unrecorded[v.ID], nil
	case v.Status == volumeErrorExtends:
		return false, notEnlarged(op, want.Name, v)
	case v.Status != volumeInUse:
		return false, refuse(op, cloud.Busy, "the volume of %s is in the status %s", diskText(want.Name), quote(v.Status))
	}
	return true, c.extend(ctx, op, v, want.SizeMiB/mibPerGiB, want.Name)
}

// removeUnwanted deletes volumes that were made for a server, that it does not have yet, and that are not as the disks say.
func (c *volumeClient) removeUnwanted(ctx context.Context, op string, set diskSet, disks []cloud.Disk) *cloud.Error {
	for name, volumes := range set.pending {
		at := slices.IndexFunc(disks, func(d cloud.Disk) bool { return d.Name == name })
		kept := volumes[:0]
		for _, v := range volumes {
			wanted := at >= 0 && v.GiB*mibPerGiB == disks[at].SizeMiB && (disks[at].Type == "" || disks[at].Type == v.Type)
			if wanted || v.Status != volumeAvailable {
				kept = append(kept, v)
				continue
			}
			if err := c.remove(ctx, op, v.ID); err != nil {
				return err
			}
		}
		set.pending[name] = kept
	}
	return nil
}

func notEnlarged(op, disk string, v blockVolume) *cloud.Error {
	return refuse(op, cloud.Failed, "the cloud could not enlarge %s: volume %s has the status %s, which an administrator of the cloud resets", diskText(disk), v.ID, v.Status)
}

// finish does what is left until the volumes that were made for a server are its disks: it attaches them, and records which disk
// they are. It reports whether that is done. A failure is why it cannot be done for one, once it is done for the others.
func (c *volumeClient) finish(ctx context.Context, op string, s *server) (done bool, failure, err *cloud.Error) {
	set, err := c.diskSetOf(ctx, op, s)
	if err != nil {
		return false, nil, err
	}
	c.forget(s)
	done = true
	for disk, v := range set.attached {
		switch {
		case v.Status == volumeErrorExtends:
			failure = notEnlarged(op, disk, v)
		case v.Status == volumeExtending, slices.Contains(transient, v.Status):
			done = false
		case set.unrecorded[v.ID]:
			err := c.record(ctx, op, s, disk, v)
			if err == nil && s.keeps(disk) {
				err = c.keep(ctx, op, s, v, true)
			}
			if err != nil && !cloud.Is(err, cloud.Rejected, cloud.Forbidden) { // the tag still says which disk it is
				return false, nil, err
			}
		}
	}
	for disk, volumes := range set.pending {
		_, has := set.attached[disk]
		for _, v := range volumes {
			waits, err := c.add(ctx, op, s, disk, v, has)
			switch {
			case err != nil && cloud.Is(err, cloud.Failed, cloud.Rejected, cloud.Forbidden):
				failure = refuse(op, cloud.Failed, "%s", err.Detail)
			case err != nil:
				return false, nil, err
			}
			has, done = has || waits, done && !waits
		}
	}
	if !done {
		return false, nil, nil
	}
	return failure == nil, failure, nil
}

// add does the next step until a volume that was made for a server is its disk, or deletes it if the server has the disk. It reports
// whether another step follows.
func (c *volumeClient) add(ctx context.Context, op string, s *server, disk string, v blockVolume, has bool) (waits bool, err *cloud.Error) {
	switch {
	case v.Status == volumeAvailable && has: // a create whose answer was lost made it
		return false, c.remove(ctx, op, v.ID)
	case v.Status == volumeError:
		if err := c.remove(ctx, op, v.ID); err != nil {
			return false, err
		}
		return false, refuse(op, cloud.Failed, "the cloud could not make the volume of %s", diskText(disk))
	case v.Status == volumeAvailable && c.wasAccepted(v.ID):
		return false, refuse(op, cloud.Failed, "the cloud accepted %s, and could not attach it to the server", diskText(disk))
	case v.Status == volumeAvailable:
		if err := c.attach(ctx, op, s.ID, v); err != nil {
			return false, explainVolume(err, disk)
		}
		c.noteAccepted(v.ID)
		return true, nil
	}
	return !has && slices.Contains(transient, v.Status), nil
}

// noteAccepted takes note that compute accepted a volume.
func (c *volumeClient) noteAccepted(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.accepted) >= maxLookups {
		clear(c.accepted)
	}
	c.accepted[id] = true
}

// wasAccepted reports whether compute accepted a volume, and forgets that.
func (c *volumeClient) wasAccepted(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	accepted := c.accepted[id]
	delete(c.accepted, id)
	return accepted
}
