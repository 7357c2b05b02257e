package openstack

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/utils"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
)

// The keys of the metadata of volumes.
const (
	// volumeServerKey has the id of the server whose disk the volume is, and volumeDiskKey the name of the disk.
	volumeServerKey = "privatecloud:server"
	volumeDiskKey   = "privatecloud:disk"
	// volumeSelfKey has the id of the volume itself once it is attached. A copy, such as a backup that was restored, has that of the
	// original, and is no disk.
	volumeSelfKey = "privatecloud:volume"
	// volumeDeletedKey has the id of the server with which the volume is being deleted.
	volumeDeletedKey = "privatecloud:deleted-with"
	// volumeKeptKey is volumeKept on a volume that is to be kept when its server is deleted. Compute keeps each volume that is not
	// deleted with its server; one without this mark was attached by somebody else, which says nothing about the disk.
	volumeKeptKey = "privatecloud:kept"
	volumeKept    = "true"
)

// The statuses of volumes that decide something.
const (
	volumeAvailable    = "available"
	volumeInUse        = "in-use"
	volumeExtending    = "extending"
	volumeError        = "error"
	volumeErrorExtends = "error_extending"
)

var (
	// transient are the statuses that a volume leaves by itself while it is made or attached.
	transient = []string{"creating", "downloading", "reserved", "attaching"}
	// deletable are the statuses in which a volume can be deleted.
	deletable = []string{volumeAvailable, volumeError, volumeErrorExtends, "error_restoring", "error_managing"}
)

const (
	// extendMicroversion of the block storage service extends volumes that are attached.
	extendMicroversion = "3.42"
	// disksMicroversion is the least one of the compute service that tells the name of an attached volume, and deletes one with its
	// server that was attached later.
	disksMicroversion = 79
	// keepMicroversion is the least one that changes whether a volume is deleted with its server.
	keepMicroversion = 85
	mibPerGiB        = 1024
	// maxVolumeGiB bounds the size of a disk.
	maxVolumeGiB = 64 << 10
	// maxDeviceTag bounds the name by which compute knows a disk of a create.
	maxDeviceTag = 60
)

// volumeBounds bound a listing of all volumes of the project, of which little is kept.
var volumeBounds = bounds{elements: 100_000, bytes: 512 << 20}

// volumeClient makes, attaches and enlarges the volumes that are disks of servers, and deletes those that outlive them.
//
// Compute makes the volumes of a new server itself, with the name of the disk as tag. GetOperation then records in the metadata of the
// volume which disk it is, so that one listing tells the disks of all servers. Volumes of disks that are added are made here:
// their metadata names server and disk from the beginning, so that a create whose answer was lost is found, and never sent again.
type volumeClient struct {
	session *session

	mu sync.Mutex
	// known are volumes by id.
	known map[string]knownVolume
	// askAt is when the service may be asked again.
	askAt time.Time
	// unusable is whether the service refused the account.
	unusable bool
	// keeps is whether compute can change whether a volume is deleted with its server.
	keeps bool
	// accepted are the volumes that compute accepted to attach, by id.
	accepted map[string]bool
}

func newVolumeClient(s *session) *volumeClient {
	return &volumeClient{session: s, known: map[string]knownVolume{}, accepted: map[string]bool{}}
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
	offered := failed == nil && minor >= disksMicroversion && got.services[volume] != ""
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keeps = offered && minor >= keepMicroversion
	return offered, nil
}

// blockVolume is a volume in the JSON of the block storage service.
type blockVolume struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
	GiB      int               `json:"size"`
	Type     string            `json:"volume_type"`
	Zone     string            `json:"availability_zone"`
	Metadata map[string]string `json:"metadata"`
	// Attachments are the servers that have the volume.
	Attachments []struct {
		ServerID string `json:"server_id"`
	} `json:"attachments"`
}

func (v blockVolume) marker() string { return idOrNone(v.ID) }

// diskOf returns the name of the disk of a server that the volume is, or is to be; empty if it is none.
func (v blockVolume) diskOf(serverID string) string {
	if v.Metadata[volumeServerKey] != serverID || !v.pending() && v.Metadata[volumeSelfKey] != v.ID {
		return ""
	}
	return v.Metadata[volumeDiskKey]
}

// pending reports whether the volume was made for a server, and was not attached to it yet.
func (v blockVolume) pending() bool {
	return v.Metadata[volumeServerKey] != "" && v.Metadata[volumeSelfKey] == ""
}

// attachedTo reports whether a server has the volume.
func (v blockVolume) attachedTo(serverID string) bool {
	for _, a := range v.Attachments {
		if a.ServerID == serverID {
			return true
		}
	}
	return false
}

// attachedVolume is a volume of a server in the JSON of the compute service.
type attachedVolume struct {
	ID string `json:"id"`
	// DeleteOnTermination is whether the volume is deleted with the server.
	DeleteOnTermination bool `json:"delete_on_termination"`
}

// listOf lists the volumes that are recorded as disks of a server, in the order of their ids.
func (c *volumeClient) listOf(ctx context.Context, op, serverID string) ([]blockVolume, *cloud.Error) {
	query := url.Values{"metadata": {fmt.Sprintf("{'%s':'%s'}", volumeServerKey, serverID)}}
	listed, err := listPages(ctx, c.session, c.listing(op), query, "volumes", blockVolume.marker)
	// The service may ignore the filter.
	listed = slices.DeleteFunc(listed, func(v blockVolume) bool { return v.Metadata[volumeServerKey] != serverID })
	slices.SortFunc(listed, func(a, b blockVolume) int { return strings.Compare(a.ID, b.ID) })
	return listed, err
}

// probe asks whether the service accepts the account. It keeps the answer to the question before if the service does not answer.
func (c *volumeClient) probe(ctx context.Context, op string) {
	if offered, err := c.offered(ctx, op); err != nil || !offered {
		return
	}
	call := c.listing(op)
	call.path, call.route, call.query = "volumes", "volume/volumes", url.Values{"limit": {"1"}}
	err := c.session.do(ctx, call)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.unusable = false
	case err.Kind == cloud.Forbidden:
		c.unusable = true
	}
}

// listing returns the call that lists volumes.
func (c *volumeClient) listing(op string) *call {
	return &call{about: aboutVolume, service: volume, method: http.MethodGet, route: "volume/volumes/detail", path: "volumes/detail", op: op}
}

// get returns the volume of an id.
func (c *volumeClient) get(ctx context.Context, op, id string) (blockVolume, *cloud.Error) {
	var got struct {
		Volume blockVolume `json:"volume"`
	}
	err := c.session.do(ctx, &call{
		about: aboutVolume, service: volume, method: http.MethodGet, route: "volume/volumes/{id}", path: "volumes/" + id, op: op, out: &got,
	})
	return got.Volume, err
}

// tagsOf returns the names that the volumes of a server were attached by, by the ids of the volumes.
func (c *volumeClient) tagsOf(ctx context.Context, op, serverID string) (map[string]string, *cloud.Error) {
	var got struct {
		Attachments []struct {
			VolumeID string `json:"volumeId"`
			Tag      string `json:"tag"`
		} `json:"volumeAttachments"`
	}
	err := c.session.do(ctx, &call{
		about: aboutServer, service: compute, method: http.MethodGet, route: "compute/servers/{id}/os-volume_attachments",
		path: "servers/" + serverID + "/os-volume_attachments", op: op, out: &got,
	})
	tags := map[string]string{}
	for _, a := range got.Attachments {
		if a.Tag != "" {
			tags[a.VolumeID] = a.Tag
		}
	}
	return tags, err
}

// create makes a volume that is to be a disk of a server, in a zone if one is given. If the answer is lost, the next change of the
// disk finds the volume.
func (c *volumeClient) create(ctx context.Context, op string, s *server, disk cloud.Disk, zone string) *cloud.Error {
	marks := map[string]string{volumeServerKey: s.ID, volumeDiskKey: disk.Name}
	if disk.Keep {
		marks[volumeKeptKey] = volumeKept
	}
	fields := map[string]any{"name": volumeName(s.Name, disk.Name), "size": disk.SizeMiB / mibPerGiB, "metadata": marks}
	if disk.Type != "" {
		fields["volume_type"] = disk.Type
	}
	if zone != "" {
		fields["availability_zone"] = zone
	}
	err := c.session.do(ctx, &call{
		about: aboutNewVolume, service: volume, method: http.MethodPost, route: "volume/volumes", path: "volumes", op: op, body: map[string]any{"volume": fields},
	})
	return explainVolume(err, disk.Name)
}

// checkTypes refuses types of new volumes that do not exist.
func (c *volumeClient) checkTypes(ctx context.Context, op string, wanted []string) *cloud.Error {
	if len(wanted) == 0 {
		return nil
	}
	var got struct {
		Types []named `json:"volume_types"`
	}
	err := c.session.do(ctx, &call{
		about: aboutVolume, service: volume, method: http.MethodGet, route: "volume/types", path: "types", op: op, out: &got, limit: maxList,
	})
	if err != nil {
		return err
	}
	var names []string
	for _, t := range got.Types {
		names = append(names, t.Name)
	}
	for _, name := range wanted {
		if !slices.ContainsFunc(got.Types, func(t named) bool { return name == t.Name }) {
			slices.Sort(names)
			return refuse(op, cloud.Rejected, "no volume type is named %s; %s", quote(name),
				transport.Truncate("there are: "+transport.Printable(strings.Join(names, ", ")), 2*maxReason))
		}
	}
	return nil
}

// attach attaches a volume, which is deleted with the server then unless it is to be kept.
func (c *volumeClient) attach(ctx context.Context, op, serverID string, v blockVolume) *cloud.Error {
	return c.session.do(ctx, &call{
		about: aboutReach, service: compute, method: http.MethodPost, route: "compute/servers/{id}/os-volume_attachments",
		path: "servers/" + serverID + "/os-volume_attachments", op: op,
		body: map[string]any{"volumeAttachment": map[string]any{"volumeId": v.ID, "delete_on_termination": !v.toKeep()}},
	})
}

// extend begins to enlarge a volume.
func (c *volumeClient) extend(ctx context.Context, op string, v blockVolume, gib int, disk string) *cloud.Error {
	return explainVolume(c.session.do(ctx, &call{
		about: aboutNewVolume, service: volume, method: http.MethodPost, route: "volume/volumes/{id}/action", path: "volumes/" + v.ID + "/action", op: op,
		body: map[string]any{"os-extend": map[string]int{"new_size": gib}}, microversion: extendMicroversion,
	}), disk)
}

// record records of a volume that is attached which disk of a server it is, and gives it the name of that disk.
func (c *volumeClient) record(ctx context.Context, op string, s *server, disk string, v blockVolume) *cloud.Error {
	err := c.annotate(ctx, op, v.ID, diskMarks(s.ID, disk, v.ID))
	if err != nil || v.Name == volumeName(s.Name, disk) {
		return err
	}
	return c.session.do(ctx, &call{
		about: aboutVolume, service: volume, method: http.MethodPut, route: "volume/volumes/{id}", path: "volumes/" + v.ID, op: op,
		body: map[string]any{"volume": map[string]string{"name": volumeName(s.Name, disk)}},
	})
}

// diskMarks returns the metadata that records which disk of a server a volume is.
func diskMarks(serverID, disk, id string) map[string]string {
	return map[string]string{volumeServerKey: serverID, volumeDiskKey: disk, volumeSelfKey: id}
}

// annotate merges metadata into that of a volume.
func (c *volumeClient) annotate(ctx context.Context, op, id string, metadata map[string]string) *cloud.Error {
	return c.session.do(ctx, &call{
		about: aboutVolume, service: volume, method: http.MethodPost, route: "volume/volumes/{id}/metadata", path: "volumes/" + id + "/metadata", op: op,
		body: map[string]any{"metadata": metadata},
	})
}

// remove deletes a volume that no server has. That it is gone is no failure.
func (c *volumeClient) remove(ctx context.Context, op, id string) *cloud.Error {
	err := c.session.do(ctx, &call{
		about: aboutVolume, service: volume, method: http.MethodDelete, route: "volume/volumes/{id}", path: "volumes/" + id, op: op,
	})
	if err != nil && err.Kind == cloud.NotFound {
		return nil
	}
	return err
}

// volumeName returns the name by which people find the volume of a disk.
func volumeName(server, disk string) string {
	disk = strings.TrimPrefix(disk, "_")
	if runes := []rune(server); len(runes)+1+len(disk) > maxName {
		server = string(runes[:maxName-1-len(disk)])
	}
	return server + "-" + disk
}

// explainVolume adds the disk to a refusal about its volume.
func explainVolume(err *cloud.Error, disk string) *cloud.Error {
	if err != nil {
		err.Detail = diskText(disk) + ": " + strings.TrimPrefix(err.Detail, "Invalid input received: ")
	}
	return err
}
