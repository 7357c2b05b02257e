package mockcloud

import (
	"net/http"
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

// router finds the routes of calls and runs their handlers.
type router struct {
	core        *core
	access      *access
	transitions *transitions
}

// find returns the route of a call and its variables. If the path exists with
// other methods only, the route returns 405 and has the template of the path.
func (rt *router) find(routes []route, r *http.Request) (route, []string) {
	parts, ok := segments(r.URL)
	if !ok {
		return missing(noRoute), nil
	}
	var allowed []string
	template := noRoute
	for _, candidate := range routes {
		vars, matches := matchTemplate(candidate.template, parts)
		if !matches || !rt.offers(candidate) {
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

func (rt *router) offers(r route) bool {
	if r.extended && rt.core.profile == Core {
		return false
	}
	return r.needs == "" || rt.core.has(r.needs)
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

// begin returns a handler that applies the transitions that are due, and answers
// with the request ID.
func (rt *router) begin(serve func(http.ResponseWriter, *request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := requestID(r)
		w.Header().Set("X-Request-Id", id)
		rt.transitions.advance()
		serve(w, &request{Request: r, id: id})
	})
}

// runFound runs the handler of the route without authentication.
func (rt *router) runFound(w http.ResponseWriter, r *request, routes []route) {
	found, vars := rt.find(routes, r.Request)
	r.vars = vars
	run(w, r, found)
}

// run calls the handler and turns its error into a problem body.
func run(w http.ResponseWriter, r *request, to route) {
	if err := to.handle(w, r); err != nil {
		writeProblem(w, err)
	}
}

// authorized runs the handler if the call has the credentials.
func (rt *router) authorized(w http.ResponseWriter, r *request, to route) {
	if !to.public {
		if err := rt.access.check(r.Request, rt.core.now()); err != nil {
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeProblem(w, err)
			return
		}
	}
	run(w, r, to)
}
