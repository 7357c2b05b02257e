package openstack

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

const deleting = `"OS-EXT-STS:task_state": "deleting"`

func TestSnapshotsOfAServerThatIsGoneAreDeleted(t *testing.T) {
	const (
		inUse        = `{"message": "Image could not be deleted because it is in use", "code": "409 Conflict", "title": "Conflict"}`
		unauthorized = `{"message": "You are not authorized to complete delete_image action.", "code": "403 Forbidden", "title": "Forbidden"}`
		protected    = `{"message": "Image is protected", "code": "403 Forbidden", "title": "Forbidden"}`
	)
	first, second := "DELETE"+aboutImages+"/i1", "DELETE"+aboutImages+"/i2"
	for name, tc := range map[string]struct {
		images string
		listed int
		answer string
		status int
		server string
		want   outcome
		sent   []string
	}{
		"none":                                              {images: images()},
		"two, in the order of their ages":                   {images: images(imageJSON("i2", `"created_at": "2026-01-03T00:00:00Z"`), imageJSON("i1")), status: 204, sent: []string{first, second}},
		"one of a person: it stays":                         {images: images(imageJSON("i1", `"privatecloud:snapshot": ""`))},
		"one that has inherited the mark: stays":            {images: images(imageJSON("i1", `"name": "by-hand"`))},
		"one of a former owner: it stays":                   {images: images(imageJSON("i1", `"privatecloud:owner": "u-0"`))},
		"one of another server: it stays":                   {images: images(imageJSON("i1", `"instance_uuid": "x"`))},
		"one that is being taken":                           {images: images(imageJSON("i1", `"status": "saving"`)), status: 204, sent: []string{first}},
		"one that the server uses, which the cloud keeps":   {images: images(imageJSON("i1")), answer: inUse, status: 409, server: oneServer(`"status": "SOFT_DELETED"`), want: outcome{Kind: cloud.Busy}, sent: []string{first}},
		"one that is in use, while compute does not answer": {images: images(imageJSON("i1")), answer: inUse, status: 409, server: "<html>", want: outcome{Kind: cloud.Unreadable}, sent: []string{first}},
		"one that is protected, while the service fails":    {images: images(imageJSON("i1", `"protected": true`)), status: 500, want: outcome{Kind: cloud.Unavailable, Uncertain: true}, sent: []string{first}},
		"one that is gone meanwhile":                        {images: images(imageJSON("i1")), answer: `{"message": "no image i1", "code": "404 Not Found", "title": "Not Found"}`, status: 404, sent: []string{first}},
		"one that is protected: it stays":                   {images: images(imageJSON("i1", `"protected": true`), imageJSON("i2", `"protected": true`)), answer: protected, status: 403, sent: []string{first, second}},
		"the account may not delete it: an error":           {images: images(imageJSON("i1"), imageJSON("i2")), answer: unauthorized, status: 403, want: outcome{Kind: cloud.Forbidden}, sent: []string{first}},
		"one that another server uses: it stays":            {images: images(imageJSON("i1"), imageJSON("i2")), answer: inUse, status: 409, sent: []string{first, second}},
		"no answer: it is tried again":                      {images: images(imageJSON("i1"), imageJSON("i2")), status: 500, want: outcome{Kind: cloud.Unavailable, Uncertain: true}, sent: []string{first}},
		"a 404 of a proxy: it is tried again":               {images: images(imageJSON("i1")), answer: "<html>", status: 404, want: outcome{Kind: cloud.NotFoundUnproven}, sent: []string{first}},
		"no listing: it is tried again":                     {images: `{}`, listed: 503, want: outcome{Kind: cloud.Unavailable}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			s.on("GET"+aboutImages, tc.images, max(tc.listed, 200))
			s.on("GET"+aboutSome, tc.server)
			if tc.server == "" {
				s.on("GET"+aboutSome, novaNotFound, http.StatusNotFound)
			}
			for _, image := range []string{first, second} {
				s.on(image, tc.answer, max(tc.status, 200))
			}
			err := s.client().DeleteSnapshots(t.Context(), someID, "u-1")
			if diff := cmp.Diff(tc.want, outcomeOf(err)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff(tc.sent, changesOf(s.taken())); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

// Compute refuses a deletion that its policy forbids, and one of a server that is locked.
func TestDeletionThatIsRefusedLosesNoSnapshot(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		want   cloud.Kind
	}{"forbidden": {http.StatusForbidden, cloud.Forbidden}, "locked": {http.StatusConflict, cloud.Busy}} {
		s := newStub(t)
		s.on("GET"+aboutImages, images(imageJSON("i1")))
		s.on("GET"+aboutSome, oneServer(owned))
		s.on("DELETE"+aboutImages+"/i1", "", http.StatusNoContent)
		s.on("DELETE"+aboutSome, `{"forbidden": {"message": "Policy does not allow it"}}`, tc.status)
		if _, err := s.client().DeleteServer(t.Context(), someID); !cloud.Is(err, tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
		if diff := cmp.Diff([]string{"DELETE" + aboutSome}, s.taken()); diff != "" {
			t.Errorf("%s: sent (-want +got):\n%s", name, diff)
		}
	}
}
