package openstack_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/cloudtest"
)

// reachOf gives a project two security groups, and a network with a router to the external one.
func reachOf(t testing.TB, p project) cloudtest.Reach {
	t.Helper()
	a := admin()
	id := a.create("network", "networks", "network", map[string]any{"name": "routed", "project_id": p.id})
	subnet := a.create("network", "subnets", "subnet", map[string]any{
		"name": "routed", "network_id": id, "project_id": p.id, "cidr": "10.7.0.0/24", "ip_version": 4,
	})
	router := a.create("network", "routers", "router", map[string]any{
		"name": "routed", "project_id": p.id, "external_gateway_info": map[string]any{"network_id": a.external},
	})
	a.must(http.MethodPut, a.services["network"]+"/routers/"+router+"/add_router_interface", map[string]any{"subnet_id": subnet}, nil)
	return cloudtest.Reach{Groups: groupsOf(t, p), NetworkID: id}
}

// groupsOf gives a project two security groups, and returns their names.
func groupsOf(t testing.TB, p project) [2]string {
	t.Helper()
	names := [2]string{"ssh", "web"}
	for _, name := range names {
		admin().create("network", "security-groups", "security_group", map[string]any{"name": name, "project_id": p.id})
	}
	return names
}

// floatingOf returns the floating addresses of a project.
func floatingOf(t testing.TB, p project) (addresses []string) {
	t.Helper()
	for _, f := range admin().list("network", "floatingips", "project_id="+p.id) {
		addresses = append(addresses, fmt.Sprint(f["floating_ip_address"]))
	}
	return addresses
}

// cleanReach deletes the floating addresses and routers of a project.
func cleanReach(a *administrator, p project) {
	for _, f := range a.list("network", "floatingips", "project_id="+p.id) {
		a.remove("network", "floatingips", f)
	}
	for _, r := range a.list("network", "routers", "project_id="+p.id) {
		for _, port := range a.list("network", "ports", url.Values{"device_id": {fmt.Sprint(r["id"])}, "device_owner": {"network:router_interface"}}.Encode()) {
			body := strings.NewReader(fmt.Sprintf(`{"port_id": %q}`, port["id"]))
			_, _, _, _ = a.request(http.MethodPut, fmt.Sprintf("%s/routers/%s/remove_router_interface", a.services["network"], r["id"]), body, "application/json")
		}
		a.remove("network", "routers", r)
	}
}

// mustCreate creates a server on a network, and returns its id.
func mustCreate(t *testing.T, c cloud.Client, network string) string {
	t.Helper()
	created, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "reached", NetworkID: network})
	if err != nil {
		t.Fatal(err)
	}
	if end := finish(t, c, created); end.Err != nil {
		t.Fatal(end.Err)
	}
	return created.Server.ID
}

// assign gives a server a public address and returns it.
func assign(t *testing.T, c cloud.Client, id string) string {
	t.Helper()
	result, err := c.UpdateServer(t.Context(), id, cloud.Update{cloud.SetPublicAddress(externalNetwork)})
	if err != nil {
		t.Fatal(err)
	}
	return result.Server.PublicAddress
}

// A create of an address whose answer is lost makes one. It is deleted once the server is gone, also if somebody else
// deleted the server.
func TestFloatingAddressIsMadeAndDeletedOnce(t *testing.T) {
	t.Parallel()
	p, w := newProject(t), &wire{}
	c := newClient(t, p, w)
	server := mustCreate(t, c, reachOf(t, p).NetworkID)
	restore := w.loseAnswers(pattern{http.MethodPost, "floatingips"})
	_, err := c.UpdateServer(t.Context(), server, cloud.Update{cloud.SetPublicAddress(externalNetwork)})
	restore()
	if err == nil {
		t.Fatal("UpdateServer succeeded, want its answer to be lost")
	}
	address := assign(t, c, server)
	if diff := cmp.Diff([]string{address}, floatingOf(t, p)); diff != "" {
		t.Errorf("floating addresses (-want +got):\n%s", diff)
	}
	a := admin()
	a.must(http.MethodDelete, a.services["compute"]+"/servers/"+server, nil, nil)
	for len(a.list("compute", "servers", url.Values{"all_tenants": {"1"}, "project_id": {p.id}}.Encode())) > 0 {
		<-time.After(pollTime)
	}
	for range 2 {
		if err := c.DeletePublicAddresses(t.Context(), server); err != nil {
			t.Errorf("DeletePublicAddresses: %v", err)
		}
	}
	if left := floatingOf(t, p); left != nil {
		t.Errorf("the floating addresses %q are left", left)
	}
}

// An address that somebody has given to another server is not moved back, and not deleted with the server that it was made for.
func TestFloatingAddressOfAnotherServerStays(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	c := newClient(t, p, &wire{})
	network := reachOf(t, p).NetworkID
	server, other := mustCreate(t, c, network), mustCreate(t, c, network)
	moved := assign(t, c, server)
	a := admin()
	floating := a.list("network", "floatingips", "project_id="+p.id)[0]["id"]
	port := a.list("network", "ports", "device_id="+other)[0]["id"]
	a.must(http.MethodPut, fmt.Sprintf("%s/floatingips/%s", a.services["network"], floating), map[string]any{"floatingip": map[string]any{"port_id": port}}, nil)
	second := assign(t, c, server)
	if second == moved || second == "" {
		t.Errorf("the server has the address %q, want another one than %s, which was moved", second, moved)
	}
	if err := c.DeletePublicAddresses(t.Context(), server); err != nil {
		t.Errorf("DeletePublicAddresses: %v", err)
	}
	if diff := cmp.Diff([]string{moved}, floatingOf(t, p)); diff != "" {
		t.Errorf("floating addresses (-want +got):\n%s", diff)
	}
	_, err := c.UpdateServer(t.Context(), other, cloud.Update{cloud.SetPublicAddress(externalNetwork)})
	if !cloud.Is(err, cloud.Rejected) {
		t.Errorf("a second address for a server with one of somebody else: %v, want Rejected", err)
	}
}

// What cannot be reached is refused with one line.
func TestBadReach(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	c := newClient(t, p, &wire{})
	a := admin()
	alone := a.create("network", "networks", "network", map[string]any{"name": "alone", "project_id": p.id})
	a.create("network", "subnets", "subnet", map[string]any{"name": "alone", "network_id": alone, "project_id": p.id, "cidr": "10.8.0.0/24", "ip_version": 4})
	for range 2 {
		a.create("network", "security-groups", "security_group", map[string]any{"name": "twice", "project_id": p.id})
	}
	server := mustCreate(t, c, alone)
	for change, want := range map[cloud.ServerChange]string{
		cloud.SetPublicAddress(externalNetwork): `no router connects the network of the server with "ext-net"`,
		cloud.SetPublicAddress("nowhere"):       `no external network that can be used is named "nowhere"; there are: ext-net`,
		cloud.SetPublicAddress("alone"):         `no external network that can be used is named "alone"; there are: ext-net`,
		cloud.SetSecurityGroups("nowhere"):      `no security group that can be used is named "nowhere"; there are: default, twice`,
		cloud.SetSecurityGroups("twice"):        `2 security groups are named "twice": rename all but one`,
	} {
		_, err := c.UpdateServer(t.Context(), server, cloud.Update{change})
		if !cloud.Is(err, cloud.Rejected) || !strings.Contains(err.Error(), want) { // other tests make external networks
			t.Errorf("%s: %v, want Rejected: %s", change, err, want)
		}
	}
	if left := floatingOf(t, p); left != nil {
		t.Errorf("the floating addresses %q are left", left)
	}
}

// The only address of an external network is that of the router.
func TestPoolWithoutAddresses(t *testing.T) {
	t.Parallel()
	a := admin()
	pool := fmt.Sprintf("pool-%d", time.Now().UnixNano())
	id := a.create("network", "networks", "network", map[string]any{"name": pool, "router:external": true})
	t.Cleanup(func() {
		a.must(http.MethodDelete, a.services["network"]+"/networks/"+id, nil, nil)
	})
	a.create("network", "subnets", "subnet", map[string]any{
		"network_id": id, "ip_version": 4, "cidr": "198.51.100.0/30", "gateway_ip": "198.51.100.1", "enable_dhcp": false,
	})
	p := newProject(t)
	c := newClient(t, p, &wire{})
	network, err := c.CreateNetwork(t.Context(), cloud.CreateNetwork{Name: "net", CIDR: "10.8.0.0/24", Gateway: "10.8.0.1", ExternalNetwork: pool})
	if err != nil {
		t.Fatal(err)
	}
	server := mustCreate(t, c, network.ID)
	_, err = c.UpdateServer(t.Context(), server, cloud.Update{cloud.SetPublicAddress(pool)})
	if !cloud.Is(err, cloud.Quota) || strings.Contains(err.Error(), "\n") {
		t.Errorf("SetPublicAddress: %v, want one line of the kind Quota", err)
	}
	t.Log(err)
	second := cloud.CreateNetwork{Name: "other", CIDR: "10.9.0.0/24", Gateway: "10.9.0.1", ExternalNetwork: pool}
	if _, err := c.CreateNetwork(t.Context(), second); !cloud.Is(err, cloud.Quota) {
		t.Errorf("a network with a router: %v, want the kind Quota", err)
	}
	if left := floatingOf(t, p); left != nil {
		t.Errorf("the floating addresses %q are left", left)
	}
}
