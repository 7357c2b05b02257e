package openstack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// externalID is the id of the external network of a neutron.
const externalID = "9c1d3d5e-0f6b-4f57-8f0d-6c2f3a1e4b31"

// object is a resource in the JSON of neutron.
type object map[string]any

func (o object) text(field string) string {
	text, _ := o[field].(string)
	return text
}

// neutron is a network service in memory, with the rules of the real one: names are not unique,
// a router takes a subnet once, and what is in use cannot be deleted.
type neutron struct {
	mu   sync.Mutex
	made int
	// all are the resources by kind, such as "routers", in the order in which they were made.
	all map[string][]object
	// changes counts the calls that change something. The one with the number cut gets no answer, and has
	// no effect if unsent.
	changes, cut int
	unsent       bool
	// asked are the reads by kind.
	asked map[string]int
	// hidden are the kinds that the account lacks the right to read: listings are empty.
	hidden map[string]bool
	// lags are the kinds of which listings are empty although the account may read them.
	lags map[string]bool
	// ignores are the kinds of which listings have all, whatever the query.
	ignores map[string]bool
	// external: answers show router:external. Queries by it work without that.
	external bool
	// sameSecond: all is made in one second, and later ids are smaller.
	sameSecond bool
	// owner is the device_owner of the ports of routers.
	owner string
	// refused are the statuses of requests by method and kind, such as "GET routers".
	refused map[string]int
	// seen is called with each request; may be nil.
	seen func(*http.Request)
}

func newNeutron(t *testing.T) (*neutron, func() *Client) {
	t.Helper()
	n := &neutron{external: true, asked: map[string]int{}, hidden: map[string]bool{}, lags: map[string]bool{}, ignores: map[string]bool{}, owner: interfaceOwners[0], refused: map[string]int{}, all: map[string][]object{"networks": {{"id": externalID, "name": "ext-net", "project_id": "another", "router:external": true}}}}
	s := newStub(t)
	s.network = n
	return n, func() *Client { return s.client() }
}

func (n *neutron) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen != nil {
		n.seen(r)
	}
	changes := r.Method != http.MethodGet
	if changes {
		n.changes++
	}
	lost := changes && n.changes == n.cut
	if lost && n.unsent {
		cut(w, r)
		return
	}
	status, answer := n.answer(r)
	if lost {
		cut(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	text, _ := json.Marshal(answer)
	if !n.external {
		text = regexp.MustCompile(`"router:external":(true|false),?`).ReplaceAll(text, nil)
		text = bytes.ReplaceAll(text, []byte(",}"), []byte("}"))
	}
	_, _ = w.Write(text)
}

func refusal(status int, kind string) (int, object) {
	return status, object{"NeutronError": object{"type": kind, "message": "refused: " + kind}}
}

func (n *neutron) answer(r *http.Request) (int, object) {
	var body map[string]object
	var flat object
	if data, _ := io.ReadAll(r.Body); json.Unmarshal(data, &body) != nil {
		_ = json.Unmarshal(data, &flat)
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/network/v2.0/"), "/")
	kind := parts[0]
	noun := strings.TrimSuffix(kind, "s")
	if r.Method == http.MethodGet {
		n.asked[kind]++
	}
	if status := n.refused[r.Method+" "+kind]; status != 0 {
		return status, object{}
	}
	if len(parts) == 1 && r.Method == http.MethodGet {
		return http.StatusOK, object{kind: n.find(kind, r)}
	}
	if r.Method == http.MethodPost {
		return n.create(kind, noun, body[noun])
	}
	found := n.get(kind, parts[1])
	switch {
	case found == nil, r.Method == http.MethodGet && n.hidden[kind]:
		return refusal(http.StatusNotFound, strings.ToUpper(noun[:1])+noun[1:]+"NotFound")
	case len(parts) == 3:
		return n.act(found, parts[2], flat)
	case r.Method == http.MethodDelete:
		return n.remove(kind, found)
	case r.Method == http.MethodPut:
		if kind == "subnets" && otherVersion(found, body[noun]["dns_nameservers"]) {
			return refusal(http.StatusBadRequest, "InvalidInput")
		}
		if kind == "subnets" && body[noun]["gateway_ip"] != nil && n.interfacesOf("subnet", found.text("id")) > 0 {
			return refusal(http.StatusConflict, "GatewayIpInUse")
		}
		if kind == "routers" {
			if status, answer := n.gateway(body[noun]); answer != nil {
				return status, answer
			}
		}
		maps.Copy(found, body[noun])
	}
	return http.StatusOK, object{noun: found}
}

// find returns the resources that match the query of a request.
func (n *neutron) find(kind string, r *http.Request) []object {
	found := []object{}
	if n.hidden[kind] || n.lags[kind] {
		return found
	}
	for _, o := range n.all[kind] {
		matches := true
		for field, values := range r.URL.Query() {
			matches = matches && (n.ignores[kind] || field == "limit" || field == "fields" || slices.Contains(values, fmt.Sprint(o[field])))
		}
		if matches {
			found = append(found, o)
		}
	}
	return found
}

func (n *neutron) get(kind, id string) object {
	at := slices.IndexFunc(n.all[kind], func(o object) bool { return o.text("id") == id })
	if at < 0 {
		return nil
	}
	return n.all[kind][at]
}

func (n *neutron) create(kind, noun string, o object) (int, object) {
	if kind == "routers" {
		if status, answer := n.gateway(o); answer != nil {
			return status, answer
		}
	}
	if kind == "subnets" && otherVersion(o, o["dns_nameservers"]) {
		return refusal(http.StatusBadRequest, "InvalidInput")
	}
	if kind == "subnets" && o["gateway_ip"] == nil {
		o["gateway_ip"] = netip.MustParsePrefix(o.text("cidr")).Addr().String()
	}
	if kind == "subnets" && len(n.all["subnets"]) > 0 && slices.ContainsFunc(n.all["subnets"], func(s object) bool {
		return s.text("network_id") == o.text("network_id") && overlapping(s, o)
	}) {
		return refusal(http.StatusBadRequest, "InvalidInput")
	}
	return http.StatusCreated, object{noun: n.add(kind, o)}
}

// gateway refuses a router that is to be connected to what is no external network.
func (n *neutron) gateway(router object) (int, object) {
	external, _ := router["external_gateway_info"].(map[string]any)
	id, _ := external["network_id"].(string)
	switch to := n.get("networks", id); {
	case to == nil:
		return refusal(http.StatusNotFound, "NetworkNotFound")
	case to["router:external"] != true:
		return http.StatusBadRequest, object{"NeutronError": object{"type": "BadRequest", "message": "Bad router request: Network " + id + " is not an external network."}}
	}
	return 0, nil
}

func (n *neutron) add(kind string, o object) object {
	n.made++
	o["id"], o["project_id"] = fmt.Sprintf("%08d-0000-4000-8000-000000000000", n.made), projectID
	o["created_at"] = time.Unix(int64(n.made), 0).UTC().Format(time.RFC3339)
	if n.sameSecond {
		o["created_at"], o["id"] = "2026-01-01T00:00:00Z", fmt.Sprintf("%08d-0000-4000-8000-000000000000", 99_999_999-n.made)
	}
	if kind == "networks" {
		o["router:external"] = false
	}
	n.all[kind] = append(n.all[kind], o)
	return o
}

// otherVersion reports whether a DNS server is of another IP version than the range of a subnet.
func otherVersion(s object, servers any) bool {
	list, _ := servers.([]any)
	return slices.ContainsFunc(list, func(server any) bool {
		return netip.MustParseAddr(fmt.Sprint(server)).Is6() != netip.MustParsePrefix(s.text("cidr")).Addr().Is6()
	})
}

func overlapping(a, b object) bool {
	return netip.MustParsePrefix(a.text("cidr")).Overlaps(netip.MustParsePrefix(b.text("cidr")))
}

// act attaches a router to a subnet, or detaches it.
func (n *neutron) act(r object, action string, body object) (int, object) {
	if action == "remove_router_interface" {
		at := slices.IndexFunc(n.all["ports"], func(p object) bool {
			return p.text("id") == body.text("port_id") && p.text("device_id") == r.text("id")
		})
		if at < 0 {
			return refusal(http.StatusNotFound, "RouterInterfaceNotFound")
		}
		of := n.all["ports"][at].text("subnet")
		n.all["ports"] = slices.DeleteFunc(n.all["ports"], func(p object) bool {
			return p.text("device_id") == r.text("id") && p.text("subnet") == of
		})
		return http.StatusOK, object{"id": r.text("id")}
	}
	s := n.get("subnets", body.text("subnet_id"))
	for _, p := range n.all["ports"] {
		other := n.get("subnets", p.text("subnet"))
		switch {
		case other == nil:
		case !slices.Contains(interfaceOwners, p.text("device_owner")):
		case p.text("device_id") == r.text("id") && p.text("subnet") == s.text("id"):
			return http.StatusBadRequest, object{"NeutronError": object{"type": "BadRequest", "message": "Bad router request: Router already has a port on subnet " + s.text("id") + "."}}
		case p.text("device_id") == r.text("id") && overlapping(other, s):
			return refusal(http.StatusBadRequest, "BadRequest") // one that overlaps
		case p.text("subnet") == s.text("id"):
			return refusal(http.StatusConflict, "IpAddressAlreadyAllocated") // the address of the gateway
		}
	}
	if n.owner == "network:router_interface_distributed" {
		n.add("ports", object{
			"device_id": r.text("id"), "device_owner": "network:router_centralized_snat", "network_id": s.text("network_id"), "subnet": s.text("id"), "fixed_ips": []object{{"subnet_id": s.text("id")}},
		})
	}
	n.add("ports", object{
		"device_id": r.text("id"), "device_owner": n.owner, "network_id": s.text("network_id"), "subnet": s.text("id"),
		"fixed_ips": []object{{"subnet_id": s.text("id"), "ip_address": s.text("gateway_ip")}},
	})
	return http.StatusOK, object{"id": r.text("id")}
}

func (n *neutron) remove(kind string, o object) (int, object) {
	id := o.text("id")
	switch kind {
	case "routers":
		if n.interfacesOf("device_id", id) > 0 {
			return refusal(http.StatusConflict, "RouterInUse")
		}
	case "networks":
		of := func(o object) bool { return o.text("network_id") == id }
		if slices.ContainsFunc(n.all["ports"], func(p object) bool { return of(p) && p.text("device_owner") != "network:dhcp" }) {
			return refusal(http.StatusConflict, "NetworkInUse")
		}
		n.all["ports"] = slices.DeleteFunc(n.all["ports"], of)
		n.all["subnets"] = slices.DeleteFunc(n.all["subnets"], of)
	}
	n.all[kind] = slices.DeleteFunc(n.all[kind], func(o object) bool { return o.text("id") == id })
	return http.StatusNoContent, nil
}

// interfacesOf counts the ports with a value.
func (n *neutron) interfacesOf(field, value string) int {
	count := 0
	for _, p := range n.all["ports"] {
		if p.text(field) == value {
			count++
		}
	}
	return count
}

// counts returns how many there are of each kind, without the external network.
func (n *neutron) counts() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return map[string]int{
		"networks": len(n.all["networks"]) - 1, "subnets": len(n.all["subnets"]), "routers": len(n.all["routers"]), "interfaces": len(n.all["ports"]),
	}
}

// addPort adds a port that is no interface of a router to a network.
func (n *neutron) addPort(network, owner string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.add("ports", object{"network_id": network, "device_owner": owner, "device_id": someID})
}

// reads returns how many reads there were of each kind since the last call.
func (n *neutron) reads() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := n.asked
	n.asked = map[string]int{}
	return taken
}

// attachAnother attaches the only router to the subnet of another network.
func (n *neutron) attachAnother() {
	n.mu.Lock()
	defer n.mu.Unlock()
	other := n.add("networks", object{"name": "other"})
	s := n.add("subnets", object{"network_id": other.text("id"), "cidr": "10.7.0.0/24"})
	n.act(n.all["routers"][0], "add_router_interface", object{"subnet_id": s.text("id")})
}

// stepOf makes the call that an operator makes next for a network of which it knows the name, and
// reports whether there is none.
func stepOf(t *testing.T, c *Client, req cloud.CreateNetwork, deleted bool) (done bool) {
	t.Helper()
	all, err := c.ListNetworks(t.Context())
	if err != nil {
		t.Fatalf("ListNetworks: %v", err)
	}
	at := slices.IndexFunc(all, func(n cloud.Network) bool { return n.Name == req.Name && !n.Shared })
	switch {
	case deleted && at < 0:
		return true
	case deleted:
		_ = c.DeleteNetwork(t.Context(), all[at].ID)
	case at < 0 || all[at].HalfMade:
		_, _ = c.CreateNetwork(t.Context(), req)
	case all[at].IPv6CIDR != req.IPv6CIDR:
		_, _ = c.UpdateNetwork(t.Context(), all[at].ID, cloud.UpdateNetwork{IPv6CIDR: req.IPv6CIDR})
	case !all[at].Router.ConnectedTo(req.ExternalNetwork):
		_, _ = c.UpdateNetwork(t.Context(), all[at].ID, cloud.UpdateNetwork{ExternalNetwork: req.ExternalNetwork})
	default:
		return true
	}
	return false
}
