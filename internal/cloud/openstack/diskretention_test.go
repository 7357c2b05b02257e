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
		logs := c.volumes[1]
		logs.Metadata, c.kept[logs.ID] = diskMarks(someID, "logs", logs.ID), true
		logs.Metadata[volumeKeptKey] = volumeKept
		c.lost, c.unsent = lost, unsent
		c.follow(t, cloud.Update{cloud.SetDisk{Name: "more", SizeMiB: 1024, Keep: true}, cloud.SetDiskKeep{Name: "data", Keep: true}, cloud.SetDiskKeep{Name: "logs"}}, want)
		if len(c.volumes) != 3 {
			t.Errorf("call %d lost, unsent %t: %d volumes, want 3", lost, unsent, len(c.volumes))
		}
		if c.kept[logs.ID] {
			t.Errorf("call %d lost, unsent %t: nova leaves the volume of logs", lost, unsent)
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
		"no such disk":                       {update: cloud.Update{cloud.SetDiskKeep{Name: "more", Keep: true}}, want: cloud.Rejected, says: `no disk "more"`},
		"an old compute service, a new disk": {update: cloud.Update{cloud.SetDisk{Name: "more", SizeMiB: 1024, Keep: true}}, change: func(c *cinder) { c.versions[1] = "2.84" }, want: cloud.Unsupported, says: "keepDisks"},
		"no such right":                      {update: keep, change: func(c *cinder) { c.forbidsKeep = true }, want: cloud.Forbidden, says: "os-volumes-attachments:update"},
		"an old compute service":             {update: keep, change: func(c *cinder) { c.versions[1] = "2.84" }, want: cloud.Unsupported, says: "keepDisks"},
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

// keptVolume adds the disk data, which is kept.
func (c *cinder) keptVolume() *blockVolume {
	v := c.someVolume("data", volumeInUse, someID)
	v.Metadata[volumeKeptKey], c.kept[v.ID] = volumeKept, true
	return v
}

// deletes lets compute delete the server: with its volumes, without those that it leaves.
func (c *cinder) deletes() {
	c.handle("DELETE"+aboutSome, func(w http.ResponseWriter, _ *http.Request) {
		c.volumes = slices.DeleteFunc(c.volumes, func(v *blockVolume) bool { return v.attachedTo(someID) && !c.kept[v.ID] })
		for _, v := range c.volumes {
			v.Attachments, v.Status = nil, volumeAvailable
		}
		c.on("GET"+aboutSome, novaNotFound, http.StatusNotFound)
		w.WriteHeader(http.StatusNoContent)
	})
}

func TestDisksThatAreKeptStay(t *testing.T) {
	for name, tc := range map[string]struct {
		add  func(*cinder)
		want []string
	}{
		"one is kept, another is not":                                  {func(c *cinder) { c.keptVolume(); c.someVolume("logs", volumeInUse, someID) }, []string{"web-data"}},
		"an earlier deletion, which was undone, would have deleted it": {func(c *cinder) { deletedWith(c.keptVolume()) }, []string{"web-data"}},
		"the deletion began with an error":                             {func(c *cinder) { c.status = "ERROR"; deletedWith(c.keptVolume()) }, []string{"web-data"}},
		"it was added, and nothing recorded it since":                  {func(c *cinder) { delete(c.keptVolume().Metadata, volumeSelfKey) }, []string{"web-data"}},
		"an older compute service answers now":                         {func(c *cinder) { c.versions[1] = "2.84"; c.keptVolume() }, []string{"web-data"}},
		"it was being added": {func(c *cinder) {
			v := c.someVolume("data", volumeAvailable)
			v.Metadata[volumeKeptKey] = volumeKept
			delete(v.Metadata, volumeSelfKey)
		}, nil},
		"somebody detached and attached one by hand that is not kept": {func(c *cinder) { c.kept[c.someVolume("data", volumeInUse, someID).ID] = true }, nil},
		"somebody detached and attached one by hand that is kept":     {func(c *cinder) { c.kept[c.keptVolume().ID] = false }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCinder(t)
			c.deletes()
			tc.add(c)
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

// TestDiskThatIsShownAsKeptStays cuts the operation that adds a disk after each of its steps, and deletes the server.
func TestDiskThatIsShownAsKeptStays(t *testing.T) {
	shown := 0
	for steps := range 6 {
		c := newCinder(t)
		c.deletes()
		client := c.client()
		result, err := client.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 1024, Keep: true}})
		for range steps {
			if err == nil {
				_, err = client.GetOperation(t.Context(), result.Operation)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.client().GetServer(t.Context(), someID) // another process
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.DeleteServer(t.Context(), someID); err != nil {
			t.Fatal(err)
		}
		if err := client.DeleteDisks(t.Context(), someID); err != nil && !cloud.Is(err, cloud.Busy) {
			t.Fatal(err)
		}
		if got.Disks.Kept("data") {
			shown++
			if diff := cmp.Diff([]string{"web-data"}, c.names()); diff != "" {
				t.Errorf("after %d steps, volumes left (-want +got):\n%s", steps, diff)
			}
		}
	}
	if shown == 0 {
		t.Error("the disk is never shown as kept")
	}
}

// A change that is computed from what the server shows, as the operator's is, records the disk.
func TestDiskThatIsNotRecordedIsNotShownAsKept(t *testing.T) {
	c := newCinder(t)
	v := c.keptVolume()
	delete(v.Metadata, volumeSelfKey)
	client := c.client()
	if got, err := client.GetServer(t.Context(), someID); err != nil || got.Disks != "data=1024" {
		t.Fatalf("GetServer: %q, %v", got.Disks, err)
	}
	result, err := client.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetDiskKeep{Name: "data", Keep: true}})
	if err != nil || result.Server.Disks != "data=1024==keep" || v.pending() {
		t.Errorf("UpdateServer: %q, %v, recorded: %t", result.Server.Disks, err, !v.pending())
	}
}
