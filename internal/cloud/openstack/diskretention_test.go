package openstack

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// A disk of a create is deleted with the server until it is recorded: no volume is left of a server that could not be built.
func TestCreateNamesTheDisksThatAreKept(t *testing.T) {
	c := newCinder(t)
	c.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, http.StatusAccepted)
	if _, err := c.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web", CPU: 1, Disks: "a=1024==keep b=1024 c=1024==keep"}); err != nil {
		t.Fatal(err)
	}
	sent := changesOf(c.taken())
	var body struct {
		Server struct {
			Metadata map[string]string `json:"metadata"`
			Devices  []struct {
				Delete bool `json:"delete_on_termination"`
			} `json:"block_device_mapping_v2"`
		} `json:"server"`
	}
	if len(sent) != 1 || json.Unmarshal([]byte(strings.TrimPrefix(sent[0], "POST compute/servers ")), &body) != nil {
		t.Fatalf("sent %q", sent)
	}
	if got := body.Server.Metadata[keptKey]; got != "a,c" {
		t.Errorf("metadata %s: %q, want a,c", keptKey, got)
	}
	for i, device := range body.Server.Devices {
		if !device.Delete {
			t.Errorf("device %d stays if the server cannot be built", i)
		}
	}
}

func TestDisksOfANewServerAreKept(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*cinder)
		want   cloud.Disks
	}{
		"as the server says":                    {want: "data=2048==keep logs=2048"},
		"the account may not change that":       {change: func(c *cinder) { c.forbidsKeep = true }, want: "data=2048 logs=2048"},
		"a compute service that cannot do that": {change: func(c *cinder) { c.versions[1] = "2.84" }, want: "data=2048 logs=2048"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCinder(t)
			c.builds("data", "logs")
			c.keptNames = "data"
			if tc.change != nil {
				tc.change(c)
			}
			client := c.client()
			for range 3 {
				if _, err := client.GetOperation(t.Context(), operation(opCreate, someID)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := client.GetServer(t.Context(), someID)
			if err != nil || got.Disks != tc.want || c.disksIn() != tc.want {
				t.Errorf("GetServer: %q, %v, the cloud has %q, want %q", got.Disks, err, c.disksIn(), tc.want)
			}
		})
	}
}

// TestKeepingIsSetWhateverAnswerIsLost loses the answer of each call, with and without its effect.
func TestKeepingIsSetWhateverAnswerIsLost(t *testing.T) {
	const want = cloud.Disks("data=2048==keep logs=2048 more=1024==keep")
	count := func(lost int, unsent bool) int {
		c := newCinder(t)
		c.builds("data", "logs")
		c.lost, c.unsent = lost, unsent
		c.follow(t, cloud.Update{cloud.SetDisk{Name: "more", SizeMiB: 1024, Keep: true}, cloud.SetDiskKeep{Name: "data", Keep: true}, cloud.SetDiskKeep{Name: "logs"}}, want)
		if len(c.volumes) != 3 {
			t.Errorf("call %d lost, unsent %t: %d volumes, want 3", lost, unsent, len(c.volumes))
		}
		return c.changes
	}
	calls := count(0, false)
	for lost := 1; lost <= calls; lost++ {
		count(lost, false)
		count(lost, true)
	}
}

func TestKeepingThatCannotBeSet(t *testing.T) {
	keep := cloud.Update{cloud.SetDiskKeep{Name: "data", Keep: true}}
	for name, tc := range map[string]struct {
		change func(*cinder)
		update cloud.Update
		want   cloud.Kind
		says   string
	}{
		"no such disk":           {update: cloud.Update{cloud.SetDiskKeep{Name: "more", Keep: true}}, want: cloud.Rejected, says: `no disk "more"`},
		"no such right":          {update: keep, change: func(c *cinder) { c.forbidsKeep = true }, want: cloud.Forbidden, says: "os-volumes-attachments:update"},
		"an old compute service": {update: keep, change: func(c *cinder) { c.versions[1] = "2.84" }, want: cloud.Unsupported, says: "keepDisks"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCinder(t)
			c.someVolume("data", volumeInUse, someID)
			if tc.change != nil {
				tc.change(c)
			}
			client := c.client()
			_, err := client.UpdateServer(t.Context(), someID, tc.update)
			if cloud.KindOf(err) != tc.want || !strings.Contains(err.Error(), tc.says) || c.disksIn() != "data=1024" {
				t.Errorf("%v, want %s with %q; disks %q", err, tc.want, tc.says, c.disksIn())
			}
		})
	}
}

func TestServerWhoseDisksCannotBeKeptIsRefused(t *testing.T) {
	long := []cloud.Disk{}
	for _, letter := range "abcdef" {
		long = append(long, cloud.Disk{Name: strings.Repeat(string(letter), maxDeviceTag), SizeMiB: 1024, Keep: true})
	}
	tooLong, _ := cloud.NewDisks(long)
	for name, tc := range map[string]struct {
		disks   cloud.Disks
		version string
		want    cloud.Kind
	}{
		"an old compute service": {disks: "data=1024==keep", version: "2.84", want: cloud.Unsupported},
		"names that are long":    {disks: tooLong, version: "2.85", want: cloud.Rejected},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCinder(t)
			c.versions[1] = tc.version
			client := c.client()
			_, err := client.CreateServer(t.Context(), cloud.CreateServer{Name: "web", CPU: 1, Disks: tc.disks})
			if cloud.KindOf(err) != tc.want || len(changesOf(c.taken())) > 0 {
				t.Errorf("CreateServer: %v, want %s", err, tc.want)
			}
			caps, err := client.Capabilities(t.Context())
			if err != nil || caps.Has(cloud.KeepDisks) != (tc.want == cloud.Rejected) {
				t.Errorf("Capabilities: %v, %v", caps, err)
			}
		})
	}
}

// TestDisksThatAreKeptStay has one that an earlier deletion, which was undone, would have deleted, and one that is being added.
func TestDisksThatAreKeptStay(t *testing.T) {
	for name, tc := range map[string]struct {
		version string
		want    []string
	}{
		"kept": {version: "2.85", want: []string{"web-data", "web-logs"}},
		// Somebody has detached and attached the disks by hand, which leaves them to the operator.
		"a compute service that cannot change that": {version: "2.84", want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCinder(t)
			c.versions[1] = tc.version
			data, logs := c.someVolume("data", volumeInUse, someID), deletedWith(c.someVolume("logs", volumeInUse, someID))
			c.someVolume("more", volumeInUse, someID)
			adding := c.someVolume("adding", volumeAvailable)
			adding.Metadata[volumeKeptKey] = "true"
			delete(adding.Metadata, volumeSelfKey)
			c.kept[data.ID], c.kept[logs.ID] = true, true
			c.handle("DELETE"+aboutSome, func(w http.ResponseWriter, _ *http.Request) {
				c.volumes = slices.DeleteFunc(c.volumes, func(v *blockVolume) bool { return v.attachedTo(someID) && !c.kept[v.ID] })
				for _, v := range c.volumes {
					v.Attachments, v.Status = nil, volumeAvailable
				}
				c.on("GET"+aboutSome, novaNotFound, http.StatusNotFound)
				w.WriteHeader(http.StatusNoContent)
			})
			client := c.client()
			if result, err := client.DeleteServer(t.Context(), someID); err != nil || !result.Gone() {
				t.Fatalf("DeleteServer: %+v, %v", result, err)
			}
			for range 2 {
				if err := client.DeleteDisks(t.Context(), someID); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, c.names()); diff != "" {
				t.Errorf("volumes left (-want +got):\n%s", diff)
			}
		})
	}
}
