package openstack_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// user is the account of the operator in every project of these tests: it may do what docs/openstack.md lists, and
	// nothing else. person has the usual role member. Both have the password.
	user     = "operator-test"
	person   = "person-test"
	password = "a-password-of-tests"
	// operatorRole is the role that hack/openstack/policies.py gives the rights of the page.
	operatorRole = "operator"
	domain       = "Default"
	region       = "RegionOne"
)

// admin is the administrator of the OpenStack. It is made once for all tests.
var admin = sync.OnceValue(func() *administrator {
	a := &administrator{identity: strings.TrimRight(os.Getenv("OPENSTACK_AUTH_URL"), "/")}
	if a.identity == "" {
		panic("OPENSTACK_AUTH_URL is not set: run make test-openstack")
	}
	a.logIn()
	for _, left := range a.list("identity", "projects", "") { // by tests that were interrupted
		if name, _ := left["name"].(string); ofTest.MatchString(name) {
			a.clean(project{id: fmt.Sprint(left["id"]), name: name})
		}
	}
	a.userID = a.ensure("identity", "users", "user", map[string]any{"name": user, "password": password, "domain_id": "default"})
	a.personID = a.ensure("identity", "users", "user", map[string]any{"name": person, "password": password, "domain_id": "default"})
	a.ensure("identity", "roles", "role", map[string]any{"name": operatorRole})
	a.ensureImage("small", nil)
	a.ensureImage(demanding, map[string]any{"min_disk": 5, "min_ram": 4096})
	a.ensureImage(ofWindows, map[string]any{"os_type": "windows"})
	for name, size := range flavors {
		a.ensure("compute", "flavors", "flavor", map[string]any{"name": name, "vcpus": size[0], "ram": size[1], "disk": 1})
	}
	a.ensure("compute", "flavors", "flavor", map[string]any{"name": diskless, "vcpus": 5, "ram": 1024, "disk": 0})
	a.ensure("compute", "flavors", "flavor", map[string]any{"name": "t-6-8", "vcpus": 6, "ram": 8192, "disk": 10})
	id := a.ensure("compute", "flavors", "flavor", map[string]any{"name": special, "vcpus": 7, "ram": 1024, "disk": 1})
	a.must(http.MethodPost, a.services["compute"]+"/flavors/"+id+"/os-extra_specs", map[string]any{
		"extra_specs": map[string]string{"aggregate_instance_extra_specs:pool": "licensed"},
	}, nil)
	a.external = a.ensureExternal()
	if !guests { // no cinder
		a.ensureVolumeType(otherType)
	}
	return a
})

// externalNetwork is the network that routers connect to.
const externalNetwork = "ext-net"

const (
	tooLarge = "t-too-large"
	// diskless is a flavor for servers that boot from a volume. Another one of its size has a disk.
	diskless = "t-0-diskless"
	// special is the flavor of a size that has an extra spec for certain hosts, which the simulated hypervisor ignores.
	special = "t-7-special"
	// demanding is an image that needs a disk of 5 GiB and 4096 MiB of memory.
	demanding = "t-demanding"
	// ofWindows is an image whose guests are said to be of Windows.
	ofWindows = "t-windows"
)

// flavors are those that the suite asks for, the default one, and one that fits on no host.
var flavors = map[string][2]int{
	tooLarge: {8, 50_000_000}, // MiB, more than a host has
	"t1":     {1, 512}, "t-1-1": {1, 1024}, "t-1-2": {1, 2048}, "t-2-2": {2, 2048}, "t-3-5": {3, 5120}, "t-4-1": {4, 1024}, "t-4-2": {4, 2048}, "t-5-1": {5, 1024},
}

type administrator struct {
	identity, token, userID, personID string
	// version is the microversion that requests ask for, such as "volume 3.42"; empty for that of most tests.
	version string
	// external is the id of the external network of all projects.
	external string
	services map[string]string

	mu   sync.Mutex
	made int
}

// ensureExternal returns the id of the external network, which has room for many routers and floating addresses.
func (a *administrator) ensureExternal() string {
	network := map[string]any{"name": externalNetwork, "router:external": true}
	subnet := map[string]any{"name": externalNetwork, "ip_version": 4, "cidr": "203.0.112.0/20", "gateway_ip": "203.0.112.1", "enable_dhcp": false}
	if guests { // the physical network
		network["provider:network_type"], network["provider:physical_network"] = "flat", "public"
		subnet["cidr"], subnet["gateway_ip"] = publicRange, publicGateway
		subnet["allocation_pools"] = []map[string]string{{"start": firstPublic, "end": lastPublic}}
	}
	id := a.ensure("network", "networks", "network", network)
	if subnet["network_id"] = id; len(a.list("network", "subnets", "network_id="+id)) == 0 {
		a.create("network", "subnets", "subnet", subnet)
	}
	return id
}

func (a *administrator) logIn() {
	scope := map[string]any{"name": "admin", "domain": map[string]any{"id": "default"}}
	var got struct {
		Token struct {
			Catalog []struct {
				Type      string
				Endpoints []struct{ Interface, URL string }
			}
		}
	}
	header := a.must(http.MethodPost, a.identity+"/auth/tokens", map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{"user": map[string]any{
			"name": "admin", "domain": map[string]any{"id": "default"}, "password": os.Getenv("OPENSTACK_ADMIN_PASSWORD"),
		}}},
		"scope": map[string]any{"project": scope},
	}}, &got)
	a.token = header.Get("X-Subject-Token")
	a.services = map[string]string{"identity": a.identity}
	for _, entry := range got.Token.Catalog {
		for _, endpoint := range entry.Endpoints {
			if endpoint.Interface != "public" || entry.Type == "identity" {
				continue
			}
			a.services[entry.Type] = strings.TrimRight(endpoint.URL, "/") + map[string]string{"network": "/v2.0", "image": "/v2"}[entry.Type]
		}
	}
}

// as returns an administrator who sends another token.
func (a *administrator) as(token string) *administrator {
	return &administrator{identity: a.identity, token: token, services: a.services}
}

// at returns an administrator whose requests ask for a microversion.
func (a *administrator) at(version string) *administrator {
	return &administrator{identity: a.identity, token: a.token, services: a.services, version: version}
}

// request sends a request as the administrator.
func (a *administrator) request(method, target string, body io.Reader, media string) (int, http.Header, []byte, error) {
	r, err := http.NewRequest(method, target, body)
	if err != nil {
		return 0, nil, nil, err
	}
	r.Header.Set("X-Auth-Token", a.token)
	r.Header.Set("Content-Type", media)
	r.Header.Set("X-OpenStack-Nova-API-Version", "2.79")
	if a.version != "" {
		r.Header.Set("OpenStack-API-Version", a.version)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, text, err
}

// must is request with JSON. It panics unless the request succeeds.
func (a *administrator) must(method, target string, body, out any) http.Header {
	var data []byte
	if body != nil {
		data, _ = json.Marshal(body)
	}
	status, header, text, err := a.request(method, target, bytes.NewReader(data), "application/json")
	if err != nil || status >= 300 {
		panic(fmt.Sprintf("%s %s: %d, %v: %s", method, target, status, err, text))
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			panic(err)
		}
	}
	return header
}

func (a *administrator) list(service, path, query string) []map[string]any {
	var got map[string]json.RawMessage
	a.must(http.MethodGet, a.services[service]+"/"+path+"?"+query, nil, &got)
	var all []map[string]any
	_ = json.Unmarshal(got[strings.ReplaceAll(strings.TrimPrefix(path, "os-"), "-", "_")], &all)
	return all
}

// ensure returns the id of an object of this name, which it makes if there is none.
func (a *administrator) ensure(service, path, noun string, object map[string]any) string {
	for _, found := range a.list(service, path, "") {
		if found["name"] == object["name"] {
			id, _ := found["id"].(string)
			return id
		}
	}
	return a.create(service, path, noun, object)
}

func (a *administrator) create(service, path, noun string, object map[string]any) string {
	var got map[string]map[string]any
	a.must(http.MethodPost, a.services[service]+"/"+path, map[string]any{noun: object}, &got)
	id, _ := got[noun]["id"].(string)
	return id
}

// ensureImage makes a public image with more properties, if there is none of this name.
func (a *administrator) ensureImage(name string, more map[string]any) {
	for _, found := range a.list("image", "images", "name="+name) {
		if found["status"] == "active" {
			return
		}
	}
	var got map[string]any
	properties := map[string]any{"name": name, "disk_format": "raw", "container_format": "bare", "visibility": "public"}
	maps.Copy(properties, more)
	a.must(http.MethodPost, a.services["image"]+"/images", properties, &got)
	if err := a.upload(fmt.Sprint(got["id"])); err != nil {
		panic(err)
	}
}

// ofTest matches the names of projects of tests.
var ofTest = regexp.MustCompile(`^test-\d{13}-\d+$`)

// project is a project of one test.
type project struct{ id, name string }

// newProject makes a project, which is deleted after the test with all that is in it.
func newProject(t testing.TB) project {
	t.Helper()
	a := admin()
	a.mu.Lock()
	a.made++
	name := fmt.Sprintf("test-%d-%d", time.Now().UnixMilli(), a.made)
	a.mu.Unlock()
	p := project{name: name, id: a.create("identity", "projects", "project", map[string]any{"name": name, "domain_id": "default"})}
	a.grant(p, a.personID, "member")
	a.grant(p, a.userID, "member")
	a.grant(p, a.userID, operatorRole)
	t.Cleanup(func() {
		fresh := &administrator{identity: a.identity} // the token of the test may have expired
		fresh.logIn()
		fresh.clean(p)
	})
	return p
}

// grant gives a user a role in a project. The role is made if there is none of this name.
func (a *administrator) grant(p project, user, role string) {
	id := a.ensure("identity", "roles", "role", map[string]any{"name": role})
	a.must(http.MethodPut, fmt.Sprintf("%s/projects/%s/users/%s/roles/%s", a.identity, p.id, user, id), nil, nil)
}

// clean deletes a project and all that is in it.
func (a *administrator) clean(p project) {
	mine := url.Values{"all_tenants": {"1"}, "project_id": {p.id}}
	for range 100 {
		left := a.list("compute", "servers", mine.Encode())
		for _, s := range left {
			a.remove("compute", "servers", s)
		}
		if len(left) == 0 {
			break
		}
		<-time.After(pollTime)
	}
	cleanVolumes(a, p)
	cleanReach(a, p)
	for _, i := range a.list("image", "images", "owner="+p.id) {
		a.remove("image", "images", i)
	}
	for _, path := range []string{"networks", "security-groups"} {
		for _, found := range a.list("network", path, "project_id="+p.id) {
			a.remove("network", path, found)
		}
	}
	a.remove("identity", "projects", map[string]any{"id": p.id})
}

// remove deletes an object of a service. What cannot be deleted stays.
func (a *administrator) remove(service, path string, object map[string]any) {
	_, _, _, _ = a.request(http.MethodDelete, fmt.Sprintf("%s/%s/%s", a.services[service], path, object["id"]), nil, "application/json")
}
