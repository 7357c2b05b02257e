package cloudtest_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/cloudtest"
	"github.com/privatecloud/operator/internal/cloud/rest"
)

// The clouds of this file and of page_extended_test.go have what docs/cloud-api.md
// says, and nothing else: they share no code with the client and the mock cloud.
// What the suite requires of them must be on that page.

// habits are in what clouds of the core profile differ.
type habits struct {
	// missing answers a call about a server that does not exist; nil for 404 without a body.
	missing http.HandlerFunc
	// capabilities answers GET /capabilities; nil for a 404 of the router.
	capabilities http.HandlerFunc
	// media is the content type of JSON; empty for application/json, "none" for no type.
	media string
	// decorate adds to a server what the page does not know.
	decorate func(map[string]any)
	// normalize changes a name.
	normalize func(string) string
	// integers makes ids integers.
	integers bool
	// created is the status of a create; 0 for 201.
	created int
	// deleted is the status of a deletion; 0 for 204.
	deleted int
}

// coreCloud is a core cloud that keeps names unique.
type coreCloud struct {
	habits

	mu    sync.Mutex
	next  int
	names map[string]string
}

func (c *coreCloud) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /check/{name}", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(c.check(r.PathValue("name")))
	})
	mux.HandleFunc("GET /servers", func(w http.ResponseWriter, _ *http.Request) {
		servers := []map[string]any{}
		for id := range c.names {
			servers = append(servers, c.server(id))
		}
		c.send(w, http.StatusOK, servers)
	})
	mux.HandleFunc("POST /servers", c.create)
	mux.HandleFunc("GET /servers/{id}", c.known(func(w http.ResponseWriter, id string) { c.send(w, http.StatusOK, c.server(id)) }))
	mux.HandleFunc("GET /servers/{id}/status", c.known(func(w http.ResponseWriter, _ string) {
		c.send(w, http.StatusOK, map[string]int{"cpuUtilization": 50})
	}))
	mux.HandleFunc("DELETE /servers/{id}", c.known(func(w http.ResponseWriter, id string) {
		delete(c.names, id)
		w.WriteHeader(cmp.Or(c.deleted, http.StatusNoContent))
	}))
	if c.capabilities != nil {
		mux.HandleFunc("GET /capabilities", c.capabilities)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		mux.ServeHTTP(w, r)
	})
}

func (c *coreCloud) check(name string) int {
	for _, used := range c.names {
		if used == c.stored(name) {
			return http.StatusConflict
		}
	}
	if name == "forbidden" {
		return http.StatusForbidden
	}
	return http.StatusOK
}

func (c *coreCloud) stored(name string) string {
	if c.normalize == nil {
		return name
	}
	return c.normalize(name)
}

func (c *coreCloud) create(w http.ResponseWriter, r *http.Request) {
	var req struct{ Name string }
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if status := c.check(req.Name); status != http.StatusOK {
		w.WriteHeader(status)
		return
	}
	c.next++
	id := fmt.Sprint(c.next)
	c.names[id] = c.stored(req.Name)
	c.send(w, cmp.Or(c.created, http.StatusCreated), c.server(id))
}

func (c *coreCloud) server(id string) map[string]any {
	s := map[string]any{"id": id, "name": c.names[id]}
	if c.integers {
		s["id"] = json.Number(id)
	}
	if c.decorate != nil {
		c.decorate(s)
	}
	return s
}

func (c *coreCloud) known(serve func(http.ResponseWriter, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		if _, ok := c.names[id]; ok {
			serve(w, id)
			return
		}
		if c.missing != nil {
			c.missing(w, r)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}
}

func (c *coreCloud) send(w http.ResponseWriter, status int, body any) {
	switch c.media {
	case "none":
		w.Header()["Content-Type"] = nil
	default:
		w.Header().Set("Content-Type", cmp.Or(c.media, "application/json"))
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// answer returns a handler with a fixed answer.
func answer(status int, media, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// coreFixture returns fixtures of core clouds with these habits.
func coreFixture(h habits, change ...func(*rest.Config)) func(*testing.T) cloudtest.Fixture {
	return func(t *testing.T) cloudtest.Fixture {
		t.Helper()
		c := &coreCloud{habits: h, names: map[string]string{}}
		changes := append([]func(*rest.Config){func(cfg *rest.Config) { cfg.UniqueNames = true }}, change...)
		return cloudtest.Fixture{
			Client: clientOf(t, c.handler(), changes...), Has: cloud.NewCapabilities(cloud.UniqueNames), Prohibited: "forbidden",
			PlainNames: h.normalize != nil,
		}
	}
}

// clientOf returns a client of a server that runs h.
func clientOf(t *testing.T, h http.Handler, change ...func(*rest.Config)) *rest.Client {
	t.Helper()
	server := httptest.NewServer(h)
	cfg := rest.Config{Name: "page", Endpoint: server.URL, Limits: rest.Limits{RequestsPerSecond: 10000, Burst: 10000, MaxInFlight: 32}}
	for _, f := range change {
		f(&cfg)
	}
	client, err := rest.New(cfg)
	if err != nil {
		t.Fatalf("rest.New: %v", err)
	}
	t.Cleanup(func() {
		client.Close(t.Context())
		server.Close()
	})
	return client
}

func declared(cfg *rest.Config) { cfg.Declared = true }

func TestCoreCloudFromThePage(t *testing.T) {
	for name, h := range map[string]habits{
		"as the page shows it":          {},
		"404 of a router":               {missing: http.NotFound},
		"404 in HTML":                   {missing: answer(404, "text/html", "<h1>Not Found</h1>")},
		"404 in JSON without a code":    {missing: answer(404, "application/json", `{"error":"no such server"}`)},
		"404 with the code":             {missing: answer(404, "application/problem+json", `{"code":"notFound"}`)},
		"410":                           {missing: answer(410, "text/plain", "gone")},
		"ids that are integers":         {integers: true},
		"names in lower case":           {normalize: strings.ToLower},
		"names that are trimmed":        {normalize: strings.TrimSpace},
		"names with a domain":           {normalize: func(name string) string { return strings.TrimSuffix(name, ".internal") + ".internal" }},
		"JSON as text":                  {media: "text/plain; charset=utf-8"},
		"text/json":                     {media: "text/json"},
		"JSON as octets":                {media: "application/octet-stream"},
		"JSON without a type":           {media: "none"},
		"200 to creates and deletions":  {created: 200, deleted: 200},
		"capabilities: 404 in HTML":     {capabilities: answer(404, "text/html", "<h1>Not Found</h1>")},
		"capabilities: 404 with a code": {capabilities: answer(404, "application/problem+json", `{"code":"notFound"}`)},
		"optional fields of other types": {decorate: func(s map[string]any) {
			s["createdAt"], s["labels"], s["memory"], s["host"], s["cpuUtilization"] = 1700000000, []string{"web"}, "4GB", struct{}{}, "12%"
		}},
		"states in lower case": {decorate: func(s map[string]any) { s["state"] = "active" }},
		"further fields that differ in case alone": {decorate: func(s map[string]any) {
			s["ID"], s["Name"], s["NAME"], s["State"], s["Labels"] = 7, "other", "other", "ERROR", map[string]string{"a": "b"}
		}},
	} {
		t.Run(name, func(t *testing.T) { cloudtest.Run(t, coreFixture(h)) })
	}
}

// A core cloud may answer a call that it does not know with anything. Its
// capabilities are declared then.
func TestCoreCloudWithDeclaredCapabilities(t *testing.T) {
	for name, capabilities := range map[string]http.HandlerFunc{
		"400": answer(400, "text/plain", "bad request"), "401": answer(401, "text/plain", ""), "403": answer(403, "text/plain", ""),
		"405": answer(405, "text/plain", ""), "500": answer(500, "text/plain", "boom"), "501": answer(501, "text/plain", ""),
		"HTML": answer(200, "text/html", "<html>"), "an empty object": answer(200, "application/json", `{}`),
	} {
		t.Run(name, func(t *testing.T) { cloudtest.Run(t, coreFixture(habits{capabilities: capabilities}, declared)) })
	}
}

// The names that a cloud changes are those that a listing has.
func TestNormalizedNameIsThatOfTheListing(t *testing.T) {
	f := coreFixture(habits{normalize: strings.ToLower})(t)
	result, err := f.Client.CreateServer(t.Context(), cloud.CreateServer{Name: "Web-1"})
	created := result.Server
	if err != nil || created.ID == "" || created.Name != "web-1" {
		t.Fatalf("CreateServer: %+v, %v; want an id and the name web-1", created, err)
	}
	page, err := f.Client.ListServers(t.Context(), cloud.ListServers{})
	if err != nil || !slices.ContainsFunc(page.Servers, func(s cloud.Server) bool { return s.ID == created.ID && s.Name == "web-1" }) {
		t.Errorf("ListServers: %+v, %v; want %s among them", page.Servers, err, created.ID)
	}
}
