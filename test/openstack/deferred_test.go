package openstack_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/openstack"
)

// deferred selects the compute service that keeps deleted servers for a minute.
func deferred(c *openstack.Config) { c.Endpoints.Compute = os.Getenv("OPENSTACK_DEFERRED_URL") }

// keptServer is a server with all that outlives servers, on a cloud that keeps deleted servers for a minute.
type keptServer struct {
	*testing.T
	c  *openstack.Client
	p  project
	id string
}

func newKeptServer(t *testing.T) keptServer {
	t.Helper()
	p := newProject(t)
	s := keptServer{T: t, c: newClient(t, p, &wire{}, deferred), p: p}
	s.id = create(t, s.c, cloud.CreateServer{
		Name: "web", NetworkID: reachOf(t, p).NetworkID, Disks: "data=1024=" + otherType, Labels: map[string]string{tagLabel: "owner"},
	}).ID
	assign(t, s.c, s.id)
	if _, err := s.c.CreateSnapshot(t.Context(), cloud.CreateSnapshot{ServerID: s.id, Name: "before"}); err != nil {
		t.Fatal(err)
	}
	awaited(t, func() ([]cloud.Snapshot, bool) {
		all, err := s.c.ListSnapshots(t.Context(), s.id)
		return all, err == nil && len(all) == 1
	})
	return s
}

// status returns the status that nova shows, empty if it shows no server.
func (s keptServer) status() string {
	var got struct{ Server struct{ Status string } }
	a := admin()
	_, _, text, err := a.request(http.MethodGet, a.services["compute"]+"/servers/"+s.id, nil, "application/json")
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil {
		s.Fatalf("GET servers/%s: %v", s.id, err)
	}
	return got.Server.Status
}

// deleteAll deletes the server and what outlives it, as the operator does.
func (s keptServer) deleteAll() {
	s.Helper()
	ctx := s.Context()
	result, err := s.c.DeleteServer(ctx, s.id)
	if err != nil {
		s.Fatalf("DeleteServer: %v", err)
	}
	if !result.Gone() {
		if end := finish(s.T, s.c, result); end.Err != nil {
			s.Fatalf("DeleteServer: %v", end.Err)
		}
	}
	if got := s.status(); got != "SOFT_DELETED" {
		s.Errorf("nova shows the status %q, want it to keep the server", got)
	}
	if _, err := s.c.GetServer(ctx, s.id); !cloud.Is(err, cloud.NotFound) {
		s.Errorf("GetServer: %v, want NotFound", err)
	}
	for what, err := range map[string]error{
		"DeletePublicAddresses": s.c.DeletePublicAddresses(ctx, s.id),
		"DeleteSnapshots":       s.c.DeleteSnapshots(ctx, s.id, "owner"),
		"DeleteDisks":           s.c.DeleteDisks(ctx, s.id),
	} {
		if err != nil {
			s.Errorf("%s: %v", what, err)
		}
	}
	if diff := cmp.Diff(map[string]int{"volumes": 1}, s.left()); diff != "" {
		s.Errorf("left while nova keeps the server (-want +got):\n%s", diff)
	}
}

// left returns how many objects there are that outlive servers.
func (s keptServer) left() map[string]int {
	a, left := admin(), map[string]int{}
	for what, count := range map[string]int{
		"volumes":            len(a.list("block-storage", "volumes", "all_tenants=1&project_id="+s.p.id)),
		"snapshots":          len(imagesOf(s.T, s.p)),
		"floating addresses": len(floatingOf(s.T, s.p)),
	} {
		if count > 0 {
			left[what] = count
		}
	}
	return left
}

func TestKeptServerCountsAsDeleted(t *testing.T) {
	t.Parallel()
	s := newKeptServer(t)
	s.deleteAll()
	awaited(t, func() (string, bool) { status := s.status(); return status, status == "" })
	awaited(t, func() (map[string]int, bool) { left := s.left(); return left, len(left) == 0 })
}

// The volumes of a server that somebody restores stay, also if they are detached from it then.
func TestRestoredServerKeepsItsVolumes(t *testing.T) {
	t.Parallel()
	s := newKeptServer(t)
	s.deleteAll()
	a := admin()
	at := fmt.Sprintf("%s/servers/%s", a.services["compute"], s.id)
	a.must(http.MethodPost, at+"/action", map[string]any{"restore": nil}, nil)
	awaited(t, func() (string, bool) { status := s.status(); return status, status == "ACTIVE" })
	if err := s.c.DeleteDisks(t.Context(), s.id); err != nil {
		t.Errorf("DeleteDisks of a restored server: %v", err)
	}
	if got, err := s.c.GetServer(t.Context(), s.id); err != nil || got.Labels[tagLabel] != "owner" {
		t.Errorf("GetServer: %+v, %v, want it as it was", got, err)
	}
	volumes := volumeTest{t, s.p, a.as(tokenOf(t, s.p, person))}
	a.must(http.MethodDelete, at+"/os-volume_attachments/"+volumes.volumes()[1].ID, nil, nil)
	volumes.until(1, "available")
	result, err := s.c.DeleteServer(t.Context(), s.id)
	if err != nil {
		t.Fatalf("DeleteServer: %v", err)
	}
	if !result.Gone() {
		finish(t, s.c, result)
	}
	if err := s.c.DeleteDisks(t.Context(), s.id); err != nil {
		t.Errorf("DeleteDisks: %v", err)
	}
	if got := volumes.volumes(); len(got) != 1 || got[1].Status != "available" {
		t.Errorf("got the volumes %+v, want the one that was detached", got)
	}
	a.must(http.MethodPost, at+"/action", map[string]any{"forceDelete": nil}, nil) // listings lack it, and the project cannot be cleaned
	awaited(t, func() (string, bool) { status := s.status(); return status, status == "" })
}
