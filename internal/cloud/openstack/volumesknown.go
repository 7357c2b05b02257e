package openstack

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	// volumesLifetime is for how long the sizes of volumes are used without another look, and volumesPause for how long the block
	// storage service is not asked again that did not answer.
	volumesLifetime = time.Minute
	volumesPause    = 30 * time.Second
	// fewServers is up to how many servers have their volumes read one by one instead of all of the project.
	fewServers = 3
	// maxTagLookups bounds the servers of a page whose volumes are looked up by their tags.
	maxTagLookups = 50
)

// knownVolume is what is known of a volume.
type knownVolume struct {
	// disk is the name of the disk of server that the volume is; empty if it is none.
	server, disk string
	mib          int
	at           time.Time
	// kept: it was recorded that the disk is to be kept.
	kept bool
	// tagUnread: it is not recorded whose disk the volume is, and its tag was not read. byTag: its tag says what it is.
	tagUnread, byTag bool
}

// identify sets the disks of servers that have volumes. They are unknown where the block storage service does not answer, or is not
// to be had any more.
func (c *volumeClient) identify(ctx context.Context, op string, servers []*server) {
	servers = slices.DeleteFunc(servers, func(s *server) bool { return len(s.Volumes) == 0 || s.Status == statusBuild || s.deleting() })
	if len(servers) == 0 {
		return
	}
	for _, s := range servers {
		s.disks = cloud.DisksUnknown
	}
	if usable, err := c.hasDisks(ctx, op); err != nil || !usable {
		return
	}
	if !c.knows(servers) && c.mayAsk() {
		c.note(c.refresh(ctx, op, servers))
	}
	lookups := 0
	for _, s := range servers {
		if c.tagUnread(s) && lookups < maxTagLookups && c.mayAsk() {
			lookups++
			c.note(c.askTags(ctx, op, s))
		}
		s.disks, s.root = c.disksOf(s)
	}
}

// knows reports whether all volumes of servers are known, and were read lately.
func (c *volumeClient) knows(servers []*server) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range servers {
		for _, a := range s.Volumes {
			if v, known := c.known[a.ID]; !known || time.Since(v.at) > volumesLifetime {
				return false
			}
		}
	}
	return true
}

func (c *volumeClient) mayAsk() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !time.Now().Before(c.askAt)
}

// note takes note of a failure to answer, after which the service is not asked for a while.
func (c *volumeClient) note(err *cloud.Error) {
	if err == nil || !cloud.Is(err, cloud.Unavailable, cloud.Throttled, cloud.Unreadable, cloud.NotFoundUnproven) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.askAt = time.Now().Add(volumesPause)
}

// refresh reads the volumes of a few servers, or all volumes of the project.
func (c *volumeClient) refresh(ctx context.Context, op string, servers []*server) *cloud.Error {
	if len(servers) > fewServers {
		all := map[string]knownVolume{}
		at := time.Now()
		for _, s := range servers {
			for _, a := range s.Volumes {
				all[a.ID] = knownVolume{at: at} // the service may have lost it
			}
		}
		err := walkPages(ctx, c.session, c.listing(op), url.Values{}, "volumes", volumeBounds, blockVolume.marker, func(page []blockVolume) {
			for _, v := range page {
				all[v.ID] = v.known(at)
			}
		})
		if err == nil {
			c.put(all, true)
		}
		return err
	}
	for _, s := range servers {
		at := time.Now()
		listed, err := c.listOf(ctx, op, s.ID)
		if err != nil {
			return err
		}
		found := map[string]knownVolume{}
		for _, a := range s.Volumes {
			found[a.ID] = knownVolume{at: at, tagUnread: s.hasVolumesOfCreate() && a.DeleteOnTermination}
		}
		for _, v := range listed {
			found[v.ID] = v.known(at)
		}
		c.put(found, false)
	}
	return nil
}

// known returns what is kept of a volume.
func (v blockVolume) known(at time.Time) knownVolume {
	k := knownVolume{mib: v.GiB * mibPerGiB, at: at, tagUnread: v.Metadata[volumeServerKey] == ""}
	if v.Metadata[volumeSelfKey] == v.ID || v.pending() {
		k.server, k.disk = v.Metadata[volumeServerKey], v.Metadata[volumeDiskKey]
		k.kept = !v.pending() && v.toKeep()
	}
	return k
}

// put keeps what was found of volumes; all is whether others do not exist. What a tag said of a volume still holds.
func (c *volumeClient) put(found map[string]knownVolume, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, v := range found {
		if before := c.known[id]; v.tagUnread && before.byTag {
			v.tagUnread, v.byTag, v.server, v.disk, v.mib = false, true, before.server, before.disk, cmp.Or(v.mib, before.mib)
			found[id] = v
		}
	}
	if all || len(c.known)+len(found) > volumeBounds.elements {
		c.known = map[string]knownVolume{}
	}
	maps.Copy(c.known, found)
}

// forget makes the volumes of a server be read again.
func (c *volumeClient) forget(s *server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range s.Volumes {
		if v, known := c.known[a.ID]; known {
			v.at = time.Time{}
			c.known[a.ID] = v
		}
	}
}

// tagUnread reports whether a server has a volume that may be a disk, although that is not recorded: compute made it with the server.
func (c *volumeClient) tagUnread(s *server) bool {
	if !s.hasVolumesOfCreate() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range s.Volumes {
		if a.DeleteOnTermination && c.known[a.ID].tagUnread {
			return true
		}
	}
	return false
}

// askTags finds which disks the volumes of a server are for which that is not recorded.
func (c *volumeClient) askTags(ctx context.Context, op string, s *server) *cloud.Error {
	tags, err := c.tagsOf(ctx, op, s.ID)
	if err != nil {
		return err
	}
	found := map[string]knownVolume{}
	for _, a := range s.Volumes {
		c.mu.Lock()
		v := c.known[a.ID]
		c.mu.Unlock()
		if !v.tagUnread || !a.DeleteOnTermination {
			continue
		}
		v.tagUnread, v.byTag, v.at = false, true, time.Now()
		if v.disk = diskOfTag(tags[a.ID]); v.disk != "" && v.mib == 0 {
			read, err := c.get(ctx, op, a.ID)
			if err != nil && err.Kind != cloud.NotFound {
				return err
			}
			v.mib = read.GiB * mibPerGiB
		}
		v.server = s.ID
		found[a.ID] = v
	}
	c.put(found, false)
	return nil
}

// disksOf returns the disks of a server, and the size in MiB of the volume that it boots from, as far as its volumes are known.
func (c *volumeClient) disksOf(s *server) (disks cloud.Disks, root int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []cloud.Disk
	for _, a := range s.Volumes {
		v, known := c.known[a.ID]
		switch {
		case !known, a.DeleteOnTermination && v.tagUnread && s.hasVolumesOfCreate():
			return cloud.DisksUnknown, 0
		case v.mib == 0:
		case v.disk == rootDisk && v.server == s.ID:
			root = v.mib
		case v.disk != "" && v.server == s.ID:
			list = append(list, cloud.Disk{Name: v.disk, SizeMiB: v.mib, Keep: v.kept && !a.DeleteOnTermination})
		}
	}
	disks, _ = cloud.NewDisks(list)
	return disks, root
}
