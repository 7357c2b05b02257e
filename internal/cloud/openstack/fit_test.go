package openstack

import (
	"slices"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// diskless are flavors of which those without a disk come first by size and by name.
const diskless = `[
	{"id": "f1", "name": "a.small", "vcpus": 1, "ram": 1024, "disk": 0}, {"id": "f2", "name": "small", "vcpus": 1, "ram": 1024, "disk": 10},
	{"id": "f3", "name": "c.small", "vcpus": 1, "ram": 1024, "disk": 40}, {"id": "f4", "name": "large", "vcpus": 4, "ram": 8192, "disk": 80},
	{"id": "f5", "name": "volume", "vcpus": 8, "ram": 8192, "disk": 0}]`

// imagesOfSizes returns images, one of which needs much.
func imagesOfSizes() string {
	return `[{"id": "` + otherID + `", "name": "debian", "owner": "` + projectID + `", "size": 500000000, "min_disk": 0, "min_ram": 0},
		{"id": "` + goldenID + `", "name": "golden", "visibility": "public", "size": null, "min_disk": 20, "min_ram": 512},
		{"id": "` + hiddenID + `", "name": "windows", "visibility": "public", "size": 42949672961, "min_disk": 20, "min_ram": 4096},
		{"id": "` + deletedID + `", "name": "vast", "visibility": "public", "min_disk": 500},
		{"id": "` + someID + `", "name": "monster", "visibility": "public", "min_ram": 65536}]`
}

func TestCreateHasAFlavorThatIsLargeEnoughForTheImage(t *testing.T) {
	tests := map[string]struct {
		req     cloud.CreateServer
		atLeast bool
		// flavor is the id of what is sent, and says what the refusal says if nothing is.
		flavor, says string
	}{
		"of one size: the smallest disk, but not none":     {req: cloud.CreateServer{CPU: 1, MemoryMiB: 1024}, flavor: "f2"},
		"at least a size: the smallest disk, but not none": {req: cloud.CreateServer{CPU: 1, MemoryMiB: 1024}, atLeast: true, flavor: "f2"},
		"one that needs a disk":                            {req: cloud.CreateServer{CPU: 1, MemoryMiB: 1024, Template: "golden"}, flavor: "f3"},
		"the same, by its id":                              {req: cloud.CreateServer{CPU: 1, MemoryMiB: 1024, Template: goldenID}, flavor: "f3"},
		"one that needs memory": {
			req: cloud.CreateServer{CPU: 1, MemoryMiB: 1024, Template: "windows"}, atLeast: true, flavor: "f4",
		},
		"no flavor of the size is large enough": {
			req: cloud.CreateServer{CPU: 1, MemoryMiB: 1024, Template: "windows"},
			says: `no flavor with exactly 1 CPUs and 1024 MiB of memory is large enough for image "windows", which needs a disk of 41 GiB and 4096 MiB of memory; ` +
				`there are: a.small (1 CPUs, 1024 MiB, no disk), c.small (1 CPUs, 1024 MiB, disk of 40 GiB), large (4 CPUs, 8192 MiB, disk of 80 GiB), `,
		},
		"no flavor with a disk is large enough: nova decides about those without": {
			req: cloud.CreateServer{CPU: 1, MemoryMiB: 1024, Template: deletedID}, atLeast: true, flavor: "f1",
			says: `Only volume-backed servers are allowed for flavors with zero disk. (flavor "a.small" has no disk, and no flavor with a disk fits and is large enough for image "` +
				deletedID + `", which needs a disk of 500 GiB)`,
		},
		"no flavor at all is large enough": {
			req: cloud.CreateServer{CPU: 4, Template: "monster"}, atLeast: true,
			says: `no flavor with 4 CPUs or more is large enough for image "monster", which needs 65536 MiB of memory; there are: `,
		},
		"the flavor is named, and has no disk: nova decides": {
			req: cloud.CreateServer{Flavor: "volume"}, flavor: "f5", says: `for flavors with zero disk. (flavor "volume" has no disk)`,
		},
		"the flavor is named": {
			req:  cloud.CreateServer{Flavor: "small", Template: "golden"},
			says: `flavor "small" is too small for image "golden", which needs a disk of 20 GiB and 512 MiB of memory; there are: a.small`,
		},
		"the default flavor": {
			req:  cloud.CreateServer{Template: "golden"},
			says: `flavor "small" is too small for image "golden", which needs a disk of 20 GiB and 512 MiB of memory; there are: a.small`,
		},
		"the default flavor and the default image": {flavor: "f2"},
		"only flavors without a disk: nova decides": {
			req: cloud.CreateServer{CPU: 8, MemoryMiB: 8192}, flavor: "f5", says: `zero disk. (flavor "volume" has no disk, and no flavor with a disk fits`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.offers(diskless, imagesOfSizes())
			c := s.client(func(c *Config) { c.AtLeast = tc.atLeast })
			tc.req.Name = "web"
			for range 2 { // the second time from what is known
				_, err := c.CreateServer(t.Context(), tc.req)
				switch {
				case tc.says == "" && err != nil:
					t.Errorf("CreateServer: %v", err)
				case tc.says != "" && (!cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), tc.says)):
					t.Errorf("CreateServer: %v, want %q", err, tc.says)
				}
				sent := slices.DeleteFunc(s.taken(), func(r string) bool { return !strings.HasPrefix(r, "POST") })
				if len(sent) > 1 || (len(sent) == 1) != (tc.flavor != "") || (len(sent) == 1 && !strings.Contains(sent[0], `"flavorRef":"`+tc.flavor+`"`)) {
					t.Errorf("sent %q, want a create with flavor %q", sent, tc.flavor)
				}
			}
		})
	}
}

func TestResizeKeepsTheDiskLargeEnough(t *testing.T) {
	const unknownID = "e0000000-0d8d-4598-bf32-1cc4b55730d8"
	const medium = `"flavor": {"original_name": "medium", "vcpus": 2, "ram": 2048, "disk": 20}`
	tests := map[string]struct {
		image      string
		to         cloud.Update
		atLeast    bool
		sent, says string
	}{
		"the disk of the server": {image: otherID, to: cloud.Update{cloud.SetCPU(1), cloud.SetMemory(1024)}, sent: "f3"},
		"at least a size: not a smaller disk": {
			image: otherID, to: cloud.Update{cloud.SetCPU(1), cloud.SetMemory(512)}, atLeast: true, sent: "f3",
		},
		"what the image needs": {
			image: hiddenID, to: cloud.Update{cloud.SetCPU(1), cloud.SetMemory(1024)},
			says: `is large enough for image "` + hiddenID + `", which needs a disk of 41 GiB and 4096 MiB of memory; there are: `,
		},
		"a flavor that is named":                      {image: hiddenID, to: cloud.Update{cloud.SetFlavor("small")}, says: `flavor "small" is too small for image`},
		"an image that is gone":                       {image: unknownID, to: cloud.Update{cloud.SetCPU(1), cloud.SetMemory(1024)}, sent: "f3"},
		"a server that boots from a volume: any disk": {to: cloud.Update{cloud.SetCPU(1), cloud.SetMemory(1024)}, atLeast: true, sent: "f1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.resizes(diskless, imagesOfSizes(), tc.image, 20)
			s.on("GET image/images/"+unknownID, `{}`, 404)
			made := `"image": ""`
			if tc.image != "" {
				made = `"image": {"id": "` + tc.image + `"}`
			}
			s.on("GET compute/servers/"+someID, oneServer(`"status": "SHUTOFF"`, medium, made))
			s.on("POST compute/servers/"+someID+"/metadata", `{}`)
			_, err := s.client(func(c *Config) { c.AtLeast = tc.atLeast }).UpdateServer(t.Context(), someID, tc.to)
			switch {
			case tc.says == "" && err != nil:
				t.Fatalf("UpdateServer: %v", err)
			case tc.says != "" && (!cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("UpdateServer: %v, want %q", err, tc.says)
			}
			sent := slices.DeleteFunc(s.taken(), func(r string) bool { return !strings.Contains(r, "/action") })
			if (len(sent) == 1) != (tc.sent != "") || (len(sent) == 1 && !strings.Contains(sent[0], tc.sent)) {
				t.Errorf("sent %q, want a resize to flavor %q", sent, tc.sent)
			}
		})
	}
}
