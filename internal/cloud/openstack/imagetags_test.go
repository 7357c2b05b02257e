package openstack

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
)

// imageWith returns an image in the JSON of the image service, with fields that are added.
func imageWith(id, created string, tags []string, fields ...string) string {
	return fmt.Sprintf(`{"id": %q, "name": "web", "created_at": %q, "tags": [%s], %s}`, id, created, `"`+strings.Join(tags, `", "`)+`"`, strings.Join(fields, ", "))
}

func TestImageOfTagsIsTheNewestOfTheProject(t *testing.T) {
	const (
		own, public  = `"owner": "` + projectID + `", "visibility": "private"`, `"owner": "another", "visibility": "public"`
		shared       = `"owner": "another", "visibility": "shared"`
		old, recent  = "2025-01-02T03:04:05Z", "2026-01-02T03:04:05Z"
		a, b         = "aaaaaaaa-0d8d-4598-bf32-1cc4b55730d8", "bbbbbbbb-0d8d-4598-bf32-1cc4b55730d8"
		ofTags       = "tags:stable, debian,stable"
		none         = `no active image of the project, and no public one, has the tags "debian, stable"`
		madeOfServer = `the images with the tags "debian, stable" were made from servers`
	)
	both := []string{"x", "stable", "debian"}
	tests := map[string]struct {
		template   string
		images     []string
		want, says string
	}{
		"two of the project: the newer":          {images: []string{imageWith(a, old, both, own), imageWith(b, recent, both, own)}, want: b},
		"two public ones: the newer":             {images: []string{imageWith(a, recent, both, public), imageWith(b, old, both, public)}, want: a},
		"of the project, and a newer public one": {images: []string{imageWith(a, old, both, own), imageWith(b, recent, both, public)}, want: a},
		"a newer one lacks a tag":                {images: []string{imageWith(a, old, both, public), imageWith(b, recent, []string{"debian"}, own)}, want: a},
		"a newer one is a snapshot":              {images: []string{imageWith(a, old, both, own), imageWith(b, recent, both, own, `"image_type": "snapshot"`)}, want: a},
		"a newer one is shared":                  {images: []string{imageWith(a, old, both, own), imageWith(b, recent, both, shared)}, want: a},
		"one of two tags":                        {template: "tags:debian", images: []string{imageWith(a, recent, both, own)}, want: a},
		"shared only":                            {images: []string{imageWith(a, recent, both, shared)}, says: none},
		"a snapshot only":                        {images: []string{imageWith(a, recent, both, own, `"image_type": "snapshot"`)}, says: madeOfServer},
		"a tag in another case":                  {images: []string{imageWith(a, recent, []string{"Debian", "stable"}, own)}, says: none},
		"a part of a tag":                        {images: []string{imageWith(a, recent, []string{"debian", "unstable"}, own)}, says: none},
		"an empty tag":                           {template: "tags:debian,", images: []string{imageWith(a, recent, both, own)}, says: `"tags:debian," has an empty tag: write tags:TAG, or tags:TAG,TAG`},
		"no tag":                                 {template: "tags: ", images: []string{imageWith(a, recent, both, own)}, says: `"tags: " has an empty tag`},
		"as many tags as may be":                 {template: "tags:1,2,3,4,5,6,7,8,1", images: []string{imageWith(a, recent, strings.Split("8,7,6,5,4,3,2,1", ","), own)}, want: a},
		"more tags":                              {template: "tags:1,2,3,4,5,6,7,8,9", images: []string{imageWith(a, recent, strings.Split("9,8,7,6,5,4,3,2,1", ","), own)}, says: "has 9 tags: give at most 8"},
		"an image without an id":                 {images: []string{imageWith("a/b", recent, both, own)}, says: "an image has no id"},
	}
	for name, tc := range tests {
		for _, filtering := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, filtering: %t", name, filtering), func(t *testing.T) {
				s := newStub(t)
				images := "[" + strings.Join(tc.images, ", ") + "]"
				s.offers(diskless, images)
				if !filtering {
					s.on("GET image/images", `{"images": `+images+`}`)
				}
				template := cmp.Or(tc.template, ofTags)
				c := s.client()
				for range 2 { // the second create uses what the first one found
					result, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "vm", Template: template})
					if tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
						t.Errorf("CreateServer: %v, want an error with %q", err, tc.says)
					}
					if tc.says == "" && (err != nil || result.Server.Image != cloud.Image{Name: "web", ID: tc.want}) {
						t.Errorf("CreateServer: image %+v, %v; want %s", result.Server.Image, err, tc.want)
					}
					if sent := changesOf(s.taken()); (len(sent) == 1) != (tc.want != "") || len(sent) == 1 && !strings.Contains(sent[0], tc.want) {
						t.Errorf("sent %q, want image %q", sent, tc.want)
					}
				}
				result, err := s.client(func(c *Config) { c.Image = template }).CreateServer(t.Context(), cloud.CreateServer{Name: "vm"})
				if tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) || tc.says == "" && result.Server.Image.ID != tc.want {
					t.Errorf("CreateServer with the tags as the default: image %+v, %v", result.Server.Image, err)
				}
			})
		}
	}
}

func TestImagesOfTagsAreListedByTheService(t *testing.T) {
	s := newStub(t)
	var asked []url.Values
	s.handle("GET image/images", func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query())
		fmt.Fprint(w, `{"images": []}`)
	})
	_, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "vm", Template: "tags:b, a"})
	if !cloud.Is(err, cloud.Rejected) || len(asked) != 2 {
		t.Fatalf("CreateServer: %v, asked %v, want it Rejected after two listings", err, asked)
	}
	for i, key := range []string{"owner", "visibility"} {
		want := url.Values{"tag": {"a", "b"}, "status": {"active"}, "sort": {"created_at:desc"}, "limit": {fmt.Sprint(pageSize)}, key: {[]string{projectID, "public"}[i]}}
		if asked[i].Encode() != want.Encode() {
			t.Errorf("asked for %v, want %v", asked[i], want)
		}
	}
}

func TestFailureToListTagsSaysWhatWasLookedFor(t *testing.T) {
	for status, kind := range map[int]cloud.Kind{http.StatusForbidden: cloud.Unauthorized, http.StatusInternalServerError: cloud.Unavailable} {
		s := newStub(t)
		s.handle("GET image/images", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		_, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "vm", Template: "tags:a"})
		if !cloud.Is(err, kind) || !strings.Contains(err.Error(), `looking for an image with the tags "a"`) {
			t.Errorf("status %d: %v, want %s", status, err, kind)
		}
	}
}

// A create that is refused may name an image that was replaced since it was found.
func TestImageOfTagsIsLookedForAgainAfterARefusal(t *testing.T) {
	s := newStub(t)
	image := imageWith(someID, "2025-01-02T03:04:05Z", []string{"a"}, `"owner": "`+projectID+`"`)
	s.offers(diskless, "["+image+"]")
	c, req := s.client(), cloud.CreateServer{Name: "vm", Template: "tags:a"}
	if _, err := c.CreateServer(t.Context(), req); err != nil {
		t.Fatalf("CreateServer: %v", err)
	}
	s.offers(diskless, "["+strings.ReplaceAll(image, someID, otherID)+"]")
	_, _ = c.CreateServer(t.Context(), req)
	result, err := c.CreateServer(t.Context(), req)
	if err != nil || result.Server.Image.ID != otherID {
		t.Errorf("CreateServer: image %+v, %v, want that which replaced the first one", result.Server.Image, err)
	}
	if sent := s.taken(); !slices.ContainsFunc(sent, func(r string) bool { return strings.Contains(r, otherID) }) {
		t.Errorf("sent %q", sent)
	}
}
