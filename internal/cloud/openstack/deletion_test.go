package openstack

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

const deleting = `"OS-EXT-STS:task_state": "deleting"`

func TestSnapshotsAreDeletedBeforeTheirServer(t *testing.T) {
	const (
		inUse     = `{"message": "Image could not be deleted because it is in use", "code": "409 Conflict", "title": "Conflict"}`
		protected = `{"message": "Image is protected", "code": "403 Forbidden", "title": "Forbidden"}`
	)
	server, first, second := "DELETE"+aboutSome, "DELETE"+aboutImages+"/i1", "DELETE"+aboutImages+"/i2"
	for name, tc := range map[string]struct {
		images string
		answer string
		status int
		want   outcome
		sent   []string
	}{
		"none":                                   {images: images(), sent: []string{server}},
		"two, in the order of their ages":        {images: images(imageJSON("i2", `"created_at": "2026-01-03T00:00:00Z"`), imageJSON("i1")), status: 204, sent: []string{first, second, server}},
		"one of a person: it stays":              {images: images(imageJSON("i1", `"privatecloud:snapshot": ""`)), sent: []string{server}},
		"one that has inherited the mark: stays": {images: images(imageJSON("i1", `"name": "by-hand"`)), sent: []string{server}},
		"one of a former owner: it stays":        {images: images(imageJSON("i1", `"privatecloud:owner": "u-0"`)), sent: []string{server}},
		"one of another server: it stays":        {images: images(imageJSON("i1", `"instance_uuid": "x"`)), sent: []string{server}},
		"one that is being taken":                {images: images(imageJSON("i1", `"status": "saving"`)), status: 204, sent: []string{first, server}},
		"one that is gone meanwhile":             {images: images(imageJSON("i1")), answer: `{"message": "no image i1", "code": "404 Not Found", "title": "Not Found"}`, status: 404, sent: []string{first, server}},
		"one that is protected: it stays":        {images: images(imageJSON("i1")), answer: protected, status: 403, sent: []string{first, server}},
		"one in use: once the server is gone":    {images: images(imageJSON("i1")), answer: inUse, status: 409, sent: []string{first, server, first}},
		"no answer: the server is not deleted":   {images: images(imageJSON("i1")), status: 500, want: outcome{Kind: cloud.Unavailable}, sent: []string{first, first, first}},
		"a 404 of a proxy: it is not deleted":    {images: images(imageJSON("i1")), answer: "<html>", status: 404, want: outcome{Kind: cloud.Unavailable}, sent: []string{first}},
		"no listing: they stay":                  {images: `{}`, sent: []string{server}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			c := s.client()
			s.on("GET"+aboutImages, tc.images)
			s.on("GET"+aboutSome, oneServer(owned, deleting))
			s.on(server, "", http.StatusNoContent)
			for _, image := range []string{first, second} {
				s.on(image, tc.answer, max(tc.status, 200))
			}
			result, err := c.DeleteServer(t.Context(), someID)
			if diff := cmp.Diff(tc.want, outcomeOf(err)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if err == nil {
				s.on("GET"+aboutSome, novaNotFound, http.StatusNotFound)
				if ended, err := c.GetOperation(t.Context(), result.Operation); err != nil || !ended.Done {
					t.Errorf("GetOperation: %+v, %v, want it done", ended, err)
				}
			}
			if diff := cmp.Diff(tc.sent, changesOf(s.taken())); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSnapshotsOfALockedServerStay(t *testing.T) {
	s := newStub(t)
	s.on("GET"+aboutImages, images(imageJSON("i1")))
	s.on("GET"+aboutSome, oneServer(owned, `"locked": true`))
	_, err := s.client().DeleteServer(t.Context(), someID)
	if !cloud.Is(err, cloud.Busy) || !strings.Contains(err.Error(), "unlock it") {
		t.Errorf("DeleteServer: %v, want an error that says what to do", err)
	}
	if sent := changesOf(s.taken()); len(sent) > 0 {
		t.Errorf("sent %v, want nothing: the server stays, and so must its snapshots", sent)
	}
}

func TestDeletionOfAServerWithoutSnapshotsCostsOneListingMore(t *testing.T) {
	s := newStub(t)
	s.on("GET"+aboutImages, images())
	s.on("DELETE"+aboutSome, "", http.StatusNoContent)
	s.on("GET"+aboutSome, novaNotFound, http.StatusNotFound)
	if _, err := s.client().DeleteServer(t.Context(), someID); err != nil {
		t.Fatalf("DeleteServer: %v", err)
	}
	if diff := cmp.Diff([]string{"GET" + aboutImages, "DELETE" + aboutSome, "GET" + aboutSome}, s.taken()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}
