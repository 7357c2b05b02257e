package openstack

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestRootDiskIsAVolume(t *testing.T) {
	const flavors = `[{"id": "f1", "name": "none", "vcpus": 1, "ram": 1024, "disk": 0}, {"id": "f2", "name": "disk", "vcpus": 2, "ram": 1024, "disk": 30}]`
	const images = `[{"id": "` + otherID + `", "name": "debian", "owner": "` + projectID + `", "min_disk": 3}]`
	tests := map[string]struct {
		req  cloud.CreateServer
		want map[string]any
		says string
	}{
		"a size": {req: cloud.CreateServer{CPU: 1, RootDisk: cloud.RootDisk{SizeMiB: 20 << 10}}, want: map[string]any{"volume_size": 20.0}},
		"a size and a type": {
			req:  cloud.CreateServer{CPU: 1, RootDisk: cloud.RootDisk{SizeMiB: 20 << 10, Type: "fast"}},
			want: map[string]any{"volume_size": 20.0, "volume_type": "fast"},
		},
		"a type, as large as the disk of the flavor":              {req: cloud.CreateServer{CPU: 2, RootDisk: cloud.RootDisk{Type: "fast"}}, want: map[string]any{"volume_size": 30.0, "volume_type": "fast"}},
		"a type, as large as the image needs":                     {req: cloud.CreateServer{CPU: 1, RootDisk: cloud.RootDisk{Type: "fast"}}, want: map[string]any{"volume_size": 3.0, "volume_type": "fast"}},
		"smaller than the image needs":                            {req: cloud.CreateServer{CPU: 1, RootDisk: cloud.RootDisk{SizeMiB: 2 << 10}}, says: `a root disk of 2 GiB is too small for image "debian", which needs a disk of 3 GiB`},
		"a size that is no whole GiB":                             {req: cloud.CreateServer{CPU: 1, RootDisk: cloud.RootDisk{SizeMiB: 5000}}, says: "the size of the root disk is no whole number of GiB"},
		"no root disk, and a flavor without one: says what helps": {req: cloud.CreateServer{CPU: 1}, says: `(flavor "none" has no disk, and no flavor with a disk fits and is large enough for image "debian", which needs a disk of 3 GiB: give the VM a rootDisk)`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCinder(t)
			c.offers(flavors, images)
			offered := c.answers["POST compute/servers"]
			var sent struct {
				Server struct {
					ImageRef string `json:"imageRef"`
					Metadata map[string]string
					Devices  []map[string]any `json:"block_device_mapping_v2"`
				}
			}
			c.handle("POST compute/servers", func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				_ = json.Unmarshal(body, &sent)
				if len(sent.Server.Devices) == 0 {
					r.Body = io.NopCloser(strings.NewReader(string(body)))
					offered(w, r)
					return
				}
				w.WriteHeader(http.StatusAccepted)
				_, _ = io.WriteString(w, `{"server": {"id": "`+someID+`"}}`)
			})
			tc.req.Name = "web"
			_, err := c.client().CreateServer(t.Context(), tc.req)
			if tc.says != "" {
				if !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("CreateServer: %v, want %q", err, tc.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"source_type": "image", "destination_type": "volume", "uuid": otherID, "boot_index": 0.0, "delete_on_termination": true, "tag": "_root"}
			maps.Copy(want, tc.want)
			if diff := cmp.Diff([]map[string]any{want}, sent.Server.Devices); diff != "" || sent.Server.ImageRef != "" || sent.Server.Metadata[imageKey] != otherID {
				t.Errorf("image %q, devices (-want +got):\n%s", sent.Server.ImageRef, diff)
			}
		})
	}
}

// TestRootDiskGrows has a server that boots from a volume, beside a disk that is added and one that was there.
func TestRootDiskGrows(t *testing.T) {
	c := newCinder(t)
	c.builds(rootDisk, "data")
	update := cloud.Update{cloud.SetRootDisk(4096), cloud.SetDisk{Name: "more", SizeMiB: 1024, Type: "fast"}}
	c.follow(t, update, "data=2048 more=1024")
	got, err := c.client().GetServer(t.Context(), someID)
	if want := (cloud.RootDisk{SizeMiB: 4096}); err != nil || got.RootDisk != want || c.volumes[0].Name != "web-root" {
		t.Errorf("GetServer: %+v, %v; the volume is named %s", got.RootDisk, err, c.volumes[0].Name)
	}
	if _, err := c.client().UpdateServer(t.Context(), someID, cloud.Update{cloud.SetRootDisk(1024)}); !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), "the root disk has 4 GiB") {
		t.Errorf("UpdateServer: %v", err)
	}
}

func TestRootDiskOfAFlavorDoesNotGrow(t *testing.T) {
	c := newCinder(t)
	c.on("GET"+aboutSome, `{"server": {"id": "`+someID+`", "name": "web", "status": "ACTIVE", "image": {"id": "`+otherID+`"}, "flavor": {"original_name": "small", "vcpus": 1, "ram": 1024, "disk": 10}}}`)
	c.on("GET image/images/"+otherID, `{"id": "`+otherID+`", "name": "debian"}`)
	client := c.client()
	got, err := client.GetServer(t.Context(), someID)
	if want := (cloud.RootDisk{SizeMiB: 10 << 10}); err != nil || got.RootDisk != want {
		t.Errorf("GetServer: %+v, %v", got.RootDisk, err)
	}
	_, err = client.UpdateServer(t.Context(), someID, cloud.Update{cloud.SetRootDisk(20 << 10)})
	if !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), `the root disk is that of flavor "small"`) || c.changes > 0 {
		t.Errorf("UpdateServer: %v, %d changes", err, c.changes)
	}
}

func TestVolumeQuotaIsAQuota(t *testing.T) {
	c := newCinder(t)
	for _, message := range []string{
		"VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded for quota 'volumes'.",
		"VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested 5G, quota is 10G and 8G has been consumed.",
		"VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes_ceph-ssd quota. Requested 5G, quota is 1G and 0G has been consumed.",
	} {
		c.block = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				_, _ = io.WriteString(w, `{"volumes": []}`)
				return
			}
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			_ = json.NewEncoder(w).Encode(map[string]any{"overLimit": map[string]any{"code": 413, "message": message}})
		})
		_, err := c.client().UpdateServer(t.Context(), someID, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 1024}})
		if got, want := outcomeOf(err), (outcome{Kind: cloud.Quota}); got != want || !strings.Contains(err.Error(), `disk "data": `+message) {
			t.Errorf("UpdateServer: %v", err)
		}
	}
}

func TestUnknownTypeOfADiskIsRejectedBeforeAnotherDiskChanges(t *testing.T) {
	c := newCinder(t)
	c.builds("data")
	_, err := c.client().UpdateServer(t.Context(), someID, cloud.Update{cloud.SetDisk{Name: "data", SizeMiB: 4096}, cloud.SetDisk{Name: "more", SizeMiB: 1024, Type: "nope"}})
	if got, want := outcomeOf(err), (outcome{Kind: cloud.Rejected}); got != want || !strings.Contains(err.Error(), `no volume type is named "nope"; there are: a type, fast`) {
		t.Errorf("UpdateServer: %v", err)
	}
	if sent := changesOf(c.taken()); len(sent) > 0 {
		t.Errorf("sent %q", sent)
	}
	c.follow(t, cloud.Update{cloud.SetDisk{Name: "more", SizeMiB: 1024, Type: "fast"}}, "data=2048 more=1024")
	if got := c.volumes[1].Type; got != "fast" {
		t.Errorf("type %q", got)
	}
}
