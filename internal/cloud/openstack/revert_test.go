package openstack

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestRevertIsARebuild(t *testing.T) {
	post := "POST" + aboutSome + "/action"
	rebuild := post + ` {"rebuild":{"imageRef":"` + otherID + `"}}`
	for name, tc := range map[string]struct {
		image  string
		again  bool
		answer func(*stub)
		want   outcome
		sent   []string
	}{
		"it is requested":                            {image: imageJSON(otherID), sent: []string{rebuild}},
		"again: Unsupported":                         {image: imageJSON(otherID), again: true, want: outcome{Kind: cloud.Unsupported}},
		"to an image of another server: NotFound":    {image: imageJSON(otherID, `"instance_uuid": "x"`), want: outcome{Kind: cloud.NotFound}},
		"to an image that is being taken: Busy":      {image: imageJSON(otherID, `"status": "saving"`), want: outcome{Kind: cloud.Busy}},
		"to an image that was deactivated: Busy":     {image: imageJSON(otherID, `"status": "deactivated"`), want: outcome{Kind: cloud.Busy}},
		"the server has a task: Busy":                {image: imageJSON(otherID), answer: func(s *stub) { s.on(post, conflict, http.StatusConflict) }, want: outcome{Kind: cloud.Busy}, sent: []string{rebuild}},
		"the server is gone: NotFound":               {image: imageJSON(otherID), answer: func(s *stub) { s.on(post, novaNotFound, http.StatusNotFound) }, want: outcome{Kind: cloud.NotFound}, sent: []string{rebuild}},
		"the disk of the flavor is small: Rejected":  {image: imageJSON(otherID), answer: func(s *stub) { s.on(post, `{"badRequest": {"message": "too small"}}`, 400) }, want: outcome{Kind: cloud.Rejected}, sent: []string{rebuild}},
		"the answer is lost: uncertain, sent once":   {image: imageJSON(otherID), answer: func(s *stub) { s.handle(post, cut) }, want: outcome{cloud.Unavailable, true}, sent: []string{rebuild}},
		"the service has failed: uncertain, no more": {image: imageJSON(otherID), answer: func(s *stub) { s.on(post, "", 500) }, want: outcome{cloud.Unavailable, true}, sent: []string{rebuild}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			s.on("GET"+aboutTaken, tc.image)
			s.on("GET"+aboutSome, novaNotFound, http.StatusNotFound)
			s.on(post, `{"server": {"adminPass": "`+passphrase+`"}}`, http.StatusAccepted)
			if tc.answer != nil {
				tc.answer(s)
			}
			got, err := s.client().RevertServer(t.Context(), cloud.RevertServer{ServerID: someID, SnapshotID: otherID, Again: tc.again})
			if diff := cmp.Diff(tc.want, outcomeOf(err)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if want := (cloud.Result{Operation: "revert." + someID}); err == nil && got.Operation != want.Operation {
				t.Errorf("%+v, want %+v", got, want)
			}
			if diff := cmp.Diff(tc.sent, changesOf(s.taken())); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProgressOfARevert(t *testing.T) {
	for name, tc := range map[string]struct {
		fields []string
		done   bool
		failed string
	}{
		"it has begun":                                {fields: []string{`"OS-EXT-STS:task_state": "rebuilding"`}},
		"the disk is made":                            {fields: []string{`"status": "REBUILD"`, `"OS-EXT-STS:task_state": "rebuild_spawning"`}},
		"a server that was stopped is stopped":        {fields: []string{`"OS-EXT-STS:task_state": "powering-off"`}},
		"a server that ran runs":                      {done: true},
		"a server that was stopped is so again":       {fields: []string{`"status": "SHUTOFF"`}, done: true},
		"it failed: the cloud says why":               {fields: []string{`"status": "ERROR"`, `"fault": {"message": "no space left"}`}, done: true, failed: "no space left"},
		"somebody deletes the server: it is given up": {fields: []string{deleting}, done: true, failed: "the server is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			s.on("GET"+aboutSome, oneServer(tc.fields...))
			got, err := s.client().GetOperation(t.Context(), "revert."+someID)
			if err != nil || got.Done != tc.done || (got.Err == nil) != (tc.failed == "") || got.Err != nil && got.Err.Detail != tc.failed {
				t.Errorf("GetOperation: %+v, %v, want done %t, failed %q", got, err, tc.done, tc.failed)
			}
		})
	}
}
