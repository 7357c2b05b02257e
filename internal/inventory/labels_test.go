package inventory

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

func TestSnapshotHasTheTagsOfServersAndNoOtherLabels(t *testing.T) {
	keys := make([]string, 0, MaxTags+1)
	many := map[string]string{}
	for letter := 'a'; len(keys) <= MaxTags; letter++ {
		keys = append(keys, string(letter))
		many[string(letter)] = "1"
	}
	for name, test := range map[string]struct{ labels, want map[string]string }{
		"no labels":                   {nil, nil},
		"labels of somebody else":     {map[string]string{"env": "prod"}, nil},
		"tags beside them":            {map[string]string{"env": "prod", "rack": "7", TagsLabel: "env"}, map[string]string{"env": "prod", TagsLabel: "env"}},
		"tags beside owner labels":    {map[string]string{UIDLabel: "u", "env": "", TagsLabel: "env"}, map[string]string{UIDLabel: "u", "env": "", TagsLabel: "env"}},
		"a tag that was removed":      {map[string]string{TagsLabel: "env"}, map[string]string{TagsLabel: "env"}},
		"characters that are quoted":  {map[string]string{"a": "\"é\\ <&>\x7f", TagsLabel: "a"}, map[string]string{"a": "\"é\\ <&>\x7f", TagsLabel: "a"}},
		"owner labels among the tags": {map[string]string{NameLabel: "x", TagsLabel: NameLabel + ",,"}, map[string]string{NameLabel: "x", TagsLabel: NameLabel + ",,"}},
		"a TagsLabel that has no key": {map[string]string{TagsLabel: ""}, map[string]string{TagsLabel: ""}},
		"more keys than a server may have": {func() map[string]string { l := maps.Clone(many); l[TagsLabel] = strings.Join(keys, ","); return l }(), func() map[string]string {
			l := maps.Clone(many)
			delete(l, keys[MaxTags])
			l[TagsLabel] = strings.Join(keys, ",")
			return l
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			got := newListed(&cloud.Server{ID: "s", Labels: test.labels}).server()
			if diff := cmp.Diff(test.want, got.Labels); diff != "" {
				t.Error(diff)
			}
			if keys := TagKeys(test.labels); slices.Contains(keys, NameLabel) || len(keys) > MaxTags {
				t.Errorf("keys of tags: %q", keys)
			}
		})
	}
}

func TestTagsAndFaultsCountOnceForAllServersThatHaveThem(t *testing.T) {
	const size = 4000
	for name, with := range map[string]func(*cloud.Server){
		"tags": func(s *cloud.Server) {
			s.Labels = map[string]string{TagsLabel: "env", "env": strings.Repeat("x", size)}
		},
		"a fault": func(s *cloud.Server) { s.Fault = strings.Repeat("x", size) },
	} {
		t.Run(name, func(t *testing.T) {
			in := newIntake(newSnapshot(time.Now()), nil, holdAll)
			var taken []int
			for _, id := range []string{"a", "b"} {
				before, s := in.held(), cloud.Server{ID: id}
				with(&s)
				in.keep(&s)
				taken = append(taken, in.held()-before)
			}
			if taken[0] < size || taken[1] > size/4 {
				t.Errorf("the servers count %d bytes", taken)
			}
		})
	}
}

// Changes that a watch reports never count less than a listing of the same servers does.
func TestTagsThatAWatchReportsCountTooMuchRatherThanTooLittle(t *testing.T) {
	const servers, size = 20, 500
	tagged := func(id, value string) *listed {
		return newListed(&cloud.Server{ID: id, Name: id, Labels: map[string]string{TagsLabel: "env", "env": strings.Repeat(value, size)}})
	}
	untagged, same, gone := changes{}, changes{}, changes{}
	for i := range servers {
		id := string(rune('a' + i))
		untagged[id], same[id], gone[id] = newListed(&cloud.Server{ID: id, Name: id}), tagged(id, "x"), nil
	}
	empty := newSnapshot(time.Now())
	before, _ := empty.amended(untagged)
	after, _ := before.amended(same)
	if grown := after.bytes - before.bytes; grown < size || grown > 2*servers*size {
		t.Errorf("the tags of %d servers count %d bytes", servers, grown)
	}
	stopped := changes{}
	for id := range same {
		server := *same[id]
		server.state = cloud.StateStopped
		stopped[id] = &server
	}
	if later, _ := after.amended(stopped); later.bytes > after.bytes+servers*len(cloud.StateStopped) {
		t.Errorf("servers whose tags stay count %d bytes more", later.bytes-after.bytes)
	}
	if left, _ := after.amended(gone); left.bytes < 0 {
		t.Errorf("no servers count %d bytes", left.bytes)
	}
}
