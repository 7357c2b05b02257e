package openstack

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// record is the label that says which others are tags, and mark one that says whose the server is.
const record, mark = "samplecontroller.k8s.io/tags", "samplecontroller.k8s.io/uid"

// keeper is a server whose metadata the stub changes. It refuses the call of a number, the
// first of which is 1.
type keeper struct {
	metadata       map[string]string
	calls, refused int
}

// keep has the stub keep the metadata of a server with these labels.
func (s *stub) keep(labels map[string]string) *keeper {
	k := &keeper{metadata: map[string]string{}}
	for key, value := range labels {
		k.metadata[encodeKey(key)] = value
	}
	s.handle("GET"+aboutSome, func(w http.ResponseWriter, _ *http.Request) {
		metadata, _ := json.Marshal(k.metadata)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, oneServer(`"metadata": `+string(metadata)))
	})
	s.handle("POST"+aboutSome+"/metadata", k.change(http.StatusOK, func(r *http.Request) {
		var body struct{ Metadata map[string]string }
		_ = json.NewDecoder(r.Body).Decode(&body)
		maps.Copy(k.metadata, body.Metadata)
	}))
	for key := range k.metadata {
		s.handle("DELETE"+aboutSome+"/metadata/"+key, k.change(http.StatusNoContent, func(*http.Request) { delete(k.metadata, key) }))
	}
	return k
}

func (k *keeper) change(status int, apply func(*http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		k.calls++
		if k.calls == k.refused {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, conflict)
			return
		}
		apply(r)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"metadata": {}}`)
	}
}

// tagged returns the labels of tags, with their record if there are any.
func tagged(tags map[string]string) map[string]string {
	labels := maps.Clone(tags)
	if len(tags) > 0 {
		labels[record] = strings.Join(slices.Sorted(maps.Keys(tags)), ",")
	}
	return labels
}

// changeOfTags returns the change that gives a server the tags of want, of its labels only
// those that its record names, as the operator computes it.
func changeOfTags(labels, want map[string]string) (update cloud.Update) {
	goal := tagged(want)
	for key, value := range goal {
		if labels[key] != value {
			update = append(update, cloud.SetLabel{Key: key, Value: value})
		}
	}
	for _, key := range append(strings.Split(labels[record], ","), record) {
		_, wanted := goal[key]
		if _, has := labels[key]; has && !wanted {
			update = append(update, cloud.RemoveLabel(key))
		}
	}
	return update
}

// A change of tags takes several calls. Whichever of them fails, the next change, which is
// computed from what the server has then, completes it.
func TestChangeOfTagsIsCompletedAfterAnyCall(t *testing.T) {
	before := map[string]string{"app": "web", "zone": "a", record: "app,zone", mark: "u-1", "theirs": "x"}
	for name, tc := range map[string]struct {
		want map[string]string
		// calls are how many the change takes.
		calls int
	}{
		"one is replaced":         {map[string]string{"app": "web", "tier": "1"}, 2},
		"all are replaced":        {map[string]string{"tier": "1"}, 3},
		"one changes its value":   {map[string]string{"app": "db"}, 2},
		"all are removed":         {map[string]string{}, 3},
		"one is added, none less": {map[string]string{"app": "web", "tier": "1", "zone": "a"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			goal := tagged(tc.want)
			goal[mark], goal["theirs"] = "u-1", "x"
			for refused := range tc.calls + 1 { // of 0, no call is refused
				s := newStub(t)
				c, k := s.client(), s.keep(before)
				k.refused = refused
				_, err := c.UpdateServer(t.Context(), someID, changeOfTags(before, tc.want))
				if refused == 0 {
					if err != nil || k.calls != tc.calls {
						t.Errorf("UpdateServer: %v after %d calls, want success after %d", err, k.calls, tc.calls)
					}
				} else if !cloud.Is(err, cloud.Busy) {
					t.Errorf("call %d is refused: %v, want Busy", refused, err)
				}
				if rest := changeOfTags(labelsOf(k.metadata), tc.want); len(rest) > 0 {
					if _, err := c.UpdateServer(t.Context(), someID, rest); err != nil {
						t.Errorf("call %d was refused: the next change: %v", refused, err)
					}
				}
				if diff := cmp.Diff(goal, labelsOf(k.metadata)); diff != "" {
					t.Errorf("call %d was refused, labels in the end (-want +got):\n%s", refused, diff)
				}
			}
		})
	}
}

func TestLabelsOfTheOperatorAreRemovedLast(t *testing.T) {
	s := newStub(t)
	const cluster = "samplecontroller.k8s.io/cluster"
	c, k := s.client(), s.keep(map[string]string{"zone": "a", record: "zone", mark: "u-1", cluster: "c-1", "theirs": "x"})
	change := cloud.Update{
		cloud.RemoveLabel(mark), cloud.RemoveLabel(cluster), cloud.RemoveLabel(record), cloud.RemoveLabel("zone"), cloud.RemoveLabel("absent"),
		cloud.SetLabel{Key: "new", Value: "1"},
	}
	_, err := c.UpdateServer(t.Context(), someID, change)
	if err != nil {
		t.Fatalf("UpdateServer: %v", err)
	}
	want := []string{
		"DELETE" + aboutSome + "/metadata/zone", "DELETE" + aboutSome + "/metadata/samplecontroller.k8s.io:2fcluster",
		"DELETE" + aboutSome + "/metadata/samplecontroller.k8s.io:2ftags", "DELETE" + aboutSome + "/metadata/samplecontroller.k8s.io:2fuid", "POST" + aboutSome + `/metadata {"metadata":{"new":"1"}}`,
	}
	if diff := cmp.Diff(want, changesOf(s.taken())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"theirs": "x", "new": "1"}, labelsOf(k.metadata)); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestNothingIsRemovedIfALabelDoesNotFit(t *testing.T) {
	s := newStub(t)
	c := s.client()
	s.keep(map[string]string{"zone": "a"})
	_, err := c.UpdateServer(t.Context(), someID, cloud.Update{cloud.RemoveLabel("zone"), cloud.SetLabel{Key: "k", Value: "\xff"}})
	if !cloud.Is(err, cloud.Rejected) {
		t.Errorf("UpdateServer: %v, want Rejected", err)
	}
	if sent := changesOf(s.taken()); len(sent) != 0 {
		t.Errorf("sent %v, want nothing", sent)
	}
}
