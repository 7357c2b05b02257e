package openstack

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// listOf returns a page with servers of these ids, and a link to the next page if more.
func listOf(more bool, ids ...string) string {
	var servers []string
	for _, id := range ids {
		servers = append(servers, strings.Replace(serverJSON(`"metadata": {"owner:2fuid": "u-1"}`), someID, id, 1))
	}
	links := ""
	if more {
		links = `"servers_links": [{"rel": "self"}, {"rel": "next", "href": "http://elsewhere.invalid/"}], `
	}
	return `{` + links + `"servers": [` + strings.Join(servers, ",") + `]}`
}

func TestListingFollowsMarkersAndNotLinks(t *testing.T) {
	s := newStub(t)
	var queries []string
	s.handle("GET compute/servers/detail", func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		_, _ = w.Write([]byte(listOf(r.URL.Query().Get("marker") == "", "a", "b")))
	})
	c := s.client()
	page, err := c.ListServers(t.Context(), cloud.ListServers{Limit: 2, Labels: map[string]string{"owner/uid": "u-1"}})
	if err != nil || len(page.Servers) != 2 || page.Next != "b" {
		t.Fatalf("%+v, %v, want two servers and the marker b", page, err)
	}
	page, err = c.ListServers(t.Context(), cloud.ListServers{Marker: page.Next, Labels: map[string]string{"owner/uid": "another"}})
	if err != nil || len(page.Servers) != 0 || page.Next != "" {
		t.Errorf("%+v, %v, want the last page without servers that have other labels", page, err)
	}
	if diff := cmp.Diff([]string{"limit=2&tags=uid-u-1", "marker=b&tags=uid-another"}, queries); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

func TestMarkerThatIsGoneBeginsTheListingAnew(t *testing.T) {
	s := newStub(t)
	s.on("GET compute/servers/detail", `{"badRequest": {"message": "marker [x] not found"}}`, 400)
	if _, err := s.client().ListServers(t.Context(), cloud.ListServers{Marker: "x"}); !cloud.Is(err, cloud.Unavailable) {
		t.Errorf("%v, want Unavailable, after which the next listing begins", err)
	}
	if _, err := s.client().ListServers(t.Context(), cloud.ListServers{}); !cloud.Is(err, cloud.Rejected) {
		t.Errorf("%v without a marker, want Rejected", err)
	}
}

// failing refuses the second server.
type failing struct{ taken int }

func (f *failing) Begin() { f.taken = 0 }

var errFull = &cloud.Error{Kind: cloud.Unreadable, Op: "list servers", Detail: "too many"}

func (f *failing) Take(cloud.Server) error {
	f.taken++
	if f.taken == 2 {
		return errFull
	}
	return nil
}

func TestListingEndsWithTheErrorOfTheSink(t *testing.T) {
	s := newStub(t)
	s.on("GET compute/servers/detail", listOf(false, "a", "b", "c"))
	to := &failing{}
	if _, err := s.client().StreamServers(t.Context(), cloud.ListServers{}, to); !errors.Is(err, errFull) || to.taken != 2 {
		t.Errorf("%v after %d servers, want the error of the second", err, to.taken)
	}
}

func TestListingThatBreaksIsReadAgain(t *testing.T) {
	s := newStub(t)
	tries := 0
	s.handle("GET compute/servers/detail", func(w http.ResponseWriter, r *http.Request) {
		tries++
		if tries == 1 {
			w.Header().Set("Content-Length", "10000")
			_, _ = w.Write([]byte(`{"servers": [` + serverJSON() + `,`))
			cut(w, r)
			return
		}
		_, _ = w.Write([]byte(listOf(false, "a")))
	})
	page, err := s.client().ListServers(t.Context(), cloud.ListServers{})
	if err != nil || len(page.Servers) != 1 || page.Servers[0].ID != "a" || tries != 2 {
		t.Errorf("%+v, %v after %d tries, want the second answer alone", page, err, tries)
	}
}

func TestListingsThatCannotBeUsed(t *testing.T) {
	tests := map[string]struct{ body, says string }{
		"no JSON":                     {`<html>`, "not the JSON of a listing"},
		"empty":                       {``, "not the JSON of a listing"},
		"an array":                    {`[]`, "not the JSON of a listing"},
		"a list that is none":         {`{"servers": 5}`, "not the JSON of a listing"},
		"no list":                     {`{}`, "no list of servers"},
		"null":                        {`{"servers": null}`, "not the JSON of a listing"},
		"two lists":                   {`{"servers": [], "servers": []}`, "two lists of servers"},
		"a server that is a number":   {`{"servers": [5]}`, "a field of the wrong type"},
		"a server with a wrong field": {`{"servers": [{"id": 5}]}`, "a field of the wrong type"},
		"a server without an id":      {`{"servers": [{"name": "x"}]}`, "a server without an id"},
		"a server without a name":     {`{"servers": [{"id": "x"}]}`, "server x without a name"},
		"a server of a cell that does not answer": {`{"servers": [{"id": "x", "status": "UNKNOWN"}]}`, "its cell of the compute service does not answer"},
		"a server that is too large":              {`{"servers": [{"id": "x", "name": "` + strings.Repeat("n", 3*maxElement) + `"}]}`, "larger than 256 KiB"},
		"a field that is too large":               {`{"x": "` + strings.Repeat("n", 3*maxElement) + `", "servers": []}`, "larger than 256 KiB"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.on("GET compute/servers/detail", tc.body)
			_, err := s.client().ListServers(t.Context(), cloud.ListServers{})
			if !cloud.Is(err, cloud.Unreadable) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%v, want Unreadable with %q", err, tc.says)
			}
		})
	}
}

func FuzzListing(f *testing.F) {
	f.Add(listOf(true, "a", "b"))
	f.Add(`{"servers": [{"id": "a", "name": "b", "flavor": null, "metadata": {"privatecloud:size": "1x2@f"}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		count := 0
		_, err := readList(&call{op: "list"}, strings.NewReader(body), "servers", func(data []byte) error {
			count++
			if len(data) > 3*maxElement {
				t.Errorf("an element of %d bytes", len(data))
			}
			return nil
		})
		if err != nil && (err.Kind != cloud.Unreadable || err.Detail == "") {
			t.Errorf("%+v, want Unreadable with a reason", err)
		}
	})
}

func TestDefaultNetworkIsLookedUpOnce(t *testing.T) {
	for name, want := range map[string]string{
		"none": `"networks":"none"`, "auto": `"networks":"auto"`, "office": `"networks":[{"uuid":"` + otherID + `"}]`,
		someID: `"networks":[{"uuid":"` + someID + `"}]`,
	} {
		s := newStub(t)
		s.on("GET network/networks", `{"networks": [{"id": "`+otherID+`", "name": "office"}]}`)
		s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, 202)
		c := s.client(func(c *Config) { c.Network = name })
		for range 2 {
			if _, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		sent := s.taken()
		if last := sent[len(sent)-1]; !strings.Contains(last, want) {
			t.Errorf("%s: sent %s, want %s", name, last, want)
		}
		if lookups := strings.Count(fmt.Sprint(sent), "GET network/networks"); lookups > 1 {
			t.Errorf("%s: looked up %d times", name, lookups)
		}
	}
}

func TestInterfacesAreNetworksOfTheCreate(t *testing.T) {
	for name, test := range map[string]struct {
		interfaces []cloud.Attachment
		want       string
	}{
		"two":                   {[]cloud.Attachment{{NetworkID: otherID}, {NetworkID: someID}}, `"networks":[{"uuid":"` + otherID + `"},{"uuid":"` + someID + `"}]`},
		"with a static address": {[]cloud.Attachment{{NetworkID: otherID, Addresses: []string{"10.0.0.5"}}}, `"networks":[{"fixed_ip":"10.0.0.5","uuid":"` + otherID + `"}]`},
	} {
		s := newStub(t)
		s.on("POST compute/servers", `{"server": {"id": "`+someID+`"}}`, 202)
		result, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web", Interfaces: test.interfaces})
		if err != nil || result.Server.NetworkID != otherID {
			t.Errorf("%s: on network %q, %v, want %s", name, result.Server.NetworkID, err, otherID)
		}
		sent := s.taken()
		if last := sent[len(sent)-1]; !strings.Contains(last, test.want) || !strings.Contains(last, `"privatecloud:network":"`+otherID+`"`) {
			t.Errorf("%s: sent %s, want %s", name, last, test.want)
		}
	}
}

func TestInterfacesThatCannotBeSentAreRefused(t *testing.T) {
	s := newStub(t)
	for name, test := range map[string]struct {
		interfaces []cloud.Attachment
		want       cloud.Kind
	}{
		"two addresses of one interface": {[]cloud.Attachment{{NetworkID: otherID, Addresses: []string{"10.0.0.5", "fd00::5"}}}, cloud.Unsupported},
		"no id":                          {[]cloud.Attachment{{NetworkID: otherID}, {NetworkID: "../servers"}}, cloud.Rejected},
	} {
		if _, err := s.client().CreateServer(t.Context(), cloud.CreateServer{Name: "web", Interfaces: test.interfaces}); !cloud.Is(err, test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	if sent := fmt.Sprint(s.taken()); strings.Contains(sent, "POST compute/servers") {
		t.Errorf("sent %s", sent)
	}
}

// An image may be replaced by another of the same name.
func TestRefusedCreateLooksIdsUpAgain(t *testing.T) {
	s := newStub(t)
	s.on("POST compute/servers", `{"badRequest": {"message": "Can not find requested image"}}`, 400)
	c := s.client()
	for range 2 {
		if _, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"}); !cloud.Is(err, cloud.Rejected) {
			t.Errorf("%v, want Rejected", err)
		}
	}
	if lookups := strings.Count(fmt.Sprint(s.taken()), "GET image/images"); lookups != 2 {
		t.Errorf("looked up %d times, want twice", lookups)
	}
}

// The service leaves out the servers of a cell that does not answer if a request has a limit.
func TestFirstPageOfAllServersHasNoLimit(t *testing.T) {
	s := newStub(t)
	var queries []string
	s.handle("GET compute/servers/detail", func(w http.ResponseWriter, r *http.Request) {
		queries = append(queries, r.URL.RawQuery)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"servers": []}`)
	})
	c := s.client()
	for _, opts := range []cloud.ListServers{{Limit: 500}, {Limit: 500, Marker: someID}, {Limit: 2}} {
		if _, err := c.ListServers(t.Context(), opts); err != nil {
			t.Errorf("ListServers(%+v): %v", opts, err)
		}
	}
	if diff := cmp.Diff([]string{"", "limit=500&marker=" + someID, "limit=2"}, queries); diff != "" {
		t.Errorf("queries (-want +got):\n%s", diff)
	}
}

func TestPageWithoutServersIsNotTheEndIfAnotherFollows(t *testing.T) {
	s := newStub(t)
	s.on("GET compute/servers/detail", `{"servers": [], "servers_links": [{"rel": "next", "href": "x"}]}`)
	if _, err := s.client().ListServers(t.Context(), cloud.ListServers{}); !cloud.Is(err, cloud.Unreadable) {
		t.Errorf("ListServers: %v, want Unreadable", err)
	}
}
