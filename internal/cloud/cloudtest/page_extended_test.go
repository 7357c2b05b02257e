package cloudtest_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/cloudtest"
	"github.com/privatecloud/operator/internal/cloud/rest"
)

// object is a server or a network as it is sent.
type object map[string]any

// collection holds servers or networks, oldest first.
type collection struct {
	prefix string
	next   int
	items  []object
	// answers are those to creates by their keys, and bodies what was asked for.
	answers map[string]object
	bodies  map[string]string
}

func newCollection(prefix string) *collection {
	return &collection{prefix: prefix, answers: map[string]object{}, bodies: map[string]string{}}
}

func (c *collection) index(id string) int {
	return slices.IndexFunc(c.items, func(o object) bool { return o["id"] == id })
}

func (c *collection) named(name any) bool {
	return slices.ContainsFunc(c.items, func(o object) bool { return o["name"] == name })
}

// extendedCloud is an extended cloud with these capabilities.
type extendedCloud struct {
	has cloud.Capabilities
	// bare is set for a cloud whose refusals have no code but keyReused.
	bare bool

	mu                sync.Mutex
	servers, networks *collection
}

func (c *extendedCloud) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /capabilities", func(w http.ResponseWriter, _ *http.Request) {
		names := []string{"of-the-future"}
		for _, name := range c.has {
			names = append(names, string(name))
		}
		c.send(w, http.StatusOK, object{"capabilities": names})
	})
	mux.HandleFunc("GET /check/{name}", func(w http.ResponseWriter, r *http.Request) {
		if c.free(w, c.servers, r.PathValue("name")) {
			w.WriteHeader(http.StatusOK)
		}
	})
	mux.HandleFunc("GET /servers", c.list)
	mux.HandleFunc("POST /servers", c.creates(c.servers, c.newServer))
	mux.HandleFunc("GET /servers/{id}", c.known(c.servers, c.get))
	mux.HandleFunc("GET /servers/{id}/status", c.known(c.servers, func(w http.ResponseWriter, _ *http.Request, _ object) {
		c.send(w, http.StatusOK, object{"cpuUtilization": 12.5})
	}))
	mux.HandleFunc("PATCH /servers/{id}", c.known(c.servers, c.patchServer))
	mux.HandleFunc("DELETE /servers/{id}", c.known(c.servers, c.deletes(c.servers)))
	mux.HandleFunc("GET /hosts", func(w http.ResponseWriter, _ *http.Request) {
		c.send(w, http.StatusOK, []object{{"name": "esxi-1", "gpu": true, "availableHours": 399}, {"name": "esxi-2", "gpu": false}})
	})
	mux.HandleFunc("GET /networks", func(w http.ResponseWriter, _ *http.Request) {
		c.send(w, http.StatusOK, object{"networks": append([]object{}, c.networks.items...)})
	})
	mux.HandleFunc("POST /networks", c.creates(c.networks, c.newNetwork))
	mux.HandleFunc("GET /networks/{id}", c.known(c.networks, c.get))
	mux.HandleFunc("PATCH /networks/{id}", c.known(c.networks, c.patchNetwork))
	mux.HandleFunc("DELETE /networks/{id}", c.known(c.networks, func(w http.ResponseWriter, r *http.Request, o object) {
		if slices.ContainsFunc(c.servers.items, func(s object) bool { return s["networkId"] == o["id"] }) {
			c.refuse(w, http.StatusConflict, "attached")
			return
		}
		c.deletes(c.networks)(w, r, o)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		mux.ServeHTTP(w, r)
	})
}

func (c *extendedCloud) send(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (c *extendedCloud) refuse(w http.ResponseWriter, status int, code string) {
	if c.bare && code != "keyReused" {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"title": http.StatusText(status), "code": code})
}

// free reports whether a new object may have the name, and refuses it otherwise.
func (c *extendedCloud) free(w http.ResponseWriter, in *collection, name any) bool {
	switch {
	case name == "forbidden":
		c.refuse(w, http.StatusForbidden, "nameProhibited")
	case c.has.Has(cloud.UniqueNames) && in.named(name):
		c.refuse(w, http.StatusConflict, "nameTaken")
	default:
		return true
	}
	return false
}

// known calls serve with the object that the path names.
func (c *extendedCloud) known(in *collection, serve func(http.ResponseWriter, *http.Request, object)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		at := in.index(r.PathValue("id"))
		if at < 0 {
			c.refuse(w, http.StatusNotFound, "notFound")
			return
		}
		serve(w, r, in.items[at])
	}
}

func (c *extendedCloud) get(w http.ResponseWriter, _ *http.Request, o object) {
	c.send(w, http.StatusOK, o)
}

func (c *extendedCloud) deletes(in *collection) func(http.ResponseWriter, *http.Request, object) {
	return func(w http.ResponseWriter, _ *http.Request, o object) {
		at := in.index(o["id"].(string))
		in.items = slices.Delete(in.items, at, at+1)
		w.WriteHeader(http.StatusNoContent)
	}
}

// creates makes an object of what fill adds to the fields of the request. fill
// returns the code of a refusal, or none.
func (c *extendedCloud) creates(in *collection, fill func(object) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		o := object{}
		if json.NewDecoder(r.Body).Decode(&o) != nil {
			c.refuse(w, http.StatusBadRequest, "invalid")
			return
		}
		key, body := "", fmt.Sprint(o)
		if c.has.Has(cloud.Idempotency) {
			key = r.Header.Get("Idempotency-Key")
		}
		if made, ok := in.answers[key]; ok && key != "" {
			if in.bodies[key] != body {
				c.refuse(w, http.StatusUnprocessableEntity, "keyReused")
				return
			}
			c.send(w, http.StatusCreated, made)
			return
		}
		if !c.free(w, in, o["name"]) {
			return
		}
		if code := fill(o); code != "" {
			c.refuse(w, http.StatusBadRequest, code)
			return
		}
		in.next++
		o["id"] = fmt.Sprintf("%s-%04d", in.prefix, in.next)
		o["createdAt"] = time.Date(2026, 1, 2, 3, 4, in.next, 0, time.UTC)
		in.items = append(in.items, o)
		in.answers[key], in.bodies[key] = maps.Clone(o), body
		c.send(w, http.StatusCreated, o)
	}
}

func (c *extendedCloud) newServer(s object) string {
	if id, ok := s["networkId"]; ok && c.networks.index(id.(string)) < 0 {
		return "invalid"
	}
	s["state"] = stateFor(s["powerState"])
	if c.has.Has(cloud.Hosts) {
		s["host"] = "esxi-1"
	}
	if c.has.Has(cloud.BulkStatus) {
		s["cpuUtilization"] = 12
	}
	return ""
}

func stateFor(power any) string {
	if power == "Off" {
		return "STOPPED"
	}
	return "ACTIVE"
}

func (c *extendedCloud) patchServer(w http.ResponseWriter, r *http.Request, s object) {
	change := object{}
	if json.NewDecoder(r.Body).Decode(&change) != nil {
		c.refuse(w, http.StatusBadRequest, "invalid")
		return
	}
	for field, value := range change {
		switch field {
		case "powerState":
			s["state"] = stateFor(value)
		case "labels":
			labels, _ := s["labels"].(map[string]any)
			labels = maps.Clone(labels)
			if labels == nil {
				labels = map[string]any{}
			}
			maps.Copy(labels, value.(map[string]any))
			maps.DeleteFunc(labels, func(_ string, v any) bool { return v == nil })
			s["labels"] = labels
		default:
			s[field] = value
		}
	}
	c.send(w, http.StatusOK, s)
}

// list serves a page. The marker is the number of servers before it.
func (c *extendedCloud) list(w http.ResponseWriter, r *http.Request) {
	start, _ := strconv.Atoi(r.URL.Query().Get("marker"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	limit = cmp.Or(limit, 1000)
	end := min(start+limit, len(c.servers.items))
	page := object{"servers": append([]object{}, c.servers.items[start:end]...)}
	if end < len(c.servers.items) {
		page["next"] = strconv.Itoa(end)
	}
	c.send(w, http.StatusOK, page)
}

func inside(network object) bool {
	cidr, err := netip.ParsePrefix(fmt.Sprint(network["cidr"]))
	gateway, err2 := netip.ParseAddr(fmt.Sprint(network["gateway"]))
	return err == nil && err2 == nil && cidr.Contains(gateway)
}

func (c *extendedCloud) newNetwork(n object) string {
	if !inside(n) {
		return "invalid"
	}
	return ""
}

func (c *extendedCloud) patchNetwork(w http.ResponseWriter, r *http.Request, n object) {
	changed := maps.Clone(n)
	if json.NewDecoder(r.Body).Decode(&changed) != nil || !inside(changed) {
		c.refuse(w, http.StatusBadRequest, "invalid")
		return
	}
	n["gateway"] = changed["gateway"]
	c.send(w, http.StatusOK, n)
}

// everything that can be shown without sessions and builds that take time.
var everything = []cloud.Capability{
	cloud.Idempotency, cloud.Labels, cloud.UniqueNames, cloud.BulkStatus, cloud.Power, cloud.Resize, cloud.Folders, cloud.Networks, cloud.Hosts,
}

// implied are the capabilities that no cloud lists.
func implied(has []cloud.Capability) []cloud.Capability {
	if slices.Contains(has, cloud.Power) {
		return []cloud.Capability{cloud.Sizing, cloud.PowerAtCreate}
	}
	return []cloud.Capability{cloud.Sizing}
}

func extendedFixture(has []cloud.Capability, bare bool, change ...func(*rest.Config)) func(*testing.T) cloudtest.Fixture {
	return func(t *testing.T) cloudtest.Fixture {
		t.Helper()
		c := &extendedCloud{has: cloud.NewCapabilities(has...), bare: bare, servers: newCollection("s"), networks: newCollection("n")}
		return cloudtest.Fixture{
			Client: clientOf(t, c.handler(), change...), Has: cloud.NewCapabilities(append(implied(has), has...)...),
			Prohibited: "forbidden", Codes: !bare,
			Hosts: []cloud.Host{{Name: "esxi-1", GPU: true, AvailableHours: 399}, {Name: "esxi-2"}},
		}
	}
}

func TestExtendedCloudFromThePage(t *testing.T) {
	without := func(name cloud.Capability) []cloud.Capability {
		return slices.DeleteFunc(slices.Clone(everything), func(c cloud.Capability) bool { return c == name })
	}
	for name, has := range map[string][]cloud.Capability{
		"with all capabilities": everything, "with none": nil, "with labels alone": {cloud.Labels},
		"without keys": without(cloud.Idempotency), "without unique names": without(cloud.UniqueNames),
	} {
		for codes, bare := range map[string]bool{"with codes": false, "without codes": true} {
			t.Run(name+", "+codes, func(t *testing.T) { cloudtest.Run(t, extendedFixture(has, bare)) })
		}
	}
}

func TestExtendedCloudWithDeclaredCapabilities(t *testing.T) {
	cloudtest.Run(t, extendedFixture(everything, false, declared, func(cfg *rest.Config) { cfg.Capabilities = everything }))
}
