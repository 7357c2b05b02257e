package mockcloud

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/google/uuid"
)

// request is a call with its request ID and path variables.
type request struct {
	*http.Request
	// id is the X-Request-Id of the answer.
	id string
	// vars are the variable segments of the path, percent-decoded once.
	vars []string
}

type handlerFunc func(http.ResponseWriter, *request) error

// route is one call of the API.
type route struct {
	method   string
	template string
	handle   handlerFunc
	// needs is the capability that the route belongs to. Without it, the path does not
	// exist.
	needs Capability
	// extended routes do not exist in the core profile.
	extended bool
	// public routes need no token.
	public bool
	// streams marks a route whose response cannot be buffered.
	streams bool
}

func (c *Cloud) apiRoutes() []route {
	return []route{
		{method: "GET", template: "/check/{name}", handle: c.names.handleCheck},
		{method: "GET", template: "/servers", handle: c.listings.handle},
		{method: "POST", template: "/servers", handle: c.servers.handleCreate},
		{method: "GET", template: "/servers/{id}", handle: c.servers.handleGet},
		{method: "PATCH", template: "/servers/{id}", handle: c.servers.handlePatch, extended: true},
		{method: "DELETE", template: "/servers/{id}", handle: c.servers.handleDelete},
		{method: "GET", template: "/servers/{id}/status", handle: c.servers.handleStatus},
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

// noRoute is the template of calls that match no route.
const noRoute = "none"

// segments splits an escaped path before it decodes the segments, so that a name
// can contain slashes and dots, which http.ServeMux removes.
func segments(u *url.URL) ([]string, bool) {
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	for i, part := range parts {
		decoded, err := url.PathUnescape(part)
		if err != nil {
			return nil, false
		}
		parts[i] = decoded
	}
	return parts, true
}

// matchTemplate returns the values of a template's variables.
func matchTemplate(template string, parts []string) ([]string, bool) {
	want := strings.Split(strings.TrimPrefix(template, "/"), "/")
	if len(want) != len(parts) {
		return nil, false
	}
	var vars []string
	for i, segment := range want {
		if strings.HasPrefix(segment, "{") {
			vars = append(vars, parts[i])
		} else if segment != parts[i] {
			return nil, false
		}
	}
	return vars, true
}

// find returns the route of a call and its variables. If the path exists with
// other methods only, the route returns 405 and has the template of the path.
func (c *Cloud) find(routes []route, r *http.Request) (route, []string) {
	parts, ok := segments(r.URL)
	if !ok {
		return missing(noRoute), nil
	}
	var allowed []string
	template := noRoute
	for _, candidate := range routes {
		vars, matches := matchTemplate(candidate.template, parts)
		if !matches || !c.offers(candidate) {
			continue
		}
		if candidate.method == r.Method {
			return candidate, vars
		}
		template = candidate.template
		allowed = append(allowed, candidate.method)
	}
	if len(allowed) > 0 {
		return wrongMethod(template, allowed), nil
	}
	return missing(template), nil
}

func (c *Cloud) offers(r route) bool {
	if r.extended && c.core.profile == Core {
		return false
	}
	return r.needs == "" || c.core.has(r.needs)
}

func missing(template string) route {
	return route{template: template, handle: func(_ http.ResponseWriter, r *request) error {
		return problem(http.StatusNotFound, CodeNotFound, "there is no %s", r.URL.EscapedPath())
	}}
}

func wrongMethod(template string, allowed []string) route {
	return route{template: template, handle: func(w http.ResponseWriter, r *request) error {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return problem(http.StatusMethodNotAllowed, CodeMethodNotAllowed, "%s is not allowed here", r.Method)
	}}
}

// requestID returns the request ID of the client if it is printable, and a new one
// otherwise.
func requestID(r *http.Request) string {
	id := r.Header.Get("X-Request-Id")
	fit := id != "" && len(id) <= 128
	for _, char := range []byte(id) {
		fit = fit && char > ' ' && char < 0x7f
	}
	if fit {
		return id
	}
	return uuid.NewString()
}

// newHandler returns the handler of the REST API with these stages: request ID,
// probes, call log, latency, faults, quirks, authentication, handler of the route.
func (c *Cloud) newHandler() http.Handler {
	api, open := c.apiRoutes(), c.openRoutes()
	return c.begin(func(w http.ResponseWriter, r *request) {
		if found, vars := c.find(open, r.Request); found.template != noRoute {
			r.vars = vars
			c.authorized(w, r, found)
			return
		}
		if c.retired.Load() {
			// A new connection can reach the process that has taken over.
			w.Header().Set("Connection", "close")
			writeProblem(w, errRetired())
			return
		}
		found, vars := c.find(api, r.Request)
		r.vars = vars
		c.serveCall(w, r, found)
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
	return c.begin(func(w http.ResponseWriter, r *request) {
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
		c.runFound(w, r, admin)
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

// newHandoverHandler returns the handler of the handover.
func (c *Cloud) newHandoverHandler() http.Handler {
	return c.begin(func(w http.ResponseWriter, r *request) { c.runFound(w, r, c.handoverRoutes()) })
}

// begin returns a handler that applies the transitions that are due, and answers
// with the request ID.
func (c *Cloud) begin(serve func(http.ResponseWriter, *request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := requestID(r)
		w.Header().Set("X-Request-Id", id)
		c.transitions.advance()
		serve(w, &request{Request: r, id: id})
	})
}

// runFound runs the handler of the route without authentication.
func (c *Cloud) runFound(w http.ResponseWriter, r *request, routes []route) {
	found, vars := c.find(routes, r.Request)
	r.vars = vars
	run(w, r, found)
}

// run calls the handler and turns its error into a problem body.
func run(w http.ResponseWriter, r *request, to route) {
	if err := to.handle(w, r); err != nil {
		writeProblem(w, err)
	}
}

// serve serves a call of the API with the quirks that are on.
func (c *Cloud) serve(w http.ResponseWriter, r *request, to route) {
	q := c.core.quirks.Load()
	if *q == (Quirks{}) {
		c.authorized(w, r, to)
		return
	}
	c.serveQuirky(w, r, to, q)
}

// authorized runs the handler if the call has the credentials.
func (c *Cloud) authorized(w http.ResponseWriter, r *request, to route) {
	if !to.public {
		if err := c.access.check(r.Request, c.core.now()); err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeProblem(w, err)
			return
		}
	}
	run(w, r, to)
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
