package openstack

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/utils"

	"github.com/privatecloud/operator/internal/cloud"
)

// cinder is a block storage service in memory beside the volumes of one server of a nova, with the rules of the real ones: a volume
// is made and enlarged in a while, only one that is available can be attached or deleted, and copies of a volume have its metadata.
type cinder struct {
	*stub
	mu   sync.Mutex
	made int
	// volumes are in the order in which they were made.
	volumes []*blockVolume
	// tags are those of attached volumes by id, and kept are those that the server leaves.
	tags map[string]string
	kept map[string]bool
	// target are the sizes of volumes that are being enlarged, which they have at the end.
	target map[string]int
	// status is that of the server, and stored the mark that it was created with volumes.
	status, stored string
	// keptNames are the names that the server was created with of the disks that are to be kept.
	keptNames string
	// changes counts the calls that change something. The one with the number lost gets no answer, and has no effect if unsent.
	changes, lost int
	unsent        bool
	// down is the status of all answers; 0 for the usual ones.
	down int
	// ignores: listings have all volumes, whatever the query.
	ignores bool
	// snapshotted are the volumes with snapshots by id.
	snapshotted map[string]bool
	// noAttach: compute accepts volumes, and cannot attach them.
	noAttach bool
	// gone are volumes by id that the service has lost.
	gone map[string]bool
	// room is how many volumes the project may have; 0 for any number.
	room int
	// forbids: the account may not delete volumes. forbidsKeep: it may not change whether they are deleted with a server.
	forbids, forbidsKeep bool
	// fails: volumes that are made or enlarged end with an error.
	fails bool
}

func newCinder(t *testing.T) *cinder {
	t.Helper()
	c := &cinder{stub: newStub(t), tags: map[string]string{}, kept: map[string]bool{}, target: map[string]int{}, snapshotted: map[string]bool{}, status: "ACTIVE"}
	for kind, version := range map[string]string{"compute": "v2.1", "network": "", "image": ""} {
		c.catalog = append(c.catalog, service1(kind, "RegionOne", c.URL+"/"+kind+"/"+version))
	}
	c.catalog = append(c.catalog, service1("volumev3", "RegionOne", c.URL+"/volume/v3"))
	c.on("GET compute/servers", `{"servers": []}`)
	c.block = http.HandlerFunc(c.serveBlock)
	c.handle("GET"+aboutSome, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, oneServer(c.shown()...)) })
	c.handle("GET compute/servers/detail", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"servers": [`+serverJSON(c.shown()...)+`]}`)
	})
	c.handle("GET"+aboutSome+"/os-volume_attachments", c.attachments)
	c.handle("POST"+aboutSome+"/os-volume_attachments", c.attach)
	return c
}

// shown returns what nova shows of the server.
func (c *cinder) shown() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var attached []string
	for _, v := range c.volumes {
		if v.attachedTo(someID) {
			attached = append(attached, fmt.Sprintf(`{"id": %q, "delete_on_termination": %t}`, v.ID, !c.kept[v.ID]))
		}
	}
	return []string{
		fmt.Sprintf(`"status": %q`, c.status),
		fmt.Sprintf(`"metadata": {%q: %q, %q: %q}`, storedKey, c.stored, keptKey, c.keptNames), `"os-extended-volumes:volumes_attached": [` + strings.Join(attached, ", ") + `]`,
	}
}

// builds makes nova build the server with disks, which it names by their tags.
func (c *cinder) builds(tags ...string) {
	c.stored = "made"
	for _, tag := range tags {
		v := c.add(blockVolume{Name: someID + "-blank-vol", Status: volumeInUse, GiB: 2})
		c.tags[v.ID] = tag
		v.Attachments = append(v.Attachments, struct {
			ServerID string `json:"server_id"`
		}{someID})
	}
}

func (c *cinder) add(v blockVolume) *blockVolume {
	c.made++
	v.ID = fmt.Sprintf("00000000-0000-4000-8000-%012d", c.made)
	if v.Metadata == nil {
		v.Metadata = map[string]string{}
	}
	c.volumes = append(c.volumes, &v)
	c.handle("PUT"+aboutSome+"/os-volume_attachments/"+v.ID, c.updateAttachment)
	return &v
}

func (c *cinder) attachments(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []map[string]any{}
	for _, v := range c.volumes {
		if v.attachedTo(someID) {
			one := map[string]any{"volumeId": v.ID, "tag": nil}
			if tag := c.tags[v.ID]; tag != "" {
				one["tag"] = tag
			}
			list = append(list, one)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"volumeAttachments": list})
}

// loses reports whether the call gets no answer, and whether it has no effect.
func (c *cinder) loses() (lost, unsent bool) {
	c.changes++
	return c.changes == c.lost, c.changes == c.lost && c.unsent
}

func (c *cinder) attach(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sent struct {
		VolumeAttachment struct {
			VolumeID string `json:"volumeId"`
			Delete   bool   `json:"delete_on_termination"`
		} `json:"volumeAttachment"`
	}
	_ = json.NewDecoder(r.Body).Decode(&sent)
	lost, unsent := c.loses()
	v := c.find(sent.VolumeAttachment.VolumeID)
	switch {
	case unsent:
	case v != nil && c.noAttach:
		// It fails on the host, after the answer.
	case v == nil, v.Status != volumeAvailable:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"badRequest": {"message": "Invalid volume: status must be available", "code": 400}}`)
		return
	default:
		v.Status = "attaching"
		c.kept[v.ID] = !sent.VolumeAttachment.Delete
		v.Attachments = append(v.Attachments, struct {
			ServerID string `json:"server_id"`
		}{someID})
	}
	if lost {
		cut(w, r)
		return
	}
	_, _ = io.WriteString(w, `{"volumeAttachment": {}}`)
}

// updateAttachment sets whether a volume is deleted with the server, as nova does from 2.85 on: before, the call is a swap of volumes.
func (c *cinder) updateAttachment(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sent struct {
		VolumeAttachment struct {
			VolumeID string `json:"volumeId"`
			Delete   *bool  `json:"delete_on_termination"`
		} `json:"volumeAttachment"`
	}
	_ = json.NewDecoder(r.Body).Decode(&sent)
	lost, unsent := c.loses()
	_, minor, _ := utils.ParseMicroversion(r.Header.Get("X-OpenStack-Nova-API-Version"))
	switch v := c.find(sent.VolumeAttachment.VolumeID); {
	case unsent:
	case minor < 85, !strings.HasSuffix(r.URL.Path, "/"+sent.VolumeAttachment.VolumeID), c.forbidsKeep:
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"forbidden": {"message": "Policy doesn't allow os_compute_api:os-volumes-attachments:update to be performed.", "code": 403}}`)
		return
	case v == nil, !v.attachedTo(someID):
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"itemNotFound": {"message": "No volume Block Device Mapping with id.", "code": 404}}`)
		return
	case sent.VolumeAttachment.Delete != nil:
		c.kept[v.ID] = !*sent.VolumeAttachment.Delete
	}
	if lost {
		cut(w, r)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (c *cinder) find(id string) *blockVolume {
	at := slices.IndexFunc(c.volumes, func(v *blockVolume) bool { return v.ID == id })
	if at < 0 {
		return nil
	}
	return c.volumes[at]
}

func (c *cinder) serveBlock(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down != 0 {
		w.WriteHeader(c.down)
		return
	}
	var lost, unsent bool
	if r.Method != http.MethodGet {
		lost, unsent = c.loses()
	}
	status, answer := http.StatusOK, any(nil)
	if !unsent {
		status, answer = c.answer(r)
	}
	if lost {
		cut(w, r)
		return
	}
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		_ = json.NewEncoder(w).Encode(answer)
	}
}

func refusedVolume(status int, name, message string) (int, any) {
	return status, map[string]any{name: map[string]any{"message": message, "code": status}}
}

func (c *cinder) answer(r *http.Request) (int, any) {
	if strings.HasSuffix(r.URL.Path, "/types") {
		return http.StatusOK, map[string]any{"volume_types": []named{{"t1", "fast"}, {"t2", "a type"}}}
	}
	path := strings.TrimPrefix(r.URL.Path, "/volume/v3/"+projectID+"/volumes")
	switch {
	case r.Method == http.MethodGet && (path == "/detail" || path == ""):
		return http.StatusOK, map[string]any{"volumes": c.list(r.URL.Query().Get("metadata"), r.URL.Query().Get("name"))}
	case r.Method == http.MethodPost && path == "":
		var sent struct {
			Volume struct {
				Name     string
				Size     int
				Metadata map[string]string
				Zone     string `json:"availability_zone"`
				Type     string `json:"volume_type"`
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&sent)
		if c.room > 0 && len(c.volumes) >= c.room {
			return refusedVolume(http.StatusRequestEntityTooLarge, "overLimit", "VolumeLimitExceeded: Maximum number of volumes allowed (1) exceeded for quota 'volumes'.")
		}
		v := c.add(blockVolume{
			Name: sent.Volume.Name, Status: "creating", GiB: sent.Volume.Size, Metadata: sent.Volume.Metadata, Zone: sent.Volume.Zone, Type: sent.Volume.Type,
		})
		return http.StatusAccepted, map[string]any{"volume": v}
	}
	id, what, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	v := c.find(id)
	if v == nil || c.gone[id] {
		return refusedVolume(http.StatusNotFound, "itemNotFound", "Volume "+id+" could not be found.")
	}
	switch r.Method + " " + what {
	case "GET ":
		return http.StatusOK, map[string]any{"volume": c.read(v)}
	case "PUT ":
		var sent struct{ Volume struct{ Name string } }
		_ = json.NewDecoder(r.Body).Decode(&sent)
		v.Name = sent.Volume.Name
	case "POST metadata":
		var sent struct{ Metadata map[string]string }
		_ = json.NewDecoder(r.Body).Decode(&sent)
		maps.Copy(v.Metadata, sent.Metadata)
	case "POST action":
		var sent struct {
			Extend struct {
				Size int `json:"new_size"`
			} `json:"os-extend"`
		}
		_ = json.NewDecoder(r.Body).Decode(&sent)
		attachedToo := r.Header.Get("OpenStack-API-Version") == "volume 3.42"
		switch {
		case v.Status != volumeAvailable && (v.Status != volumeInUse || !attachedToo):
			return refusedVolume(http.StatusBadRequest, "badRequest", "Invalid volume: Volume status must be '{'available'}' to extend.")
		case sent.Extend.Size <= v.GiB:
			return refusedVolume(http.StatusBadRequest, "badRequest", "Invalid input received: New size for extend must be greater than current size.")
		}
		v.Status, c.target[id] = volumeExtending, sent.Extend.Size
		return http.StatusAccepted, map[string]any{}
	case "DELETE ":
		if c.forbids {
			return refusedVolume(http.StatusForbidden, "forbidden", "Policy doesn't allow volume:delete to be performed.")
		}
		if !slices.Contains(deletable, v.Status) || c.snapshotted[id] {
			return refusedVolume(http.StatusBadRequest, "badRequest", "Invalid volume: Volume status must be available or error, and it must not have snapshots.")
		}
		c.volumes = slices.DeleteFunc(c.volumes, func(v *blockVolume) bool { return v.ID == id })
		return http.StatusAccepted, map[string]any{}
	}
	return http.StatusOK, map[string]any{}
}

// list returns the volumes that match a filter.
func (c *cinder) list(metadata, name string) []blockVolume {
	listed := []blockVolume{}
	for _, v := range c.volumes {
		if c.gone[v.ID] {
			continue
		}
		if !c.ignores && (metadata != "" && metadata != fmt.Sprintf("{'%s':'%s'}", volumeServerKey, v.Metadata[volumeServerKey]) || name != "" && name != v.Name) {
			continue
		}
		listed = append(listed, c.read(v))
	}
	return listed
}

// read returns a volume as it is, and lets time pass for it.
func (c *cinder) read(v *blockVolume) blockVolume {
	one := *v
	one.Metadata = maps.Clone(v.Metadata)
	switch {
	case v.Status == "creating" && c.fails:
		v.Status = volumeError
	case v.Status == volumeExtending && c.fails:
		v.Status = volumeErrorExtends
	case v.Status == "creating":
		v.Status = volumeAvailable
	case v.Status == volumeExtending:
		v.Status, v.GiB = volumeInUse, c.target[v.ID]
	case v.Status == "attaching":
		v.Status = volumeInUse
	}
	return one
}

// disksIn returns the disks of the server as cinder has them.
func (c *cinder) disksIn() cloud.Disks {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []cloud.Disk
	for _, v := range c.volumes {
		if v.attachedTo(someID) && v.diskOf(someID) != "" && !v.pending() {
			list = append(list, cloud.Disk{Name: v.diskOf(someID), SizeMiB: v.GiB * mibPerGiB, Keep: c.kept[v.ID] && v.Metadata[volumeKeptKey] == volumeKept})
		}
	}
	disks, _ := cloud.NewDisks(list)
	return disks
}
