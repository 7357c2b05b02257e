package openstack

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	bareNetwork  = `{"id": "` + someID + `", "name": "net", "description": "private-cloud-operator key", "created_at": "2026-01-02T03:04:05Z"}`
	itsSubnet    = `{"id": "` + otherID + `", "network_id": "` + someID + `", "cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.1", "revision_number": 7, "allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.254"}]}`
	aboutNetOne  = " network/networks/" + someID
	aboutSubOne  = " network/subnets/" + otherID
	oneBare      = `{"networks": [` + bareNetwork + `]}`
	createSubnet = `POST network/subnets {"subnet":{"cidr":"10.0.0.0/24","description":"private-cloud-operator key","gateway_ip":"10.0.0.1","ip_version":4,"name":"net","network_id":"` + someID + `"}}`
)

var aNetwork = cloud.CreateNetwork{Name: "net", CIDR: "10.0.0.0/24", Gateway: "10.0.0.1", IdempotencyKey: "key"}

func TestNetworkIsMadeInTwoSteps(t *testing.T) {
	s := newStub(t)
	s.on("GET network/networks", `{"networks": []}`)
	s.on("POST network/networks", `{"network": `+bareNetwork+`}`, 201)
	s.on("POST network/subnets", `{"subnet": `+itsSubnet+`}`, 201)
	got, err := s.client().CreateNetwork(t.Context(), aNetwork)
	if err != nil || got.ID != someID || got.CIDR != "10.0.0.0/24" || got.Gateway != "10.0.0.1" || got.HalfMade {
		t.Errorf("%+v, %v", got, err)
	}
	want := []string{`POST network/networks {"network":{"description":"private-cloud-operator key","name":"net"}}`, createSubnet}
	if diff := cmp.Diff(want, changesOf(s.taken())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestServersForNamesAreThoseOfTheSubnet(t *testing.T) {
	s := newStub(t)
	with := func(servers string) string {
		return strings.Replace(itsSubnet, `"revision_number": 7`, `"revision_number": 7, "dns_nameservers": `+servers, 1)
	}
	s.on("GET network/networks", `{"networks": []}`)
	s.on("POST network/networks", `{"network": `+bareNetwork+`}`, 201)
	s.on("POST network/subnets", `{"subnet": `+with(`["10.0.0.53"]`)+`}`, 201)
	c, req := s.client(), aNetwork
	req.DNSNameservers = []string{"10.0.0.53"}
	got, err := c.CreateNetwork(t.Context(), req)
	if diff := cmp.Diff(req.DNSNameservers, got.DNSNameservers); diff != "" || err != nil {
		t.Errorf("created with: %v (-want +got):\n%s", err, diff)
	}
	want := []string{
		`POST network/networks {"network":{"description":"private-cloud-operator key","name":"net"}}`,
		strings.Replace(createSubnet, `"gateway_ip"`, `"dns_nameservers":["10.0.0.53"],"gateway_ip"`, 1),
	}
	if diff := cmp.Diff(want, changesOf(s.taken())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}

	s.on("GET"+aboutNetOne, `{"network": `+bareNetwork+`}`)
	s.on("GET network/subnets", `{"subnets": [`+with(`[]`)+`]}`)
	if got, err := c.GetNetwork(t.Context(), someID); err != nil || got.DNSNameservers != nil {
		t.Errorf("without DNS servers: %+v, %v", got, err)
	}
	s.taken()
	s.handle("PUT"+aboutSubOne, func(w http.ResponseWriter, r *http.Request) {
		if match := r.Header.Get("If-Match"); match != "revision_number=7" {
			t.Errorf("If-Match %q", match)
		}
		_, _ = w.Write([]byte(`{"subnet": ` + with(`["fd00::53", "10.0.0.53"]`) + `}`))
	})
	servers := []string{"fd00::53", "10.0.0.53"}
	got, err = c.UpdateNetwork(t.Context(), someID, cloud.UpdateNetwork{DNSNameservers: servers})
	if diff := cmp.Diff(servers, got.DNSNameservers); diff != "" || err != nil {
		t.Errorf("changed to: %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{`PUT` + aboutSubOne + ` {"subnet":{"dns_nameservers":["fd00::53","10.0.0.53"]}}`}, changesOf(s.taken())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

func TestHalfMadeNetworkIsCompleted(t *testing.T) {
	completed := []string{createSubnet}
	another := append([]string{`POST network/networks {"network":{"description":"private-cloud-operator key","name":"net"}}`}, completed...)
	tests := map[string]struct {
		networks, subnets string
		want              []string
	}{
		"of the same key: completed":       {oneBare, `{"subnets": []}`, completed},
		"without a description: completed": {strings.ReplaceAll(oneBare, "private-cloud-operator key", ""), `{"subnets": []}`, completed},
		"of another key: left alone":       {strings.ReplaceAll(oneBare, "key", "other"), `{"subnets": []}`, another},
		"it has a subnet: left alone":      {oneBare, `{"subnets": [` + itsSubnet + `]}`, another},
		"of another name: left alone":      {strings.ReplaceAll(oneBare, `"net"`, `"Net"`), `{"subnets": []}`, another},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.on("GET network/networks", tc.networks)
			s.on("GET network/subnets", tc.subnets)
			s.on("POST network/networks", `{"network": `+bareNetwork+`}`, 201)
			s.on("POST network/subnets", `{"subnet": `+itsSubnet+`}`, 201)
			if _, err := s.client().CreateNetwork(t.Context(), aNetwork); err != nil {
				t.Errorf("CreateNetwork: %v", err)
			}
			if diff := cmp.Diff(tc.want, changesOf(s.taken())); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSubnetThatFails(t *testing.T) {
	tests := map[string]struct {
		subnet, deletion http.HandlerFunc
		want             outcome
		deleted          bool
		subnets          string
	}{
		"refused: the network is deleted":                      {status(400), status(204), outcome{Kind: cloud.Rejected}, true, `{"subnets": []}`},
		"refused, and the network stays: uncertain":            {status(400), status(409), outcome{cloud.Rejected, true}, true, `{"subnets": []}`},
		"the quota is used up: the network is deleted":         {quotaOfSubnets, status(204), outcome{Kind: cloud.Quota}, true, `{"subnets": []}`},
		"the answer is lost: uncertain, and the network stays": {cut, nil, outcome{cloud.Unavailable, true}, false, `{"subnets": []}`},
		"the service fails: uncertain":                         {status(500), nil, outcome{cloud.Unavailable, true}, false, `{"subnets": []}`},
		"too many requests: uncertain, it is completed later":  {status(429), nil, outcome{cloud.Throttled, true}, false, `{"subnets": []}`},
		"refused, since another request made it: uncertain":    {status(400), nil, outcome{cloud.Rejected, true}, false, `{"subnets": [` + itsSubnet + `]}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.on("GET network/networks", `{"networks": []}`)
			s.on("POST network/networks", `{"network": `+bareNetwork+`}`, 201)
			s.handle("POST network/subnets", tc.subnet)
			s.on("GET network/subnets", tc.subnets)
			if tc.deletion != nil {
				s.handle("DELETE"+aboutNetOne, tc.deletion)
			}
			_, err := s.client().CreateNetwork(t.Context(), aNetwork)
			if diff := cmp.Diff(tc.want, outcomeOf(err)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			sent := changesOf(s.taken())
			if deleted := strings.HasPrefix(sent[len(sent)-1], "DELETE"); deleted != tc.deleted {
				t.Errorf("sent %v, want a deletion: %t", sent, tc.deleted)
			}
		})
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func quotaOfSubnets(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusConflict)
	_, _ = w.Write([]byte(`{"NeutronError": {"type": "OverQuota", "message": "Quota exceeded for resources: ['subnet']."}}`))
}

func TestGatewayIsChangedWithPoolsAndRevision(t *testing.T) {
	s := newStub(t)
	s.on("GET"+aboutNetOne, `{"network": `+bareNetwork+`}`)
	s.on("GET network/subnets", `{"subnets": [`+itsSubnet+`]}`)
	var match string
	s.handle("PUT"+aboutSubOne, func(w http.ResponseWriter, r *http.Request) {
		match = r.Header.Get("If-Match")
		_, _ = w.Write([]byte(`{"subnet": ` + strings.Replace(itsSubnet, `"10.0.0.1"`, `"10.0.0.9"`, 1) + `}`))
	})
	c := s.client()
	got, err := c.UpdateNetwork(t.Context(), someID, cloud.UpdateNetwork{Gateway: "10.0.0.9"})
	if err != nil || got.Gateway != "10.0.0.9" || match != "revision_number=7" {
		t.Errorf("%+v, %v, If-Match %q", got, err, match)
	}
	want := []string{`PUT` + aboutSubOne + ` {"subnet":{"allocation_pools":[{"start":"10.0.0.1","end":"10.0.0.8"},{"start":"10.0.0.10","end":"10.0.0.254"}],"gateway_ip":"10.0.0.9"}}`}
	if diff := cmp.Diff(want, changesOf(s.taken())); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	for code, kind := range map[int]cloud.Kind{412: cloud.Busy, 409: cloud.Conflict, 404: cloud.Busy, 400: cloud.Rejected} {
		s.handle("PUT"+aboutSubOne, status(code))
		if _, err := c.UpdateNetwork(t.Context(), someID, cloud.UpdateNetwork{Gateway: "10.0.0.9"}); outcomeOf(err) != (outcome{Kind: kind}) {
			t.Errorf("%d: %v, want %s", code, err, kind)
		}
	}
	s.on("GET network/subnets", `{"subnets": []}`)
	if _, err := c.UpdateNetwork(t.Context(), someID, cloud.UpdateNetwork{Gateway: "10.0.0.9"}); !cloud.Is(err, cloud.Busy) {
		t.Errorf("a half-made network: %v, want Busy", err)
	}
}

func TestNetworksAreListedWithTheirOldestSubnet(t *testing.T) {
	s := newStub(t)
	page := 0
	s.handle("GET network/networks", func(w http.ResponseWriter, r *http.Request) {
		page++
		if r.URL.Query().Get("marker") == "" {
			_, _ = w.Write([]byte(`{"networks_links": [{"rel": "next", "href": "http://elsewhere.invalid/"}], "networks": [` + bareNetwork + `]}`))
			return
		}
		_, _ = w.Write([]byte(`{"networks": [{"id": "half", "name": "h", "project_id": "` + projectID + `"}]}`))
	})
	s.on("GET network/subnets", `{"subnets": [
		{"id": "young", "network_id": "`+someID+`", "cidr": "10.9.0.0/24", "created_at": "2026-02-01T00:00:00Z"},
		{"id": "old", "network_id": "`+someID+`", "cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.1", "created_at": "2026-01-01T00:00:00Z"},
		{"id": "other", "network_id": "another", "cidr": "10.1.0.0/24"}]}`)
	got, err := s.client().ListNetworks(t.Context())
	if err != nil || len(got) != 2 || page != 2 {
		t.Fatalf("%+v, %v after %d pages", got, err, page)
	}
	if got[0].CIDR != "10.0.0.0/24" || got[0].HalfMade || !got[1].HalfMade || got[1].CIDR != "" {
		t.Errorf("%+v, want the oldest subnet of the first, and the second half-made", got)
	}
}

func TestNetworksOfOthersAreListedIfTheProjectMayUseThem(t *testing.T) {
	s := newStub(t)
	network := func(id, project, more string) string {
		return `{"id": "` + id + `", "name": "` + id + `", "project_id": "` + project + `"` + more + `}`
	}
	s.on("GET network/networks", `{"networks": [`+strings.Join([]string{
		network("own", projectID, ""), network("own-shared", projectID, `, "shared": true`), network("private", "another", `, "shared": false, "router:external": false`),
		network("shared", "another", `, "shared": true`), network("external", "another", `, "router:external": true`),
	}, ",")+`]}`)
	s.on("GET network/subnets", `{"subnets": [
		{"id": "a", "network_id": "own", "cidr": "10.1.0.0/24"}, {"id": "b", "network_id": "own-shared", "cidr": "10.2.0.0/24"},
		{"id": "c", "network_id": "shared", "cidr": "10.3.0.0/24", "gateway_ip": "10.3.0.1"}]}`)
	got, err := s.client().ListNetworks(t.Context())
	want := []cloud.Network{
		{ID: "own", Name: "own", CIDR: "10.1.0.0/24"}, {ID: "own-shared", Name: "own-shared", CIDR: "10.2.0.0/24"},
		{ID: "shared", Name: "shared", CIDR: "10.3.0.0/24", Gateway: "10.3.0.1", Shared: true}, {ID: "external", Name: "external", Shared: true},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("networks: %v (-want +got):\n%s", err, diff)
	}
}

// An account that may see all networks completes none of another project.
func TestHalfMadeNetworkIsLookedForInTheProject(t *testing.T) {
	s := newStub(t)
	s.handle("GET network/networks", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("project_id") != projectID {
			t.Errorf("query %s, want that of the project", r.URL.RawQuery)
		}
		_, _ = w.Write([]byte(`{"networks": []}`))
	})
	s.on("POST network/networks", `{"network": `+bareNetwork+`}`, 201)
	s.on("POST network/subnets", `{"subnet": `+itsSubnet+`}`, 201)
	if _, err := s.client().CreateNetwork(t.Context(), aNetwork); err != nil {
		t.Error(err)
	}
}

func TestNotFoundOfSubnetsSaysNothingAboutTheNetwork(t *testing.T) {
	s := newStub(t)
	s.on("GET"+aboutNetOne, `{"network": `+bareNetwork+`}`)
	s.on("GET network/subnets", neutronNotFound, 404)
	if _, err := s.client().GetNetwork(t.Context(), someID); !cloud.Is(err, cloud.Unreadable) {
		t.Errorf("%v, want Unreadable", err)
	}
}

// All pages together are in memory.
func TestListingsOfNetworksAndFlavorsAreBounded(t *testing.T) {
	const lists = "lists more %s than the operator reads"
	const element, unnamed = `{"id": "a", "name": "n"}`, `{"name": "n"}`
	long := `{"id": "a", "name": "` + strings.Repeat("x", 250<<10) + `"}`
	calls := map[string]struct {
		request string
		call    func(*Client) error
	}{
		"networks": {"GET network/networks", func(c *Client) error { _, err := c.ListNetworks(t.Context()); return err }},
		"subnets":  {"GET network/subnets", func(c *Client) error { _, err := c.ListNetworks(t.Context()); return err }},
		"flavors": {"GET compute/flavors/detail", func(c *Client) error {
			_, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"})
			return err
		}},
	}
	for field, tc := range calls {
		for what, endless := range map[string]struct {
			element string
			page    int
			says    string
			pages   int
		}{
			"many":      {element, 1000, fmt.Sprintf(lists, field), keptBounds.elements/1000 + 1},
			"large":     {long, 20, fmt.Sprintf(lists, field), keptBounds.bytes/(20*250<<10) + 1},
			"small":     {element, 1, "the list of " + field + " does not end", maxPages},
			"of no use": {unnamed, 1, "an element of the list of " + field + " cannot be read", 1},
		} {
			t.Run(field+" "+what, func(t *testing.T) {
				t.Parallel()
				s := newStub(t)
				s.on("GET network/networks", `{"networks": []}`)
				var asked atomic.Int64
				page := strings.Repeat(endless.element+",", endless.page-1) + endless.element
				body := []byte(fmt.Sprintf(`{"%s_links": [{"rel": "next"}], %q: [%s]}`, field, field, page))
				s.handle(tc.request, func(w http.ResponseWriter, _ *http.Request) {
					asked.Add(1)
					_, _ = w.Write(body)
				})
				err := tc.call(s.client(func(c *Config) { c.Timeout = time.Minute }))
				if !cloud.Is(err, cloud.Unreadable) || !strings.Contains(err.Error(), endless.says) || int(asked.Load()) != endless.pages {
					t.Errorf("%v after %d pages, want Unreadable with %q after %d", err, asked.Load(), endless.says, endless.pages)
				}
			})
		}
	}
}
