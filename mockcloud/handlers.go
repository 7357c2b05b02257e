package mockcloud

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

func (c *Cloud) apiRoutes() []route {
	return []route{
		{method: "GET", template: "/check/{name}", handle: c.names.handleCheck},
		{method: "GET", template: "/servers", handle: c.listings.handle},
		{method: "POST", template: "/servers", handle: c.servers.handleCreate},
		{method: "GET", template: "/servers/{id}", handle: c.servers.handleGet},
		{method: "PATCH", template: "/servers/{id}", handle: c.servers.handlePatch, extended: true},
		{method: "DELETE", template: "/servers/{id}", handle: c.servers.handleDelete},
		{method: "GET", template: "/servers/{id}/status", handle: c.servers.handleStatus},
		{method: "GET", template: "/servers/{id}/console", handle: c.servers.handleConsole, needs: Console},
		{method: "GET", template: "/servers/{id}/snapshots", handle: c.snapshots.handleList, needs: Snapshots},
		{method: "POST", template: "/servers/{id}/snapshots", handle: c.snapshots.handleCreate, needs: Snapshots},
		{method: "DELETE", template: "/servers/{id}/snapshots/{snapshotId}", handle: c.snapshots.handleDelete, needs: Snapshots},
		{method: "POST", template: "/servers/{id}/snapshots/{snapshotId}/revert", handle: c.snapshots.handleRevert, needs: Revert},
		{method: "GET", template: "/capabilities", handle: c.settings.handleCapabilities, extended: true},
		{method: "GET", template: "/operations/{id}", handle: c.operations.handleGet, needs: Operations},
		{method: "GET", template: "/networks", handle: c.networks.handleList, needs: Networks},
		{method: "POST", template: "/networks", handle: c.networks.handleCreate, needs: Networks},
		{method: "GET", template: "/networks/{id}", handle: c.networks.handleGet, needs: Networks},
		{method: "PATCH", template: "/networks/{id}", handle: c.networks.handlePatch, needs: Networks},
		{method: "DELETE", template: "/networks/{id}", handle: c.networks.handleDelete, needs: Networks},
		{method: "GET", template: "/hosts", handle: c.hosts.handleList, needs: Hosts},
		{method: "GET", template: "/events", handle: c.streams.handle, needs: Events, streams: true},
		{method: "POST", template: "/sessions", handle: c.access.handleLogin, needs: Sessions, public: true},
		{method: "DELETE", template: "/sessions", handle: c.access.handleLogout, needs: Sessions},
	}
}

// openRoutes are served beside the REST API and change nothing. The ledger shows
// what the listings show, to the same callers.
func (c *Cloud) openRoutes() []route {
	return []route{
		{method: "GET", template: "/healthz", handle: ok, public: true},
		{method: "GET", template: "/readyz", handle: ready(c.core.closed), public: true},
		{method: "GET", template: "/openapi.json", handle: handleOpenAPI, public: true},
		{method: "GET", template: "/ledger", handle: c.ledger.handle},
	}
}

// adminRoutes control the cloud.
func (c *Cloud) adminRoutes() []route {
	return []route{
		{method: "GET", template: "/", handle: handlePage},
		{method: "GET", template: "/page/{name}", handle: handlePageFile},
		{method: "GET", template: "/admin/overview", handle: c.overviews.handle},
		{method: "GET", template: "/calls", handle: c.calls.handle},
		{method: "DELETE", template: "/calls", handle: done(c.calls.reset)},
		{method: "GET", template: "/faults", handle: c.faults.handleAll},
		{method: "POST", template: "/faults", handle: c.faults.handleAdd},
		{method: "DELETE", template: "/faults", handle: done(c.faults.clear)},
		{method: "GET", template: "/faults/{id}", handle: c.faults.handleOne},
		{method: "DELETE", template: "/faults/{id}", handle: forID(c.faults.remove)},
		{method: "POST", template: "/faults/{id}/release", handle: forID(c.faults.release)},
		{method: "POST", template: "/faults/{id}/drop", handle: forID(c.faults.drop)},
		{method: "PUT", template: "/admin/auth", handle: c.access.handleSet},
		{method: "DELETE", template: "/admin/sessions", handle: done(c.access.expire)},
		{method: "DELETE", template: "/admin/streams", handle: done(c.events.drop)},
		{method: "POST", template: "/admin/handover", handle: c.lifetime.handle},
		{method: "GET", template: "/admin/behaviour", handle: c.settings.handleGetBehaviour},
		{method: "PATCH", template: "/admin/behaviour", handle: c.settings.handlePatchBehaviour},
		{method: "PATCH", template: "/admin/capabilities", handle: c.settings.handlePatchCapabilities},
		{method: "GET", template: "/admin/quirks", handle: c.settings.handleGetQuirks},
		{method: "PATCH", template: "/admin/quirks", handle: c.settings.handlePatchQuirks},
		{method: "DELETE", template: "/admin/quirks", handle: done(func() { _ = c.settings.setQuirks(Quirks{}) })},
		{method: "PUT", template: "/admin/hosts/{name}", handle: c.hosts.handlePut},
		{method: "DELETE", template: "/admin/hosts/{name}", handle: forID(c.hosts.remove)},
		{method: "GET", template: "/admin/servers", handle: c.admin.handleAll},
		{method: "POST", template: "/admin/servers", handle: c.admin.handlePut},
		{method: "PATCH", template: "/admin/servers/{id}", handle: c.admin.handleModify},
		{method: "DELETE", template: "/admin/servers/{id}", handle: forID(c.admin.delete)},
		{method: "POST", template: "/admin/networks", handle: c.networks.handlePut},
		{method: "DELETE", template: "/admin/networks/{id}", handle: forID(c.networks.delete)},
	}
}

// newHandler returns the handler of the REST API with these stages: request ID,
// probes, call log, latency, faults, quirks, authentication, handler of the route.
func (c *Cloud) newHandler() http.Handler {
	api, open := c.apiRoutes(), c.openRoutes()
	return c.router.begin(func(w http.ResponseWriter, r *request) {
		if found, vars := c.router.find(open, r.Request); found.template != noRoute {
			r.vars = vars
			c.router.authorized(w, r, found)
			return
		}
		if c.lifetime.retired.Load() {
			// A new connection can reach the process that has taken over.
			w.Header().Set("Connection", "close")
			writeProblem(w, errRetired())
			return
		}
		found, vars := c.router.find(api, r.Request)
		r.vars = vars
		c.callStage.serve(w, r, found)
	})
}

// newAdminHandler returns the handler of the admin endpoints, which are not subject
// to faults, quirks and the call log, so that a test can control a cloud that
// rejects every call. They need no credentials, so that requests that another website
// lets a browser send are refused: changes by their origin, and all by the host, which
// that website's own name can resolve to.
func (c *Cloud) newAdminHandler() http.Handler {
	admin := append(c.adminRoutes(), c.openRoutes()...)
	metrics := c.metrics.handler()
	origins := http.NewCrossOriginProtection()
	return c.router.begin(func(w http.ResponseWriter, r *request) {
		if !localHost(r.Host) {
			writeProblem(w, problem(http.StatusForbidden, CodeInvalid,
				"the admin API is not served at the host %q: use an IP address, localhost, a name without dots, or one that ends with .svc", r.Host))
			return
		}
		if err := origins.Check(r.Request); err != nil {
			writeProblem(w, problem(http.StatusForbidden, CodeInvalid, "%v", err))
			return
		}
		if r.URL.Path == "/metrics" {
			metrics.ServeHTTP(w, r.Request)
			return
		}
		c.router.runFound(w, r, admin)
	})
}

// localHost reports whether a Host header names an address, or a name that no website
// can have: without dots, or of a Service of a cluster.
func localHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.ToLower(host)
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".svc") || strings.HasSuffix(host, ".svc.cluster.local") || strings.HasSuffix(host, ".localhost")
}

// newHandoverHandler returns the handler of the handover alone, for a process in
// another pod.
func (c *Cloud) newHandoverHandler() http.Handler {
	routes := []route{{method: "POST", template: "/admin/handover", handle: c.lifetime.handle}}
	return c.router.begin(func(w http.ResponseWriter, r *request) { c.router.runFound(w, r, routes) })
}

// Routes returns the calls of the REST API with all profiles and capabilities, each
// as method, space and template. It does not return the admin endpoints.
func (c *Cloud) Routes() []string {
	var out []string
	for _, r := range c.apiRoutes() {
		out = append(out, r.method+" "+r.template)
	}
	return out
}

func ok(w http.ResponseWriter, _ *request) error {
	_, _ = w.Write([]byte("ok\n"))
	return nil
}

// done adapts a function without arguments and results.
func done(do func()) handlerFunc {
	return func(w http.ResponseWriter, _ *request) error {
		do()
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// forID adapts a function that takes the ID of the path.
func forID(do func(string) error) handlerFunc {
	return func(w http.ResponseWriter, r *request) error {
		if err := do(r.vars[0]); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

func readInto(r *request, into any) error {
	data, err := readBody(r)
	if err != nil {
		return err
	}
	return decodeStrict(data, into)
}

// ready returns the handler of GET /readyz of a cloud that stops when closed is closed.
func ready(closed <-chan struct{}) handlerFunc {
	return func(w http.ResponseWriter, r *request) error {
		select {
		case <-closed:
			return problem(http.StatusServiceUnavailable, CodeUnavailable, "closing")
		default:
			return ok(w, r)
		}
	}
}
