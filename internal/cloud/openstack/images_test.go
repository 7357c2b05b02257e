package openstack

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	deletedID = "00000000-0d8d-4598-bf32-1cc4b55730d8"
	hiddenID  = "11111111-0d8d-4598-bf32-1cc4b55730d8"
)

// imagesOf returns the images of a listing of servers, by the id of the server.
func imagesOf(t *testing.T, c *Client) map[string]cloud.Image {
	t.Helper()
	page, err := c.ListServers(t.Context(), cloud.ListServers{})
	if err != nil {
		t.Fatalf("ListServers: %v", err)
	}
	images := map[string]cloud.Image{}
	for _, s := range page.Servers {
		images[s.ID] = s.Image
	}
	return images
}

// madeOf returns a server of an image, in the JSON of the compute service.
func madeOf(id, image string) string {
	return strings.Replace(serverJSON(`"image": `+image), someID, id, 1)
}

func TestListingNamesImagesInOneCallAndHiddenOnesInAnother(t *testing.T) {
	s := newStub(t)
	var asked []string
	s.handle("GET image/images", func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("id")+" hidden:"+r.URL.Query().Get("os_hidden"))
		if r.URL.Query().Get("os_hidden") == "true" {
			fmt.Fprintf(w, `{"images": [{"id": %q, "name": "old"}]}`, hiddenID)
			return
		}
		fmt.Fprintf(w, `{"images": [{"id": %q, "name": "debian"}, {"id": %q, "name": "not asked for"}]}`, otherID, someID)
	})
	s.on("GET compute/servers/detail", `{"servers": [`+strings.Join([]string{
		madeOf("a", `{"id": "`+otherID+`", "links": []}`), madeOf("b", `{"id": "`+otherID+`"}`), madeOf("deleted", `{"id": "`+deletedID+`"}`), madeOf("hidden", `{"id": "`+hiddenID+`"}`),
		madeOf("volume", `""`), madeOf("odd", `{"id": "../x"}`), serverJSON(),
	}, ",")+`]}`)
	c := s.client()
	debian := cloud.Image{Name: "debian", ID: otherID}
	want := map[string]cloud.Image{"a": debian, "b": debian, "deleted": {ID: deletedID}, "hidden": {Name: "old", ID: hiddenID}, "volume": {}, "odd": {}, someID: {}}
	for range 2 {
		if diff := cmp.Diff(want, imagesOf(t, c)); diff != "" {
			t.Errorf("images (-want +got):\n%s", diff)
		}
	}
	lookups := []string{"in:" + deletedID + "," + hiddenID + "," + otherID + " hidden:", "in:" + deletedID + "," + hiddenID + " hidden:true"}
	if diff := cmp.Diff(lookups, asked); diff != "" {
		t.Errorf("images that were looked up, in two listings (-want +got):\n%s", diff)
	}
}

func TestListingNeedsNoImageService(t *testing.T) {
	s := newStub(t)
	s.on("GET image/images", `{}`, 403)
	s.on("GET compute/servers/detail", `{"servers": [`+madeOf("a", `{"id": "`+otherID+`"}`)+`]}`)
	c := s.client()
	for range 2 {
		if diff := cmp.Diff(map[string]cloud.Image{"a": {ID: otherID}}, imagesOf(t, c)); diff != "" {
			t.Errorf("images (-want +got):\n%s", diff)
		}
	}
	if got := len(slices.DeleteFunc(s.taken(), func(r string) bool { return r != "GET image/images" })); got != 1 {
		t.Errorf("%d calls of the image service in two listings, want 1: it refused", got)
	}
}

func TestListingNamesABoundedNumberOfImages(t *testing.T) {
	s := newStub(t)
	var asked []int
	s.handle("GET image/images", func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, strings.Count(r.URL.Query().Get("id"), ",")+1)
		fmt.Fprint(w, `{"images": []}`)
	})
	var servers []string
	for i := range maxImages + 5 {
		id := fmt.Sprintf("id-%d", i)
		servers = append(servers, madeOf(id, `{"id": "image-`+id+`"}`))
	}
	s.on("GET compute/servers/detail", `{"servers": [`+strings.Join(servers, ",")+`]}`)
	c := s.client()
	for range 3 {
		if got := len(imagesOf(t, c)); got != maxImages+5 {
			t.Errorf("%d servers, want %d", got, maxImages+5)
		}
	}
	if diff := cmp.Diff([]int{maxImages, maxImages, 5, 5}, asked); diff != "" {
		t.Errorf("images that three listings looked up, each also among the hidden ones (-want +got):\n%s", diff)
	}
}

func TestImageOfACreateIsNamedWithoutACall(t *testing.T) {
	s := newStub(t)
	s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, 202)
	s.on("GET compute/servers/"+someID, oneServer(`"image": {"id": "`+otherID+`"}`))
	c := s.client()
	if _, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"}); err != nil {
		t.Fatalf("CreateServer: %v", err)
	}
	s.taken()
	got, err := c.GetServer(t.Context(), someID)
	if diff := cmp.Diff(cloud.Image{Name: "debian", ID: otherID}, got.Image); err != nil || diff != "" {
		t.Errorf("%v, image (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"GET compute/servers/" + someID}, s.taken()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestNoServerIsCreatedFromTheImageOfAServer(t *testing.T) {
	for kind, properties := range map[string]string{
		"a VMSnapshot": `"privatecloud:snapshot": "ns-snap-0123456789ab"`, "a snapshot or a shelved server": `"image_type": "snapshot", "instance_uuid": "` + someID + `"`,
		"a backup": `"image_type": "backup", "instance_uuid": "` + someID + `"`, "a snapshot without a server": `"image_type": "snapshot"`, "a server that boots from a volume": `"block_device_mapping": "[{\"snapshot_id\": \"x\"}]", "root_device_name": "/dev/vda"`, "of a server alone": `"instance_uuid": "` + someID + `"`,
	} {
		for name, tc := range map[string]struct{ template, says string }{
			"by its name":                  {"prod-db", "no image that can be used is named"},
			"by its id":                    {otherID, "was made from a server"},
			"another":                      {"nothing", "there are none"},
			"with the name of the default": {"debian", "no image that can be used is named"},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				s := newStub(t)
				listed := "prod-db"
				if tc.template == "debian" && kind == "a VMSnapshot" {
					listed = "debian"
				}
				s.on("GET image/images", `{"images": [{"id": "`+otherID+`", "name": "`+listed+`", "owner": "`+projectID+`", `+properties+`}]}`)
				s.on("GET image/images/"+otherID, `{"id": "`+otherID+`", "name": "renamed", `+properties+`}`)
				_, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web", Template: tc.template})
				if !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("CreateServer: %v, want it Rejected with %q", err, tc.says)
				}
				if tc.template != "prod-db" && strings.Contains(cloud.PublicMessage(err), "prod-db") {
					t.Errorf("message %q, want it without the name of the server", cloud.PublicMessage(err))
				}
				if sent := changesOf(s.taken()); len(sent) > 0 {
					t.Errorf("sent %v, want nothing", sent)
				}
			})
		}
	}
}

func TestPublicImageOfAServerIsATemplate(t *testing.T) {
	s := newStub(t)
	s.on("GET image/images", `{"images": [{"id": "`+otherID+`", "name": "golden", "visibility": "public", "image_type": "snapshot", "instance_uuid": "`+someID+`"}]}`)
	s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, 202)
	if _, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web", Template: "golden"}); err != nil {
		t.Errorf("CreateServer: %v", err)
	}
}

func TestSnapshotWithTheNameOfTheDefaultImageChangesNothing(t *testing.T) {
	s := newStub(t)
	s.on("GET image/images", `{"images": [{"id": "`+otherID+`", "name": "debian", "owner": "`+projectID+`", "image_type": "snapshot"}, {"id": "`+someID+`", "name": "debian", "owner": "`+projectID+`"}]}`)
	var sent string
	s.handle("POST compute/servers", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, `{"server": {"id": %q}}`, someID)
	})
	if _, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web"}); err != nil || !strings.Contains(sent, someID) {
		t.Errorf("CreateServer: %v, sent %s, want image %s", err, sent, someID)
	}
}

// TestDefaultImageMayBeThatOfAServer: an administrator chooses it.
func TestDefaultImageMayBeThatOfAServer(t *testing.T) {
	for name, template := range map[string]string{"no template": "", "the template is the default": "debian"} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.on("GET image/images", `{"images": [{"id": "`+otherID+`", "name": "debian", "owner": "`+projectID+`", "image_type": "snapshot", "instance_uuid": "`+someID+`"}]}`)
			s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, 202)
			if _, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web", Template: template}); err != nil {
				t.Errorf("CreateServer: %v", err)
			}
		})
	}
}

func TestZoneNamesNoHost(t *testing.T) {
	for _, zone := range []string{"nova:compute-7", "nova:compute-7:node-1", "nova::node-1", ":compute-7"} {
		s := newStub(t)
		_, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web", Zone: zone})
		if !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), "no availability zone") {
			t.Errorf("zone %q: %v, want it Rejected", zone, err)
		}
		if sent := changesOf(s.taken()); len(sent) > 0 {
			t.Errorf("zone %q: sent %v, want nothing", zone, sent)
		}
	}
}

func TestNamesOfImagesAreBounded(t *testing.T) {
	names := newImageNames(nil)
	for i := range maxImageNames + 1 {
		names.put(fmt.Sprint(i), "debian")
	}
	names.put("long", strings.Repeat("x", maxName+1))
	if got := len(names.names); got != 2 {
		t.Errorf("%d names are kept, want 2: those after the bound", got)
	}
	if got := names.of("long"); got != "" {
		t.Errorf("a name of %d characters is kept", len(got))
	}
}
