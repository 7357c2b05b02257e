package mockcloud

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

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

// handoverRoutes have the handover alone, for a process in another pod.
func (c *Cloud) handoverRoutes() []route {
	return []route{{method: "POST", template: "/admin/handover", handle: c.handleHandOver}}
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
		{method: "POST", template: "/admin/handover", handle: c.handleHandOver},
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

func (l *callLog) handle(w http.ResponseWriter, _ *request) error {
	calls := l.all()
	l.mu.Lock()
	counts := make([]CallCount, 0, len(l.counts))
	for key, count := range l.counts {
		counts = append(counts, CallCount{Method: key.method, Route: key.route, Count: count})
	}
	l.mu.Unlock()
	slices.SortFunc(counts, func(a, b CallCount) int {
		return strings.Compare(a.Route+" "+a.Method, b.Route+" "+b.Method)
	})
	return writeJSON(w, http.StatusOK, map[string]any{"calls": calls, "counts": counts})
}

func (s *faultSet) handleAll(w http.ResponseWriter, _ *request) error {
	return writeJSON(w, http.StatusOK, s.all())
}

func (s *faultSet) handleOne(w http.ResponseWriter, r *request) error {
	for _, f := range s.all() {
		if f.ID == r.vars[0] {
			return writeJSON(w, http.StatusOK, f)
		}
	}
	return notFound("fault", r.vars[0])
}

func (s *faultSet) handleAdd(w http.ResponseWriter, r *request) error {
	var f Fault
	if err := readInto(r, &f); err != nil {
		return err
	}
	id, err := s.add(f)
	if err != nil {
		return invalid("%v", err)
	}
	return writeJSON(w, http.StatusCreated, map[string]string{"id": id})
}

// handleSet handles PUT /admin/auth. Absent fields are switched off, except
// sessionTTL, which is kept.
func (a *access) handleSet(w http.ResponseWriter, r *request) error {
	var body struct {
		Token      string   `json:"token"`
		Username   string   `json:"username"`
		Password   string   `json:"password"`
		SessionTTL Duration `json:"sessionTTL"`
	}
	if err := readInto(r, &body); err != nil {
		return err
	}
	a.setToken(body.Token)
	a.setCredentials(body.Username, body.Password)
	if body.SessionTTL > 0 {
		a.setTTL(time.Duration(body.SessionTTL))
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
