package openstack

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestCreateWithDisksNamesThemByTags(t *testing.T) {
	c := newCinder(t)
	c.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, http.StatusAccepted)
	if _, err := c.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web", CPU: 1, Disks: "data=2048 logs=1024"}); err != nil {
		t.Fatal(err)
	}
	sent := changesOf(c.taken())
	var body struct {
		Server struct {
			ImageRef string           `json:"imageRef"`
			Devices  []map[string]any `json:"block_device_mapping_v2"`
		} `json:"server"`
	}
	if len(sent) != 1 || json.Unmarshal([]byte(strings.TrimPrefix(sent[0], "POST compute/servers ")), &body) != nil {
		t.Fatalf("sent %q", sent)
	}
	disk := func(tag string, gib float64) map[string]any {
		return map[string]any{"source_type": "blank", "destination_type": "volume", "boot_index": -1.0, "delete_on_termination": true, "tag": tag, "volume_size": gib}
	}
	want := []map[string]any{
		{"source_type": "image", "destination_type": "local", "uuid": otherID, "boot_index": 0.0, "delete_on_termination": true}, disk("data", 2), disk("logs", 1),
	}
	if diff := cmp.Diff(want, body.Server.Devices); diff != "" || body.Server.ImageRef != otherID {
		t.Errorf("image %q, devices (-want +got):\n%s", body.Server.ImageRef, diff)
	}
}

func TestDisksThatCannotBeMadeAreRefused(t *testing.T) {
	long := cloud.Disks(strings.Repeat("x", 61) + "=1024")
	tests := map[string]struct {
		disks  cloud.Disks
		change func(*cinder)
		want   cloud.Kind
	}{
		"a size that is no whole GiB": {disks: "data=1500", want: cloud.Rejected},
		"a size that is too large":    {disks: "data=1099511627776", want: cloud.Rejected},
		"a name that is too long":     {disks: long, want: cloud.Rejected},
		"no block storage service":    {disks: "data=1024", change: func(c *cinder) { c.catalog = c.catalog[:3] }, want: cloud.Unsupported},
		"an old compute service":      {disks: "data=1024", change: func(c *cinder) { c.versions[1] = "2.78" }, want: cloud.Unsupported},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCinder(t)
			if tc.change != nil {
				tc.change(c)
			}
			client := c.client()
			_, err := client.CreateServer(t.Context(), cloud.CreateServer{Name: "web", CPU: 1, Disks: tc.disks})
			if cloud.KindOf(err) != tc.want {
				t.Errorf("CreateServer: %v, want %s", err, tc.want)
			}
			caps, err := client.Capabilities(t.Context())
			if err != nil || caps.Has(cloud.WithDisks) != (tc.want == cloud.Rejected) {
				t.Errorf("Capabilities: %v, %v", caps, err)
			}
			if sent := changesOf(c.taken()); len(sent) > 0 {
				t.Errorf("sent %q", sent)
			}
		})
	}
}

// TestAccountWithoutTheRightToListVolumesHasNoDisks also has one that gets it later.
func TestAccountWithoutTheRightToListVolumesHasNoDisks(t *testing.T) {
	c := newCinder(t)
	client := c.client()
	for _, step := range []struct {
		down int
		want bool
	}{{0, true}, {http.StatusServiceUnavailable, true}, {http.StatusForbidden, false}, {http.StatusServiceUnavailable, false}, {0, true}} {
		c.down = step.down
		caps, err := client.Capabilities(t.Context())
		if err != nil || caps.Has(cloud.WithDisks) != step.want {
			t.Errorf("with status %d: %v, %v", step.down, caps, err)
		}
	}
}

func TestDisksOfANewServerAreRecordedOnce(t *testing.T) {
	c := newCinder(t)
	c.builds("data", "logs")
	c.add(blockVolume{Status: volumeAvailable, GiB: 9})
	client := c.client()
	for i := 0; ; i++ {
		got, err := client.GetOperation(t.Context(), operation(opCreate, someID))
		if err != nil || got.Err != nil || i > 3 {
			t.Fatalf("GetOperation: %+v, %v", got, err)
		}
		if got.Done {
			break
		}
	}
	if want := cloud.Disks("data=2048 logs=2048"); c.disksIn() != want || c.volumes[0].Name != "web-data" {
		t.Fatalf("disks %q, want %q; name %q", c.disksIn(), want, c.volumes[0].Name)
	}
	c.taken()
	fresh := c.client() // another process
	for range 2 {
		page, err := fresh.ListServers(t.Context(), cloud.ListServers{})
		if err != nil || len(page.Servers) != 1 || page.Servers[0].Disks != "data=2048 logs=2048" {
			t.Fatalf("ListServers: %+v, %v", page, err)
		}
	}
	if sent := slices.DeleteFunc(c.taken(), func(r string) bool { return !strings.Contains(r, "volume") }); len(sent) != 1 {
		t.Errorf("two listings read the volumes with %q", sent)
	}
	if got, err := fresh.GetOperation(t.Context(), operation(opCreate, someID)); err != nil || !got.Done || len(changesOf(c.taken())) > 0 {
		t.Errorf("GetOperation: %+v, %v, and it changed something", got, err)
	}
}

// TestDisksOfANewServerAreKnownBeforeTheyAreRecorded has the disks of a server whose operation nobody follows.
func TestDisksOfANewServerAreKnownBeforeTheyAreRecorded(t *testing.T) {
	c := newCinder(t)
	c.builds("data")
	client := c.client()
	got, err := client.GetServer(t.Context(), someID)
	if err != nil || got.Disks != "data=2048" {
		t.Fatalf("GetServer: %q, %v", got.Disks, err)
	}
	result, err := client.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 2048}})
	if err != nil || result.Operation == "" || len(c.volumes) != 1 {
		t.Errorf("UpdateServer: %+v, %v, %d volumes", result, err, len(c.volumes))
	}
}

// follow sends an update until the server is as it says, as the operator does.
func (c *cinder) follow(t *testing.T, update cloud.Update, want cloud.Disks) {
	t.Helper()
	for range 20 {
		client := c.client() // a new process each time
		result, err := client.UpdateServer(t.Context(), someID, update)
		for i := 0; err == nil && result.Operation != ""; i++ {
			got, failed := client.GetOperation(t.Context(), result.Operation)
			if err = failed; err == nil && got.Done || i > 20 {
				break
			}
		}
		if got, err := client.GetServer(t.Context(), someID); err == nil && got.Disks == want && c.disksIn() == want {
			return
		}
	}
	t.Fatalf("the server has %q, want %q: %+v", c.disksIn(), want, c.volumes)
}

// TestDisksAreMadeOnceWhateverAnswerIsLost loses the answer of each call, with and without its effect.
func TestDisksAreMadeOnceWhateverAnswerIsLost(t *testing.T) {
	update := cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 3072}, cloud.SetDisk{Name: "more", SizeMiB: 1024}}
	const want = cloud.Disks("data=3072 logs=2048 more=1024")
	count := func(lost int, unsent, ignores bool) int {
		c := newCinder(t)
		c.builds("data", "logs")
		c.lost, c.unsent, c.ignores = lost, unsent, ignores
		c.follow(t, update, want)
		if len(c.volumes) != 3 {
			t.Errorf("call %d lost, unsent %t: %d volumes, want 3", lost, unsent, len(c.volumes))
		}
		for _, v := range c.volumes {
			if c.kept[v.ID] {
				t.Errorf("volume %s stays after the deletion of the server", v.ID)
			}
		}
		return c.changes
	}
	calls := count(0, false, false)
	if calls < 5 {
		t.Fatalf("only %d calls", calls)
	}
	for lost := 1; lost <= calls; lost++ {
		count(lost, false, false)
		count(lost, true, true)
	}
}

func TestSmallerDiskIsRejectedWithoutAChange(t *testing.T) {
	c := newCinder(t)
	c.builds("data")
	_, err := c.client().UpdateServer(t.Context(), someID, cloud.Update{cloud.SetDisk{Name: "more", SizeMiB: 1024}, cloud.SetDisk{Name: "data", SizeMiB: 1024}})
	if !cloud.Is(err, cloud.Rejected) || len(c.volumes) != 1 || c.changes > 0 {
		t.Errorf("UpdateServer: %v, %d volumes, %d changes", err, len(c.volumes), c.changes)
	}
}

func TestVolumeThatTheCloudCannotMakeFailsTheOperationAndIsRemoved(t *testing.T) {
	for _, change := range []cloud.SetDisk{{Name: "more", SizeMiB: 1024}, {Name: "data", SizeMiB: 4096}} {
		c := newCinder(t)
		c.builds("data")
		c.fails = true
		client := c.client()
		result, err := client.UpdateServer(t.Context(), someID, cloud.Update{change})
		var got cloud.Operation
		for i := 0; err == nil && !got.Done && i < 9; i++ {
			got, err = client.GetOperation(t.Context(), result.Operation)
		}
		if err != nil || got.Err == nil || got.Err.Kind != cloud.Failed || !strings.Contains(got.Err.Detail, change.Name) || len(c.volumes) != 1 {
			t.Errorf("%s: %+v, %v, %d volumes", change, got, err, len(c.volumes))
		}
	}
}

// TestCopyOfADiskIsNotAttached has a backup that somebody restored while the server lacks a disk.
func TestCopyOfADiskIsNotAttached(t *testing.T) {
	c := newCinder(t)
	c.builds("data")
	copied := c.someVolume("more", volumeAvailable)
	copied.Metadata[volumeSelfKey] = otherID
	c.follow(t, cloud.Update{cloud.SetDisk{Name: "more", SizeMiB: 1024}, cloud.SetDisk{Name: "data", SizeMiB: 3072}}, "data=3072 more=1024")
	if copied.Status != volumeAvailable || len(c.volumes) != 3 {
		t.Errorf("the copy is %s, and there are %d volumes", copied.Status, len(c.volumes))
	}
}

// TestVolumesOfOthersAreNoDisks has some that an administrator attached, also with the wish that they are deleted with the server.
func TestVolumesOfOthersAreNoDisks(t *testing.T) {
	c := newCinder(t)
	c.someVolume("data", volumeInUse, someID)
	c.builds("", "theirs", "No Disk")
	c.kept[c.volumes[2].ID] = true
	c.someVolume("data", volumeInUse, someID).Metadata[volumeServerKey] = otherID
	client := c.client()
	for range 3 {
		got, err := client.GetServer(t.Context(), someID)
		if err != nil || got.Disks != "data=1024" {
			t.Fatalf("GetServer: %q, %v", got.Disks, err)
		}
	}
	if sent := slices.DeleteFunc(c.taken(), func(r string) bool { return !strings.Contains(r, "os-volume_attachments") }); len(sent) != 1 {
		t.Errorf("the tags were read with %q", sent)
	}
}

func TestDisksAreUnknownWhileTheBlockStorageServiceIsDown(t *testing.T) {
	c := newCinder(t)
	c.someVolume("data", volumeInUse, someID)
	client := c.client()
	c.down = http.StatusServiceUnavailable
	read := func() (disks [2]cloud.Disks) {
		got, err := client.GetServer(t.Context(), someID)
		page, failed := client.ListServers(t.Context(), cloud.ListServers{})
		if err != nil || failed != nil || len(page.Servers) != 1 {
			t.Fatalf("GetServer: %v, ListServers: %+v, %v", err, page, failed)
		}
		return [2]cloud.Disks{got.Disks, page.Servers[0].Disks}
	}
	if got := read(); got != [2]cloud.Disks{cloud.DisksUnknown, cloud.DisksUnknown} {
		t.Errorf("disks %q", got)
	}
	asked := func() int {
		return len(slices.DeleteFunc(c.taken(), func(r string) bool { return !strings.Contains(r, "volumes/detail") }))
	}
	if n := asked(); n > 3 {
		t.Errorf("the service was asked %d times by two calls", n)
	}
	if _, err := client.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 2048}}); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("UpdateServer: %v", err)
	}
	if _, err := client.DeleteServer(t.Context(), someID); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("DeleteServer: %v", err)
	}
	c.down, client.volumes.askAt = 0, time.Time{}
	if got := read(); got != [2]cloud.Disks{"data=1024", "data=1024"} {
		t.Errorf("disks %q after the service came back", got)
	}
	c.down = http.StatusServiceUnavailable
	for id, v := range client.volumes.known {
		v.at = v.at.Add(-2 * volumesLifetime)
		client.volumes.known[id] = v
	}
	if got := read(); got != [2]cloud.Disks{"data=1024", "data=1024"} {
		t.Errorf("disks %q while the service is down again: those that were read before still hold", got)
	}
}

// TestVolumesThatTheServiceHasLostAreNoDisks has a volume that compute lists and that does not exist.
func TestVolumesThatTheServiceHasLostAreNoDisks(t *testing.T) {
	c := newCinder(t)
	c.builds("data", "logs")
	c.gone = map[string]bool{c.volumes[0].ID: true}
	client := c.client()
	for range 3 {
		got, err := client.GetServer(t.Context(), someID)
		if err != nil || got.Disks != "logs=2048" {
			t.Errorf("GetServer: %q, %v", got.Disks, err)
		}
	}
	if _, err := client.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetDisk{Name: "logs", SizeMiB: 3072}}); err != nil {
		t.Errorf("UpdateServer: %v", err)
	}
}

func TestDisksAreUnknownOnceTheCloudHasNoBlockStorageService(t *testing.T) {
	c := newCinder(t)
	c.someVolume("data", volumeInUse, someID)
	c.catalog = c.catalog[:3]
	if got, err := c.client().GetServer(t.Context(), someID); err != nil || got.Disks != cloud.DisksUnknown {
		t.Errorf("GetServer: %q, %v", got.Disks, err)
	}
}

func TestAttachmentThatFailsEndsTheOperation(t *testing.T) {
	c := newCinder(t)
	c.noAttach = true
	client := c.client()
	for range 2 {
		result, err := client.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 1024}})
		var got cloud.Operation
		for i := 0; err == nil && !got.Done && i < 9; i++ {
			got, err = client.GetOperation(t.Context(), result.Operation)
		}
		if err != nil || got.Err == nil || !strings.Contains(got.Err.Detail, `the cloud accepted disk "data", and could not attach it`) || len(c.volumes) != 1 {
			t.Errorf("%+v, %v, %d volumes", got, err, len(c.volumes))
		}
	}
	c.noAttach = false
	c.follow(t, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 2048}}, "data=2048") // the volume of the other size is replaced
	if len(c.volumes) != 1 {
		t.Errorf("%d volumes, want 1", len(c.volumes))
	}
}

// TestFailureOfOneDiskDoesNotKeepAnotherOne has one that could not be enlarged.
func TestFailureOfOneDiskDoesNotKeepAnotherOne(t *testing.T) {
	c := newCinder(t)
	c.someVolume("data", volumeErrorExtends, someID)
	client := c.client()
	result, err := client.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 2048}, cloud.SetDisk{Name: "more", SizeMiB: 1024}})
	var got cloud.Operation
	for i := 0; err == nil && !got.Done && i < 9; i++ {
		got, err = client.GetOperation(t.Context(), result.Operation)
	}
	if err != nil || got.Err == nil || !strings.Contains(got.Err.Detail, `could not enlarge disk "data"`) || !strings.Contains(string(c.disksIn()), "more=1024") {
		t.Errorf("%+v, %v, disks %q", got, err, c.disksIn())
	}
}

// TestRefusalOfOneDiskDoesNotKeepAnotherOne has a quota for one volume.
func TestRefusalOfOneDiskDoesNotKeepAnotherOne(t *testing.T) {
	c := newCinder(t)
	c.room = 1
	update := cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 1024}, cloud.SetDisk{Name: "more", SizeMiB: 1024}}
	c.follow(t, update, "data=1024")
	if _, err := c.client().UpdateServer(t.Context(), someID, update); !cloud.Is(err, cloud.Quota) || !strings.Contains(err.Error(), `disk "more"`) {
		t.Errorf("UpdateServer: %v", err)
	}
}

func TestDiskThatIsAddedIsInTheZoneOfTheOthers(t *testing.T) {
	c := newCinder(t)
	c.builds("data")
	c.volumes[0].Zone = "z2"
	c.follow(t, cloud.Update{cloud.SetDisk{Name: "more", SizeMiB: 1024}}, "data=2048 more=1024")
	if got := c.volumes[1].Zone; got != "z2" {
		t.Errorf("zone %q", got)
	}
}

func TestServerWithoutVolumesCostsNoCall(t *testing.T) {
	c := newCinder(t)
	client := c.client()
	c.taken()
	if _, err := client.GetServer(t.Context(), someID); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ListServers(t.Context(), cloud.ListServers{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"GET" + aboutSome, "GET compute/servers/detail"}, c.taken()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestVolumeNamesAreCut(t *testing.T) {
	if got := volumeName(strings.Repeat("ä", 300), "data"); len([]rune(got)) != maxName || !strings.HasSuffix(got, "ä-data") {
		t.Errorf("volumeName: %s", got)
	}
	if got := volumeName("web", "data"); got != "web-data" {
		t.Errorf("volumeName: %s", got)
	}
}
