package openstack

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// someVolume returns a volume that is recorded as a disk of the server, in a status.
func (c *cinder) someVolume(disk, status string, attachedTo ...string) *blockVolume {
	v := c.add(blockVolume{Name: "web-" + disk, Status: status, GiB: 1, Metadata: map[string]string{volumeServerKey: someID, volumeDiskKey: disk}})
	v.Metadata[volumeSelfKey] = v.ID
	for _, id := range attachedTo {
		v.Attachments = append(v.Attachments, struct {
			ServerID string `json:"server_id"`
		}{id})
	}
	return v
}

// deletedWith marks a volume as one that is deleted with the server.
func deletedWith(v *blockVolume) *blockVolume {
	v.Metadata[volumeDeletedKey] = someID
	return v
}

// adding makes a volume one that the server does not have yet.
func adding(v *blockVolume) { delete(v.Metadata, volumeSelfKey) }

func TestDisksOfAServerThatIsGone(t *testing.T) {
	tests := map[string]struct {
		make func(*cinder)
		// left are how many volumes stay, and busy is whether the deletion has to be tried again.
		left int
		busy bool
	}{
		"none":                          {make: func(*cinder) {}},
		"one that compute left":         {make: func(c *cinder) { deletedWith(c.someVolume("data", volumeAvailable)) }},
		"one that could not be grown":   {make: func(c *cinder) { deletedWith(c.someVolume("data", volumeErrorExtends)) }},
		"one that was being added":      {make: func(c *cinder) { adding(c.someVolume("more", volumeAvailable)) }},
		"one that is being made":        {make: func(c *cinder) { adding(c.someVolume("more", "creating")) }, left: 1, busy: true},
		"one with an error":             {make: func(c *cinder) { adding(c.someVolume("more", volumeError)) }},
		"one that compute is detaching": {make: func(c *cinder) { deletedWith(c.someVolume("data", "detaching", someID)) }, left: 1, busy: true},
		"one that compute deletes with a server that it keeps": {make: func(c *cinder) {
			c.keepServer(deletedWith(c.someVolume("data", volumeInUse, someID)), true)
		}, left: 1},
		"one that compute only detaches from a server that it keeps": {make: func(c *cinder) {
			c.keepServer(deletedWith(c.someVolume("data", volumeInUse, someID)), false)
		}, left: 1, busy: true},
		"one of a server that was restored": {make: func(c *cinder) {
			deletedWith(c.someVolume("data", volumeInUse, someID))
			c.on("GET"+aboutSome, oneServer())
		}, left: 1},
		"one of a server that compute is deleting": {make: func(c *cinder) {
			deletedWith(c.someVolume("data", volumeInUse, someID))
			c.on("GET"+aboutSome, oneServer(`"OS-EXT-STS:task_state": "deleting"`))
		}, left: 1, busy: true},
		"one that is being deleted":  {make: func(c *cinder) { deletedWith(c.someVolume("data", "deleting")) }, left: 1},
		"one that cannot be deleted": {make: func(c *cinder) { deletedWith(c.someVolume("data", "error_deleting")) }, left: 1},
		"one with a snapshot, and another": {make: func(c *cinder) {
			c.snapshotted[deletedWith(c.someVolume("data", volumeAvailable)).ID] = true
			deletedWith(c.someVolume("logs", volumeAvailable))
		}, left: 1},
		"one that was detached before": {make: func(c *cinder) { c.someVolume("data", volumeAvailable) }, left: 1},
		"one of another server now":    {make: func(c *cinder) { deletedWith(c.someVolume("data", volumeInUse, otherID)) }, left: 1},
		"one that another server gets": {make: func(c *cinder) { deletedWith(c.someVolume("data", "reserved")) }, left: 1},
		"a copy":                       {make: func(c *cinder) { deletedWith(c.someVolume("data", volumeAvailable)).Metadata[volumeSelfKey] = otherID }, left: 1},
		"one of somebody else": {make: func(c *cinder) {
			c.add(blockVolume{Name: someID + "-blank-vol", Status: volumeAvailable})
			c.ignores = true
		}, left: 1},
		"one of another server": {make: func(c *cinder) {
			deletedWith(c.someVolume("data", volumeAvailable)).Metadata[volumeServerKey] = otherID
			c.ignores = true
		}, left: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCinder(t)
			c.on("GET"+aboutSome, novaNotFound, http.StatusNotFound)
			tc.make(c)
			err := c.client().DeleteDisks(t.Context(), someID)
			if cloud.Is(err, cloud.Busy) != tc.busy || err != nil && !tc.busy || len(c.volumes) != tc.left {
				t.Errorf("DeleteDisks: %v, %d volumes left, want %d", err, len(c.volumes), tc.left)
			}
		})
	}
}

// keepServer makes nova keep the deleted server, which has a volume.
func (c *cinder) keepServer(v *blockVolume, deletesVolume bool) {
	c.on("GET"+aboutSome, oneServer(`"status": "SOFT_DELETED"`, fmt.Sprintf(`"os-extended-volumes:volumes_attached": [{"id": %q, "delete_on_termination": %t}]`, v.ID, deletesVolume)))
}

func TestDisksThatTheAccountMayNotDeleteAreAnError(t *testing.T) {
	c := newCinder(t)
	for _, disk := range []string{"data", "logs"} {
		c.someVolume(disk, volumeAvailable).Metadata[volumeDeletedKey] = someID
	}
	c.forbids = true
	client := c.client()
	if err := client.DeleteDisks(t.Context(), someID); !cloud.Is(err, cloud.Forbidden) || !strings.Contains(err.Error(), "volume:delete") {
		t.Errorf("DeleteDisks: %v, want Forbidden with the right", err)
	}
	c.forbids = false
	if err := client.DeleteDisks(t.Context(), someID); err != nil || len(c.volumes) != 0 {
		t.Errorf("DeleteDisks with the right: %v, %d volumes left", err, len(c.volumes))
	}
}

// names returns the names of the volumes that there are.
func (c *cinder) names() (names []string) {
	for _, v := range c.volumes {
		names = append(names, v.Name)
	}
	return names
}

// An earlier deletion marked the volumes. Either it was undone, and somebody has detached one since, or it failed after compute
// had detached one.
func TestDisksOfAnEarlierDeletion(t *testing.T) {
	tests := map[string]struct {
		status string
		// lags: nova still shows a volume that is detached.
		lags bool
		// alone: nothing else is attached. restarted: the client does not know the volumes.
		alone, restarted bool
		want             []string
	}{
		"undone":                          {status: "ACTIVE", want: []string{"web-logs"}},
		"undone, the disk was detached":   {status: "ACTIVE", alone: true, want: []string{"web-logs"}},
		"undone, detached before a start": {status: "ACTIVE", alone: true, restarted: true, want: []string{"web-logs"}},
		"undone, detached just now":       {status: "ACTIVE", lags: true, want: []string{"web-logs"}},
		"failed":                          {status: "ERROR"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCinder(t)
			c.status = tc.status
			if !tc.alone {
				c.someVolume("data", volumeInUse, someID).Metadata[volumeDeletedKey] = someID
			}
			logs := c.someVolume("logs", volumeAvailable, someID)
			logs.Metadata[volumeDeletedKey] = someID
			client := c.client()
			if !tc.restarted {
				if _, err := client.GetServer(t.Context(), someID); err != nil {
					t.Fatal(err)
				}
			}
			if !tc.lags {
				logs.Attachments = nil
			}
			c.handle("DELETE"+aboutSome, func(w http.ResponseWriter, _ *http.Request) {
				for _, v := range c.volumes {
					v.Attachments, v.Status = nil, volumeAvailable
				}
				c.on("GET"+aboutSome, novaNotFound, http.StatusNotFound)
				w.WriteHeader(http.StatusNoContent)
			})
			if result, err := client.DeleteServer(t.Context(), someID); err != nil || !result.Gone() {
				t.Fatalf("DeleteServer: %+v, %v", result, err)
			}
			if err := client.DeleteDisks(t.Context(), someID); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.names()); diff != "" {
				t.Errorf("volumes left (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDisksThatComputeLeavesAreToldFromThoseThatWereDetached has a disk that somebody detaches before the deletion, one that compute made
// and that is not recorded, and a volume of somebody else. Compute deletes none of them.
func TestDisksThatComputeLeavesAreToldFromThoseThatWereDetached(t *testing.T) {
	c := newCinder(t)
	c.builds("data")
	c.someVolume("kept", volumeAvailable)
	c.someVolume("logs", volumeInUse, someID)
	c.add(blockVolume{Name: "theirs", Status: volumeInUse}).Attachments = c.volumes[0].Attachments
	c.tags[c.volumes[3].ID], c.kept[c.volumes[3].ID] = "theirs", true
	c.handle("DELETE"+aboutSome, func(w http.ResponseWriter, _ *http.Request) {
		for _, v := range c.volumes {
			v.Attachments, v.Status = nil, volumeAvailable
		}
		c.on("GET"+aboutSome, `{"itemNotFound": {"message": "gone", "code": 404}}`, http.StatusNotFound)
		w.WriteHeader(http.StatusNoContent)
	})
	client := c.client()
	if got, err := client.GetServer(t.Context(), someID); err != nil || got.Disks != "data=2048 logs=1024" {
		t.Fatalf("GetServer: %q, %v", got.Disks, err)
	}
	c.down = http.StatusServiceUnavailable
	if _, err := client.DeleteServer(t.Context(), someID); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("DeleteServer while the disks cannot be read: %v", err)
	}
	c.down = 0
	if result, err := client.DeleteServer(t.Context(), someID); err != nil || !result.Gone() {
		t.Fatalf("DeleteServer: %+v, %v", result, err)
	}
	if err := client.DeleteDisks(t.Context(), someID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"web-kept", "theirs"}, c.names()); diff != "" {
		t.Errorf("volumes left (-want +got):\n%s", diff)
	}
}

// TestDeletionDoesNotNeedABlockStorageServiceThatIsGone has one that is not in the catalog any more, and one that refuses the account.
func TestDeletionDoesNotNeedABlockStorageServiceThatIsGone(t *testing.T) {
	for name, lose := range map[string]func(*cinder){
		"not in the catalog": func(c *cinder) { c.catalog, c.token = c.catalog[:3], "another" },
		"forbidden":          func(c *cinder) { c.down = http.StatusForbidden },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCinder(t)
			c.someVolume("data", volumeInUse, someID)
			c.on("DELETE"+aboutSome, "", http.StatusNoContent)
			client := c.client()
			if got, err := client.GetServer(t.Context(), someID); err != nil || got.Disks != "data=1024" {
				t.Fatalf("GetServer: %q, %v", got.Disks, err)
			}
			lose(c)
			if _, err := client.DeleteServer(t.Context(), someID); err != nil {
				t.Errorf("DeleteServer: %v", err)
			}
		})
	}
}
