package openstack

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	snapshotName = "ns-before-0123456789ab"
	aboutImages  = " image/images"
	aboutTaken   = aboutImages + "/" + otherID
	noImage      = `{"message": "No image found with ID ` + otherID + `<br /><br />\n\n\n", "code": "404 Not Found", "title": "Not Found"}`
	booted       = `"image": {"id": "` + otherID + `"}`
	owned        = `"metadata": {"owner:2fuid": "u-1"}`
)

// imageJSON is an image that was made from a server, with fields that are added or replaced.
func imageJSON(id string, fields ...string) string {
	base := fmt.Sprintf(`{"id": %q, "name": %q, "status": "active", "size": 512, "created_at": "2026-01-02T03:04:05Z",
		"instance_uuid": %q, "image_type": "snapshot", "privatecloud:snapshot": %q, "privatecloud:owner": "u-1"`, id, snapshotName, someID, snapshotName)
	for _, field := range fields {
		base += ", " + field
	}
	return base + "}"
}

func images(list ...string) string { return `{"images": [` + strings.Join(list, ", ") + `]}` }

// since is the field of the time at which an image was made.
func since(age time.Duration) string {
	return fmt.Sprintf(`"created_at": %q`, time.Now().Add(-age).UTC().Format(time.RFC3339))
}

func TestListedSnapshots(t *testing.T) {
	young, old := since(time.Minute), since(abandonedAfter+time.Minute)
	waiting := func(fields ...string) string {
		return imageJSON(otherID, append(fields, `"status": "queued"`, `"size": null`)...)
	}
	for name, tc := range map[string]struct {
		images []string
		hidden []string
		server string // the answer about the server, a 404 if it is empty
		want   outcome
		ids    []string
		calls  int
	}{
		"one is listed, with two calls":                       {images: []string{imageJSON(otherID)}, ids: []string{otherID}, calls: 2},
		"one that a person took of the server is listed":      {images: []string{imageJSON(otherID, `"privatecloud:snapshot": ""`)}, ids: []string{otherID}, calls: 2},
		"one that an administrator has deactivated is listed": {images: []string{imageJSON(otherID, `"status": "deactivated"`)}, ids: []string{otherID}, calls: 2},
		"one of another server, in spite of the filter: none": {images: []string{imageJSON(otherID, `"instance_uuid": "x"`)}, server: oneServer(), calls: 3},
		"one that is hidden is listed, with the others":       {images: []string{imageJSON("b")}, hidden: []string{imageJSON("a"), imageJSON("b")}, ids: []string{"a", "b"}, calls: 2},
		"a backup: none":                {images: []string{imageJSON(otherID, `"image_type": "backup"`)}, server: oneServer(), calls: 3},
		"none: the server is asked for": {server: oneServer(), calls: 3},
		"none, and no server: NotFound": {want: outcome{Kind: cloud.NotFound}, calls: 3},
		"one is being taken: Busy":      {images: []string{waiting(old)}, server: oneServer(`"OS-EXT-STS:task_state": "image_uploading"`), want: outcome{Kind: cloud.Busy}, calls: 3},
		"one is being taken beside another: Busy, and the other listed": {images: []string{imageJSON("a"), waiting(old)}, server: oneServer(`"OS-EXT-STS:task_state": "image_snapshot"`), want: outcome{Kind: cloud.Busy}, ids: []string{"a"}, calls: 3},
		"the service has not noted yet that it takes one: Busy":         {images: []string{waiting(young)}, server: oneServer(), want: outcome{Kind: cloud.Busy}, calls: 3},
		"one that was given up: not listed":                             {images: []string{waiting(old)}, server: oneServer(), calls: 4},
		"one whose upload failed: not listed":                           {images: []string{imageJSON(otherID, `"status": "killed"`)}, server: oneServer(), calls: 3},
		"a person takes one: not waited for":                            {images: []string{waiting(young, `"privatecloud:snapshot": ""`)}, server: oneServer(), calls: 3},
		"one was being taken of a server that is gone: NotFound":        {images: []string{waiting(young)}, want: outcome{Kind: cloud.NotFound}, calls: 4},
		"an image without an id: Unreadable":                            {images: []string{imageJSON("")}, want: outcome{Kind: cloud.Unreadable}, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			s.handle("GET"+aboutImages, func(w http.ResponseWriter, r *http.Request) {
				listed := tc.images
				if r.URL.Query().Get("os_hidden") == "true" {
					listed = tc.hidden
				}
				fmt.Fprint(w, images(listed...))
			})
			s.on("GET"+aboutSome, novaNotFound, http.StatusNotFound)
			if tc.server != "" {
				s.on("GET"+aboutSome, tc.server)
			}
			got, err := s.client().ListSnapshots(t.Context(), someID)
			if diff := cmp.Diff(tc.want, outcomeOf(err)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			var ids []string
			for _, one := range got {
				ids = append(ids, one.ID)
			}
			if diff := cmp.Diff(tc.ids, ids); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
			if sent := s.taken(); len(sent) != tc.calls {
				t.Errorf("sent %v, want %d calls", sent, tc.calls)
			}
		})
	}
}

func TestSnapshotsOfAllPagesAreListedOldestFirst(t *testing.T) {
	s := newStub(t)
	var queries []string
	s.handle("GET"+aboutImages, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("os_hidden") {
			fmt.Fprint(w, images())
			return
		}
		queries = append(queries, r.URL.Query().Encode())
		if r.URL.Query().Get("marker") == "" {
			fmt.Fprintf(w, `{"images": [%s], "first": "/v2/images", "next": "/v2/images?marker=b"}`, imageJSON("b", since(time.Hour)))
			return
		}
		fmt.Fprint(w, images(imageJSON("a", since(2*time.Hour))))
	})
	got, err := s.client().ListSnapshots(t.Context(), someID)
	if err != nil || len(got) != 2 || got[0].ID != "a" || got[1].ID != "b" {
		t.Errorf("ListSnapshots: %+v, %v, want a and b", got, err)
	}
	query := "image_type=snapshot&instance_uuid=" + someID + "&limit=500"
	want := []string{query + "&owner=" + projectID, query + "&marker=b&owner=" + projectID}
	if diff := cmp.Diff(want, queries); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

func TestCreatedSnapshots(t *testing.T) {
	made := fmt.Sprintf(`{"image_id": %q}`, otherID)
	post := "POST" + aboutSome + "/action"
	asked := post + ` {"createImage":{"metadata":{"privatecloud:owner":"u-1","privatecloud:snapshot":"` + snapshotName + `"},"name":"` + snapshotName + `"}}`
	queued := imageJSON(otherID, `"status": "queued"`, since(time.Hour))
	for name, tc := range map[string]struct {
		server, images, image string
		imageStatus           int
		post                  func(*stub)
		want                  outcome
		says                  string
		sent                  []string
	}{
		"it is taken": {sent: []string{asked}},
		"an earlier create made it: it is not made again":    {images: images(imageJSON(otherID))},
		"a person made one of the name: it is made":          {images: images(imageJSON("p", `"privatecloud:snapshot": ""`)), sent: []string{asked}},
		"one has inherited the mark: it is made":             {images: images(imageJSON("p", `"name": "by-hand"`)), sent: []string{asked}},
		"an earlier create may be taking it: Busy":           {images: images(queued), server: oneServer(booted, owned, `"OS-EXT-STS:task_state": "image_uploading"`), want: outcome{cloud.Busy, true}},
		"an earlier create was given up: its image goes":     {images: images(queued), sent: []string{"DELETE" + aboutTaken, asked}},
		"the server boots from a volume: Unsupported":        {server: oneServer(owned, `"image": ""`), want: outcome{Kind: cloud.Unsupported}, says: "boots from a volume"},
		"the server has a task: Busy":                        {post: func(s *stub) { s.on(post, conflict, http.StatusConflict) }, want: outcome{Kind: cloud.Busy}, sent: []string{asked}},
		"the answer is lost: uncertain":                      {post: func(s *stub) { s.handle(post, cut) }, want: outcome{cloud.Unavailable, true}, sent: []string{asked}},
		"the answer has no id: uncertain":                    {post: func(s *stub) { s.on(post, `{}`, http.StatusAccepted) }, want: outcome{cloud.Unreadable, true}, sent: []string{asked}},
		"the service gives it up: Failed":                    {image: noImage, imageStatus: http.StatusNotFound, want: outcome{Kind: cloud.Failed}, says: "gave it up", sent: []string{asked}},
		"the image cannot be read: uncertain":                {image: `{}`, imageStatus: http.StatusForbidden, want: outcome{cloud.Forbidden, true}, sent: []string{asked}},
		"the 404 is not of the image service: uncertain":     {image: `<html>`, imageStatus: http.StatusNotFound, want: outcome{cloud.NotFoundUnproven, true}, sent: []string{asked}},
		"the project has no room for images: Quota":          {post: func(s *stub) { s.on(post, overQuota, http.StatusForbidden) }, want: outcome{Kind: cloud.Quota}, sent: []string{asked}},
		"the server is gone meanwhile: NotFound, as it says": {server: "gone", want: outcome{Kind: cloud.NotFound}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			s.on("GET"+aboutSome, oneServer(booted, owned))
			switch tc.server {
			case "":
			case "gone":
				s.on("GET"+aboutSome, novaNotFound, http.StatusNotFound)
			default:
				s.on("GET"+aboutSome, tc.server)
			}
			s.on("GET"+aboutTaken, imageJSON(otherID))
			if tc.image != "" {
				s.on("GET"+aboutTaken, tc.image, tc.imageStatus)
			}
			if tc.images != "" {
				s.on("GET"+aboutImages, tc.images)
			}
			s.on("DELETE"+aboutTaken, "", http.StatusNoContent)
			s.on(post, made, http.StatusAccepted)
			if tc.post != nil {
				tc.post(s)
			}
			got, err := s.client().CreateSnapshot(t.Context(), cloud.CreateSnapshot{ServerID: someID, Name: snapshotName})
			if diff := cmp.Diff(tc.want, outcomeOf(err)); diff != "" || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want it to say %q (-want +got):\n%s", err, tc.says, diff)
			}
			want := cloud.Snapshot{ID: otherID, Name: snapshotName, SizeBytes: 512, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			if diff := cmp.Diff(want, got); err == nil && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.sent, changesOf(s.taken())); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSnapshotThatTakesLongIsUncertain(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	s.on("GET"+aboutSome, oneServer(booted))
	s.on("POST"+aboutSome+"/action", fmt.Sprintf(`{"image_id": %q}`, otherID), http.StatusAccepted)
	s.on("GET"+aboutTaken, imageJSON(otherID, `"status": "saving"`))
	_, err := s.client().CreateSnapshot(t.Context(), cloud.CreateSnapshot{ServerID: someID, Name: snapshotName, Description: "before \U0001f680"})
	if diff := cmp.Diff(outcome{cloud.Busy, true}, outcomeOf(err)); diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if sent := changesOf(s.taken()); len(sent) != 1 || !strings.Contains(sent[0], `"description":"before `+"\ufffd"+`"`) {
		t.Errorf("sent %v, want a description without what the service does not store", sent)
	}
}

func TestDeletedSnapshots(t *testing.T) {
	for name, tc := range map[string]struct {
		image   string
		status  int
		answer  string
		refused int
		want    outcome
		says    string
		sent    int
	}{
		"it is deleted":                                {image: imageJSON(otherID), refused: 204, sent: 1},
		"there is none: NotFound":                      {image: noImage, status: 404, want: outcome{Kind: cloud.NotFound}},
		"it is of another server: NotFound":            {image: imageJSON(otherID, `"instance_uuid": "x"`), want: outcome{Kind: cloud.NotFound}},
		"it is an image that was uploaded: NotFound":   {image: imageJSON(otherID, `"instance_uuid": ""`), want: outcome{Kind: cloud.NotFound}},
		"another id: Unreadable":                       {image: imageJSON("x"), want: outcome{Kind: cloud.Unreadable}},
		"a 404 of a path that the service lacks":       {image: `{"message": "The resource could not be found.<br /><br />\n\n\n", "code": "404 Not Found", "title": "Not Found"}`, status: 404, want: outcome{Kind: cloud.NotFoundUnproven}},
		"it went meanwhile: NotFound":                  {image: imageJSON(otherID), answer: strings.Replace(noImage, "No image found with ID", "Failed to find image", 1), refused: 404, want: outcome{Kind: cloud.NotFound}, sent: 1},
		"it is protected: Forbidden, with the reason":  {image: imageJSON(otherID), answer: `{"message": "Image ` + otherID + ` is protected and cannot be deleted.<br /><br />\n\n\n", "code": "403 Forbidden", "title": "Forbidden"}`, refused: 403, want: outcome{Kind: cloud.Forbidden}, says: "is protected and cannot be deleted.", sent: 1},
		"a disk shares its data: Busy with the reason": {image: imageJSON(otherID), answer: `{"message": "Image ` + otherID + ` could not be deleted because it is in use: rbd<br /><br />", "code": "409 Conflict", "title": "Conflict"}`, refused: 409, want: outcome{Kind: cloud.Busy}, says: "because it is in use: rbd", sent: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			s.on("GET"+aboutTaken, tc.image, max(tc.status, 200))
			s.on("DELETE"+aboutTaken, tc.answer, max(tc.refused, 200))
			err := s.client().DeleteSnapshot(t.Context(), someID, otherID)
			if diff := cmp.Diff(tc.want, outcomeOf(err)); diff != "" || err != nil && !strings.HasSuffix(err.Error(), tc.says) {
				t.Errorf("%v, want it to end with %q (-want +got):\n%s", err, tc.says, diff)
			}
			if sent := changesOf(s.taken()); len(sent) != tc.sent {
				t.Errorf("sent %v, want %d changes", sent, tc.sent)
			}
		})
	}
}
