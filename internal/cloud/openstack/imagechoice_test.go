package openstack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// ofName returns an image named web in the JSON of the image service, with fields that are added.
func ofName(id, created string, fields ...string) string {
	return fmt.Sprintf(`{"id": %q, "name": "web", "created_at": %q, %s}`, id, created, strings.Join(fields, ", "))
}

func TestImageOfANameIsTheNewestOfTheProject(t *testing.T) {
	const (
		own, public  = `"owner": "` + projectID + `", "visibility": "private"`, `"owner": "another", "visibility": "public"`
		shared       = `"owner": "another", "visibility": "shared"`
		community    = `"owner": "another", "visibility": "community"`
		private      = `"owner": "another", "visibility": "private"` // administrators see it
		snapshot     = own + `, "image_type": "snapshot", "instance_uuid": "` + someID + `"`
		old, recent  = "2025-01-02T03:04:05Z", "2026-01-02T03:04:05Z"
		a, b         = "aaaaaaaa-0d8d-4598-bf32-1cc4b55730d8", "bbbbbbbb-0d8d-4598-bf32-1cc4b55730d8"
		ofAnother    = `image "web" belongs to another project, which could give its name to another image: use its id`
		noneOfServer = `no image that can be used is named "web"`
	)
	tests := map[string]struct {
		images     []string
		want, says string
	}{
		"two of the project: the newer":                   {images: []string{ofName(a, old, own), ofName(b, recent, own)}, want: b},
		"two of the project, in the other order":          {images: []string{ofName(b, recent, own), ofName(a, old, own)}, want: b},
		"two public ones: the newer":                      {images: []string{ofName(a, recent, public), ofName(b, old, public)}, want: a},
		"two of one time: the first by id":                {images: []string{ofName(b, recent, own), ofName(a, recent, own)}, want: a},
		"no time that can be read: the other":             {images: []string{ofName(a, "yesterday", own), ofName(b, old, own)}, want: b},
		"of the project, and a newer public one":          {images: []string{ofName(a, old, own), ofName(b, recent, public)}, want: a},
		"public, and a newer one of another project":      {images: []string{ofName(a, old, public), ofName(b, recent, shared)}, want: a},
		"of the project, and a newer community image":     {images: []string{ofName(b, recent, community), ofName(a, old, own)}, want: a},
		"of the project, and a newer snapshot":            {images: []string{ofName(a, old, own), ofName(b, recent, snapshot)}, want: a},
		"shared only":                                     {images: []string{ofName(a, recent, shared)}, says: ofAnother},
		"community only":                                  {images: []string{ofName(a, recent, community)}, says: ofAnother},
		"private in another project only":                 {images: []string{ofName(a, recent, private)}, says: ofAnother},
		"a snapshot of another project only":              {images: []string{ofName(a, recent, shared, `"image_type": "snapshot"`)}, says: noneOfServer},
		"a snapshot only":                                 {images: []string{ofName(a, recent, snapshot)}, says: noneOfServer},
		"no owner is known, and it is not a public one":   {images: []string{ofName(a, recent, `"owner": null, "visibility": "shared"`)}, says: ofAnother},
		"no owner is known, and it is one that is public": {images: []string{ofName(a, recent, `"owner": null, "visibility": "public"`)}, want: a},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.offers(diskless, "["+strings.Join(tc.images, ", ")+"]")
			result, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "vm", Template: "web"})
			if tc.says != "" && (!cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("CreateServer: %v, want it Rejected with %q", err, tc.says)
			}
			if tc.says == "" && (err != nil || result.Server.Image != cloud.Image{Name: "web", ID: tc.want}) {
				t.Errorf("CreateServer = %+v, %v; want image %s", result.Server.Image, err, tc.want)
			}
			if sent := changesOf(s.taken()); (len(sent) == 1) != (tc.want != "") || len(sent) == 1 && !strings.Contains(sent[0], tc.want) {
				t.Errorf("sent %q, want image %q", sent, tc.want)
			}
		})
	}
}

// The administrator chose the name of the default image: it may be that of the only image of another project.
func TestDefaultImageMayBeShared(t *testing.T) {
	shared := func(id string) string {
		return ofName(id, "2026-01-02T03:04:05Z", `"owner": "another", "visibility": "shared"`)
	}
	for name, tc := range map[string]struct {
		images string
		want   cloud.Kind
	}{
		"one":                            {images: shared(goldenID)},
		"two":                            {images: shared(goldenID) + ", " + shared(someID), want: cloud.Misconfigured},
		"one beside a public one":        {images: shared(someID) + ", " + ofName(goldenID, "2020-01-02T03:04:05Z", `"visibility": "public"`)},
		"two beside one of our own":      {images: shared(someID) + ", " + shared(otherID) + ", " + ofName(goldenID, "2020-01-02T03:04:05Z", `"owner": "`+projectID+`"`)},
		"one, and another is a snapshot": {images: shared(goldenID) + ", " + ofName(someID, "2026-01-02T03:04:05Z", `"owner": "another", "image_type": "snapshot"`)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.offers(diskless, "["+tc.images+"]")
			result, err := s.client(func(c *Config) { c.Image = "web" }).CreateServer(t.Context(), cloud.CreateServer{Name: "vm"})
			if cloud.KindOf(err) != tc.want || err == nil && result.Server.Image.ID != goldenID {
				t.Errorf("CreateServer: image %q, %v, want the kind %q", result.Server.Image.ID, err, tc.want)
			}
		})
	}
}

func TestSharedImageIsUsedByItsID(t *testing.T) {
	s := newStub(t)
	s.offers(diskless, "["+ofName(goldenID, "2026-01-02T03:04:05Z", `"owner": "another", "visibility": "shared"`)+"]")
	if _, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "vm", Template: goldenID}); err != nil {
		t.Errorf("CreateServer: %v", err)
	}
}

func TestImagesInMessagesAreThoseThatCanBeUsed(t *testing.T) {
	s := newStub(t)
	var images []string
	for name, fields := range map[string]map[string]string{
		"own": {"owner": projectID}, "public": {"visibility": "public"}, "of-another": {"owner": "another", "visibility": "shared"},
		"of-a-server": {"owner": projectID, "image_type": "snapshot"},
	} {
		fields["id"], fields["name"] = name, name
		text, _ := json.Marshal(fields)
		images = append(images, string(text))
	}
	slices.Sort(images)
	s.offers(diskless, "["+strings.Join(images, ", ")+"]")
	_, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "vm", Template: "absent"})
	if !cloud.Is(err, cloud.Rejected) || !strings.HasSuffix(err.Error(), `is named "absent"; there are: own, public`) {
		t.Errorf("CreateServer: %v, want it Rejected with the images that can be used", err)
	}
}

// The image service takes what precedes a colon for an operator. Other services with its API may not know operators.
func TestNameOfAnImageMayHaveAColon(t *testing.T) {
	for name, want := range map[string]string{"in:debian:12": "eq:in:debian:12", "debian-12": "debian-12"} {
		s := newStub(t)
		var asked []string
		s.offers(diskless, `[{"id": "`+goldenID+`", "name": "`+name+`", "owner": "`+projectID+`"}]`)
		listed := s.answers["GET image/images"]
		s.handle("GET image/images", func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Query().Get("name"))
			listed(w, r)
		})
		result, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "vm", Template: name})
		if image := (cloud.Image{Name: name, ID: goldenID}); err != nil || result.Server.Image != image {
			t.Errorf("CreateServer: image %+v, %v, want %+v", result.Server.Image, err, image)
		}
		if !slices.Equal(asked, []string{want}) {
			t.Errorf("image %s: asked for the names %q, want %q", name, asked, want)
		}
	}
}
