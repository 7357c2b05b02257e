package openstack_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/openstack"
)

// finish waits until a change of a server has ended.
func finish(t *testing.T, c cloud.Client, result cloud.Result) cloud.Operation {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	for {
		got, err := c.GetOperation(ctx, result.Operation)
		if err != nil {
			t.Fatalf("GetOperation(%s): %v", result.Operation, err)
		}
		if got.Done {
			return got
		}
		select {
		case <-ctx.Done():
			t.Fatalf("operation %s does not end: %+v", result.Operation, got)
		case <-time.After(pollTime):
		}
	}
}

// stop stops a server.
func stop(t *testing.T, c cloud.Client, id string) {
	t.Helper()
	result, err := c.UpdateServer(t.Context(), id, cloud.Update{cloud.SetPower{State: cloud.PowerOff}})
	if err != nil {
		t.Fatalf("UpdateServer: %v", err)
	}
	if ended := finish(t, c, result); ended.Err != nil {
		t.Fatalf("the stop failed: %v", ended.Err)
	}
}

func create(t *testing.T, c cloud.Client, req cloud.CreateServer) cloud.Server {
	t.Helper()
	result, err := c.CreateServer(t.Context(), req)
	if err != nil {
		t.Fatalf("CreateServer: %v", err)
	}
	if ended := finish(t, c, result); ended.Err != nil {
		t.Fatalf("the create failed: %v", ended.Err)
	}
	server, err := c.GetServer(t.Context(), result.Server.ID)
	if err != nil {
		t.Fatalf("GetServer: %v", err)
	}
	return server
}

func TestNamesInAnyScriptAreKept(t *testing.T) {
	t.Parallel()
	c := newClient(t, newProject(t), &wire{})
	for _, name := range []string{"a/b", "..", "%2f", "a?b=c", "a#b", "сервер", "服务器", "خادم", `back\slash`, `quo"te`, "{id}"} {
		result, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: name})
		if err != nil {
			t.Fatalf("CreateServer(%s): %v", name, err)
		}
		if got, err := c.GetServer(t.Context(), result.Server.ID); err != nil || got.Name != name {
			t.Errorf("%q: %q, %v", name, got.Name, err)
		}
	}
}

// ownNetworks returns the networks of the project, without the external one.
func ownNetworks(ctx context.Context, c *openstack.Client) ([]cloud.Network, error) {
	all, err := c.ListNetworks(ctx)
	return slices.DeleteFunc(all, func(n cloud.Network) bool { return n.Shared }), err
}

func TestQuotaDiffersFromOtherRefusals(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	a := admin()
	a.must(http.MethodPut, a.services["compute"]+"/os-quota-sets/"+p.id, map[string]any{"quota_set": map[string]any{"instances": 0}}, nil)
	a.must(http.MethodPut, a.services["network"]+"/quotas/"+p.id, map[string]any{"quota": map[string]any{"network": 0}}, nil)
	c := newClient(t, p, &wire{})
	if _, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"}); !cloud.Is(err, cloud.Quota) || cloud.Uncertain(err) {
		t.Errorf("CreateServer: %v, want Quota", err)
	}
	req := cloud.CreateNetwork{Name: "net", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1"}
	if _, err := c.CreateNetwork(t.Context(), req); !cloud.Is(err, cloud.Quota) || cloud.Uncertain(err) {
		t.Errorf("CreateNetwork: %v, want Quota", err)
	}
	a.must(http.MethodPut, a.services["network"]+"/quotas/"+p.id, map[string]any{"quota": map[string]any{"network": -1, "subnet": 0}}, nil)
	if _, err := c.CreateNetwork(t.Context(), req); !cloud.Is(err, cloud.Quota) || cloud.Uncertain(err) {
		t.Errorf("CreateNetwork without room for a subnet: %v, want Quota", err)
	}
	if left, err := ownNetworks(t.Context(), c); err != nil || len(left) != 0 {
		t.Errorf("networks %+v, %v, want that nothing is left", left, err)
	}
}

func TestEachStepOfANetworkMayLoseItsAnswer(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]pattern{"the network": {http.MethodPost, "networks"}, "the subnet": {http.MethodPost, "subnets"}} {
		t.Run(name, func(t *testing.T) {
			w := &wire{}
			c := newClient(t, newProject(t), w)
			req := cloud.CreateNetwork{Name: "net", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", IdempotencyKey: "key-of-the-object"}
			restore := w.loseAnswers(lost)
			_, err := c.CreateNetwork(t.Context(), req)
			restore()
			if !cloud.Uncertain(err) {
				t.Fatalf("CreateNetwork: %v, want it uncertain", err)
			}
			left, err := ownNetworks(t.Context(), c)
			if err != nil || len(left) != 1 {
				t.Fatalf("networks %+v, %v, want one", left, err)
			}
			if left[0].HalfMade {
				if left[0], err = c.CreateNetwork(t.Context(), req); err != nil {
					t.Fatalf("CreateNetwork again: %v", err)
				}
			}
			all, err := ownNetworks(t.Context(), c)
			if diff := cmp.Diff(left, all); diff != "" || err != nil || all[0].HalfMade || all[0].CIDR != req.CIDR {
				t.Errorf("networks %+v, %v, want the one, complete", all, err)
			}
		})
	}
}

func TestResizeInterruptedBeforeItsConfirmationIsCompleted(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	c := newClient(t, p, &wire{})
	server := create(t, c, cloud.CreateServer{Name: "web", CPU: 1, MemoryMiB: 2048})
	change := cloud.Update{cloud.SetCPU(4)}
	stop(t, c, server.ID)
	if _, err := c.UpdateServer(t.Context(), server.ID, change); err != nil {
		t.Fatalf("UpdateServer: %v", err)
	}
	next := newClient(t, p, &wire{}) // knows nothing of the operation
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	for {
		got, err := next.GetServer(ctx, server.ID)
		if err != nil {
			t.Fatalf("GetServer: %v", err)
		}
		if got.CPU != 1 {
			t.Fatalf("%d CPUs before the confirmation, want 1", got.CPU)
		}
		if got.State == cloud.StateStopped {
			result, err := next.UpdateServer(ctx, server.ID, change)
			if err == nil && result.Operation != "" {
				if ended := finish(t, next, result); ended.Err != nil {
					t.Fatalf("the resize failed: %v", ended.Err)
				}
				break
			}
			if !cloud.Is(err, cloud.Busy) {
				t.Fatalf("UpdateServer: %+v, %v", result, err)
			}
		}
		<-time.After(pollTime)
	}
	if got, err := next.GetServer(ctx, server.ID); err != nil || got.CPU != 4 || got.MemoryMiB != 2048 || got.State != cloud.StateStopped {
		t.Errorf("%+v, %v, want 4 CPUs and 2048 MiB, stopped", got, err)
	}
}

// There is no room on any host. The service accepts both, and gives them up later.
func TestCreateAndResizeWithoutRoomReportTheirFault(t *testing.T) {
	t.Parallel()
	c := newClient(t, newProject(t), &wire{})
	result, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "huge", CPU: 8})
	if err != nil {
		t.Fatalf("CreateServer: %v", err)
	}
	if ended := finish(t, c, result); ended.Err == nil || ended.Err.Kind != cloud.NoHost {
		t.Errorf("the create ended with %v, want NoHost", ended.Err)
	}
	if got, err := c.GetServer(t.Context(), result.Server.ID); err != nil || got.State != cloud.StateError || !strings.HasPrefix(got.Fault, "No valid host was found.") {
		t.Errorf("%+v, %v, want a server in error, which says why", got, err)
	}
	server := create(t, c, cloud.CreateServer{Name: "web", CPU: 1, MemoryMiB: 2048})
	stop(t, c, server.ID)
	result, err = c.UpdateServer(t.Context(), server.ID, cloud.Update{cloud.SetCPU(8), cloud.SetMemory(50_000_000)})
	if err == nil {
		if ended := finish(t, c, result); ended.Err != nil {
			err = ended.Err
		}
	}
	if !cloud.Is(err, cloud.NoHost, cloud.Failed) {
		t.Errorf("the resize ended with %v, want NoHost or Failed", err)
	}
	if got, err := c.GetServer(t.Context(), server.ID); err != nil || got.CPU != 1 || got.State != cloud.StateStopped {
		t.Errorf("%+v, %v, want the server as before", got, err)
	}
}

// The service accepts creates for which no host is left, and gives them up later.
func TestServersOfAnAntiAffinityAreInOneServerGroup(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	c := newClient(t, p, &wire{})
	var servers []string
	full := false
	for n := range 8 { // the cloud has fewer hosts
		result, err := c.CreateServer(t.Context(), cloud.CreateServer{
			Name: fmt.Sprintf("apart-%d", n), CPU: 1, AntiAffinity: cloud.AntiAffinity{Group: p.name + "/ns/db", Required: true},
		})
		if err != nil {
			t.Fatalf("CreateServer: %v", err)
		}
		servers = append(servers, result.Server.ID)
		ended := finish(t, c, result)
		if full = ended.Err != nil; full {
			if ended.Err.Kind != cloud.NoHost {
				t.Errorf("create %d ended with %v, want NoHost", n, ended.Err)
			}
			break
		}
	}
	if len(servers) < 2 || !full {
		t.Errorf("%d servers were created, and the cloud gave up one: %t; want at least two and true", len(servers), full)
	}
	create(t, c, cloud.CreateServer{Name: "other", CPU: 1, AntiAffinity: cloud.AntiAffinity{Group: p.name + "/ns/other"}})
	wantGroups(t, p, "db", "other")
	for _, id := range servers {
		result, err := c.DeleteServer(t.Context(), id)
		if err != nil {
			t.Fatalf("DeleteServer: %v", err)
		}
		if result.Operation != "" {
			finish(t, c, result)
		}
	}
	create(t, c, cloud.CreateServer{Name: "last", CPU: 1, AntiAffinity: cloud.AntiAffinity{Group: p.name + "/ns/last"}})
	wantGroups(t, p, "last", "other")
}

// wantGroups checks the names of the server groups whose cluster is named as a project.
func wantGroups(t *testing.T, p project, want ...string) {
	t.Helper()
	var names []string
	for _, group := range admin().list("compute", "os-server-groups", "all_projects=True") {
		if name, mine := strings.CutPrefix(fmt.Sprint(group["name"]), p.name+"/ns/"); mine {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("server groups (-want +got):\n%s", diff)
	}
}

func TestAtLeastKeepsTheSizeThatWasAskedFor(t *testing.T) {
	t.Parallel()
	c := newClient(t, newProject(t), &wire{}, func(c *openstack.Config) { c.AtLeast = true })
	server := create(t, c, cloud.CreateServer{Name: "web", CPU: 2, MemoryMiB: 4096})
	if server.CPU != 2 || server.MemoryMiB != 4096 {
		t.Errorf("%d CPUs and %d MiB, want what was asked for", server.CPU, server.MemoryMiB)
	}
	result, err := c.UpdateServer(t.Context(), server.ID, cloud.Update{cloud.SetCPU(3)})
	if err != nil || result.Operation != "" || result.Server.CPU != 3 || result.Server.MemoryMiB != 4096 {
		t.Errorf("%+v, %v, want 3 CPUs without a resize", result, err)
	}
}

// An application credential that may not make others serves all calls. Without it, the
// client says so.
func TestApplicationCredential(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	id, secret := newCredential(t, p, "only")
	credential := func(c *openstack.Config) {
		c.Credentials = openstack.Credentials{ApplicationCredentialID: id, ApplicationCredentialSecret: secret}
	}
	c := newClient(t, p, &wire{}, credential, func(c *openstack.Config) { c.Project = "" })
	create(t, c, cloud.CreateServer{Name: "web", Labels: map[string]string{tagLabel: "u"}})
	if _, err := newClient(t, p, &wire{}, credential, func(c *openstack.Config) { c.Project = "another" }).Capabilities(t.Context()); !cloud.Is(err, cloud.Misconfigured) {
		t.Errorf("a credential of another project: %v, want Misconfigured", err)
	}
	deleteCredential(t, p, id)
	if _, err := newClient(t, p, &wire{}, credential).Capabilities(t.Context()); !cloud.Is(err, cloud.Unauthorized) {
		t.Errorf("a credential that was deleted: %v, want Unauthorized", err)
	}
}

// Two processes may send a create of the same object. The tag finds both servers.
func TestServersOfOneObjectAreFoundByTheirTag(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	c := newClient(t, p, &wire{})
	req := cloud.CreateServer{Name: "web", Labels: map[string]string{tagLabel: "one-object", "k": "v"}}
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			if _, err := c.CreateServer(t.Context(), req); err != nil {
				t.Errorf("CreateServer: %v", err)
			}
		})
	}
	group.Wait()
	w := &wire{}
	found, err := newClient(t, p, w).ListServers(t.Context(), cloud.ListServers{Labels: map[string]string{tagLabel: "one-object"}})
	if err != nil || len(found.Servers) != 2 {
		t.Errorf("%+v, %v, want both", found, err)
	}
}

// newCredential makes an application credential that may not make others. Names are
// unique for each user, over all runs.
func newCredential(t testing.TB, p project, name string) (id, secret string) {
	t.Helper()
	var got struct {
		Credential struct{ ID, Secret string } `json:"application_credential"`
	}
	a := admin()
	a.as(tokenOf(t, p, user)).must(http.MethodPost, fmt.Sprintf("%s/users/%s/application_credentials", a.identity, a.userID), map[string]any{
		"application_credential": map[string]any{"name": p.name + "-" + name, "unrestricted": false},
	}, &got)
	return got.Credential.ID, got.Credential.Secret
}

func deleteCredential(t testing.TB, p project, id string) {
	t.Helper()
	a := admin()
	a.as(tokenOf(t, p, user)).must(http.MethodDelete, fmt.Sprintf("%s/users/%s/application_credentials/%s", a.identity, a.userID, id), nil, nil)
}

// tokenOf returns a token of a user of a project.
func tokenOf(t testing.TB, p project, name string) string {
	t.Helper()
	header := admin().as("").must(http.MethodPost, os.Getenv("OPENSTACK_AUTH_URL")+"/auth/tokens", map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{"user": map[string]any{
			"name": name, "domain": map[string]any{"id": "default"}, "password": password,
		}}},
		"scope": map[string]any{"project": map[string]any{"id": p.id}},
	}}, nil)
	return header.Get("X-Subject-Token")
}
