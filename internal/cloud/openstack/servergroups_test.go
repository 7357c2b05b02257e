package openstack

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	groupID  = "0f6b6f1e-5d2b-4c1e-9a55-5a5b7d8a9c01"
	laterID  = "9e6b6f1e-5d2b-4c1e-9a55-5a5b7d8a9c02"
	listed   = "GET compute/os-server-groups"
	makes    = "POST compute/os-server-groups"
	hintedAs = `"os:scheduler_hints":{"group":%q}`
)

var apart = cloud.CreateServer{Name: "web", AntiAffinity: cloud.AntiAffinity{Group: "c/ns/web", Required: true}}

func groupsAre(s *stub, groups ...string) {
	s.on(listed, `{"server_groups": [`+strings.Join(groups, ",")+`]}`)
}

func group(id, name, policy string, members ...string) string {
	quoted := make([]string, 0, len(members))
	for _, member := range members {
		quoted = append(quoted, strconv.Quote(member))
	}
	return fmt.Sprintf(`{"id": %q, "name": %q, "policies": [%q], "members": [%s]}`, id, name, policy, strings.Join(quoted, ","))
}

func TestCreateUsesTheServerGroupOfTheAntiAffinity(t *testing.T) {
	made := makes + ` {"server_group":{"name":"c/ns/web","policies":["anti-affinity"]}}`
	remove := "DELETE compute/os-server-groups/"
	tests := map[string]struct {
		groups []string
		want   []string // the changes beside the create of the server
		hint   string
	}{
		"no group: made":                              {nil, []string{made}, laterID},
		"there is one: used":                          {[]string{group(groupID, "c/ns/web", "anti-affinity", someID)}, nil, groupID},
		"two of the name: the first by id":            {[]string{group(laterID, "c/ns/web", "anti-affinity"), group(groupID, "c/ns/web", "anti-affinity")}, nil, groupID},
		"one of another policy: not used, not empty":  {[]string{group(groupID, "c/ns/web", "soft-anti-affinity", someID)}, []string{made}, laterID},
		"an empty one of this cluster: removed":       {[]string{group(groupID, "c/ns/old", "anti-affinity")}, []string{remove + groupID, made}, laterID},
		"an empty one of somebody else: kept":         {[]string{group(groupID, "d/ns/old", "anti-affinity"), group(someID, "c", "anti-affinity")}, []string{made}, laterID},
		"an empty one of another policy: kept":        {[]string{group(groupID, "c/ns/old", "affinity")}, []string{made}, laterID},
		"one with an id that is no id: as if missing": {[]string{group("../x", "c/ns/web", "anti-affinity")}, []string{made}, laterID},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			groupsAre(s, tc.groups...)
			s.on(makes, `{"server_group": `+group(laterID, "c/ns/web", "anti-affinity")+`}`)
			s.on(remove+groupID, "", http.StatusNoContent)
			s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, 202)
			if _, err := s.client().CreateServer(t.Context(), apart); err != nil {
				t.Fatalf("CreateServer: %v", err)
			}
			sent := changesOf(s.taken())
			create := sent[len(sent)-1]
			if diff := cmp.Diff(tc.want, append([]string(nil), sent[:len(sent)-1]...)); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			if !strings.Contains(create, fmt.Sprintf(hintedAs, tc.hint)) || !strings.Contains(create, `"privatecloud:server-group":"c/ns/web"`) {
				t.Errorf("create %s, want the hint %s and the name of the group in the metadata", create, tc.hint)
			}
		})
	}
}

func TestCreateWithoutAntiAffinityAsksForNoGroups(t *testing.T) {
	s := newStub(t)
	s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, 202)
	if _, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web"}); err != nil {
		t.Fatalf("CreateServer: %v", err)
	}
	for _, request := range s.taken() {
		if strings.Contains(request, "os-server-groups") || strings.Contains(request, "scheduler_hints") {
			t.Errorf("sent %s", request)
		}
	}
}

func TestFailureToMakeAServerGroupSendsNoCreate(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		want   cloud.Kind
	}{
		"the quota of groups is used up": {403, `{"forbidden": {"message": "Quota exceeded, too many server groups."}}`, cloud.Quota},
		"the answer is lost":             {502, "", cloud.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			groupsAre(s)
			s.on(makes, tc.body, tc.status)
			_, err := s.client().CreateServer(t.Context(), apart)
			if !cloud.Is(err, tc.want) || cloud.Uncertain(err) {
				t.Errorf("CreateServer: %v (uncertain: %t), want a certain %s", err, cloud.Uncertain(err), tc.want)
			}
			for _, request := range s.taken() {
				if strings.HasPrefix(request, "POST compute/servers ") {
					t.Errorf("sent %s", request)
				}
			}
		})
	}
}

func TestCreateWhoseServerGroupIsRemovedMeanwhileIsTriedAgain(t *testing.T) {
	s := newStub(t)
	groupsAre(s, group(groupID, "c/ns/web", "anti-affinity", someID))
	for body, want := range map[string]cloud.Kind{
		`{"badRequest": {"message": "Instance group ` + groupID + ` could not be found.", "code": 400}}`: cloud.Busy,
		`{"badRequest": {"message": "Invalid imageRef provided.", "code": 400}}`:                         cloud.Rejected,
	} {
		s.on("POST compute/servers", body, 400)
		if _, err := s.client().CreateServer(t.Context(), apart); !cloud.Is(err, want) || cloud.Uncertain(err) {
			t.Errorf("%s: %v, want a certain %s", body, err, want)
		}
	}
}

func TestServerGroupIsRemovedOnceItsLastServerIsGone(t *testing.T) {
	s := newStub(t)
	c := s.client()
	s.on("DELETE"+aboutSome, "", http.StatusNoContent)
	s.on("GET"+aboutSome, oneServer(`"OS-EXT-STS:task_state": "deleting"`, `"metadata": {"privatecloud:server-group": "c/ns/web"}`))
	if _, err := c.DeleteServer(t.Context(), someID); err != nil {
		t.Fatalf("DeleteServer: %v", err)
	}
	s.on("GET"+aboutSome, `{"itemNotFound": {"message": "Instance could not be found.", "code": 404}}`, 404)
	groupsAre(s, group(groupID, "c/ns/web", "anti-affinity"), group(laterID, "c/ns/db", "anti-affinity", otherID))
	s.on("DELETE compute/os-server-groups/"+groupID, "", http.StatusNoContent)
	s.taken()
	for range 2 { // the second finds nothing more to do
		if got, err := c.GetOperation(t.Context(), operation(opDelete, someID)); err != nil || !got.Done {
			t.Fatalf("GetOperation: %+v, %v", got, err)
		}
	}
	if diff := cmp.Diff([]string{"DELETE compute/os-server-groups/" + groupID}, changesOf(s.taken())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}
