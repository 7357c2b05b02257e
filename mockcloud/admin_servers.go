package mockcloud

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// adminServers reads and changes servers without the REST API and without its checks,
// so that tests can create states that the API does not allow.
type adminServers struct {
	core        *core
	views       *views
	hosts       *hosts
	records     *records
	servers     *servers
	transitions *transitions
}

func (a *adminServers) all() []Server {
	a.transitions.advance()
	now := a.core.now()
	a.core.mu.RLock()
	defer a.core.mu.RUnlock()
	out := make([]Server, 0, len(a.core.st.order))
	for _, p := range a.core.st.order {
		out = append(out, a.views.full(a.core.st.servers[p.id], now))
	}
	return out
}

func (a *adminServers) get(id string) (Server, bool) {
	a.transitions.advance()
	r, err := a.records.lookup(id)
	if err != nil {
		return Server{}, false
	}
	return a.views.full(r, a.core.now()), true
}

func (a *adminServers) userDataSHA256(id string) string {
	a.transitions.advance()
	r, err := a.records.lookup(id)
	if err != nil {
		return ""
	}
	return r.UserDataSHA256
}

func (a *adminServers) put(s Server) (Server, error) {
	a.core.mu.Lock()
	defer a.core.mu.Unlock()
	now := a.core.now()
	if s.ID == "" {
		s.ID = a.core.newID(a.core.st.hasServer)
	}
	if s.PowerState == "" {
		s.PowerState = PowerOn
	}
	if s.State == "" {
		s.State = a.servers.finalState(s.Name, s.PowerState)
	}
	if s.CreatedAt.IsZero() {
		s.CreatedAt = now
	}
	if s.UpdatedAt.IsZero() {
		s.UpdatedAt = now
	}
	if s.Host == "" {
		s.Host = a.hosts.pick(a.hosts.list)
	}
	s.Zone = a.hosts.zoneOf(s.Host)
	if s.Interfaces == nil {
		s.Interfaces = a.core.st.attach(&s, nil)
	}
	s.CPU, s.Memory = max(s.CPU, 1), max(s.Memory, 1)
	s.Labels = maps.Clone(s.Labels)
	s.CPUUtilization, s.CPUUsageMHz, s.MemoryUsageMB = nil, nil, nil
	r := &record{Server: s}
	var err error
	if old := a.core.st.servers[s.ID]; old != nil {
		r.Key, r.Override, r.Labelled = old.Key, old.Override, old.Labelled
		err = a.records.replace(r)
	} else {
		_, err = a.records.insert(r, 0, nil, LedgerEntry{Op: OpCreate, By: ByAdmin})
	}
	if err != nil {
		return Server{}, fmt.Errorf("putting server %s: %w", s.ID, err)
	}
	return a.views.full(r, now), nil
}

func (a *adminServers) delete(id string) error {
	a.transitions.advance()
	_, err := a.servers.delete(id, ByAdmin, "")
	return err
}

func (a *adminServers) rename(id, name string) error {
	return a.modify(id, func(r *record) { r.Name = name })
}

func (a *adminServers) setState(id string, state State) error {
	return a.modify(id, func(r *record) {
		r.State, r.ReadyAt, r.GoneAt, r.OffAt = state, time.Time{}, time.Time{}, time.Time{}
	})
}

func (a *adminServers) setUtilisation(id string, percent int) error {
	return a.modify(id, func(r *record) { r.Override = &percent })
}

func (a *adminServers) clearUtilisation(id string) error {
	return a.modify(id, func(r *record) { r.Override = nil })
}

func (a *adminServers) modify(id string, change func(*record)) error {
	a.transitions.advance()
	a.core.mu.Lock()
	defer a.core.mu.Unlock()
	r := a.core.st.servers[id]
	if r == nil {
		return notFound("server", id)
	}
	next := r.clone()
	change(next)
	next.UpdatedAt = a.core.now()
	return a.records.replace(next)
}

func (a *adminServers) handleAll(w http.ResponseWriter, _ *request) error {
	return writeJSON(w, http.StatusOK, a.all())
}

func (a *adminServers) handlePut(w http.ResponseWriter, r *request) error {
	var s Server
	if err := readInto(r, &s); err != nil {
		return err
	}
	put, err := a.put(s)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusCreated, put)
}

// handleModify handles PATCH /admin/servers/{id}.
func (a *adminServers) handleModify(w http.ResponseWriter, r *request) error {
	var body struct {
		Name           *string `json:"name"`
		State          *State  `json:"state"`
		CPUUtilization *int    `json:"cpuUtilization"`
	}
	if err := readInto(r, &body); err != nil {
		return err
	}
	id := r.vars[0]
	if body.Name != nil {
		if err := a.rename(id, *body.Name); err != nil {
			return err
		}
	}
	if body.State != nil {
		if err := a.setState(id, *body.State); err != nil {
			return err
		}
	}
	if body.CPUUtilization != nil {
		if err := a.setUtilisation(id, *body.CPUUtilization); err != nil {
			return err
		}
	}
	s, found := a.get(id)
	if !found {
		return fmt.Errorf("reading the server: %w", notFound("server", id))
	}
	return writeJSON(w, http.StatusOK, s)
}

// seed adds n servers that belong to no client to a store that was never seeded. The
// caller holds core.mu.
func (a *adminServers) seed(n int) error {
	seeded := false
	err := a.core.store.Load(bucketMeta, func(key string, _ []byte) error {
		seeded = seeded || key == "seeded"
		return nil
	})
	if err != nil || seeded {
		return err
	}
	changes := []Change{{Bucket: bucketMeta, Key: "seeded", Value: []byte("true")}}
	first := a.core.now().Add(-24 * time.Hour)
	for i := range n {
		at := first.Add(time.Duration(i) * time.Millisecond)
		r := &record{Server: Server{
			ID: seedID(a.core.quirks.Load(), i), Name: fmt.Sprintf("stranger-%05d", i+1), State: StateActive,
			Labels: map[string]string{"owner": "stranger"}, CPU: 2, Memory: 4,
			PowerState: PowerOn, Host: a.hosts.pick(a.hosts.list), CreatedAt: at, UpdatedAt: at,
		}}
		changes = append(changes, encoded(bucketServers, r.ID, r))
		a.core.st.put(r)
	}
	return a.core.store.Write(changes...)
}

// seedID returns the ID of the i-th seed server, which is in no ledger.
func seedID(q *Quirks, i int) string {
	if q.NumericIDs || q.ReusesIDs {
		return strconv.Itoa(i + 1)
	}
	return uuid.NewString()
}
