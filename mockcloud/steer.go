package mockcloud

import (
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
)

// The methods below change servers behind the client's back. They check nothing
// that a client's call would be checked for, so that tests can bring about what
// should not be.

// Servers returns every server with what it uses, in the order of a LIST, all
// fields filled in whatever the capabilities.
func (c *Cloud) Servers() []Server {
	c.advance()
	now := c.now()
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := make([]Server, 0, len(c.st.order))
	for _, p := range c.st.order {
		out = append(out, c.full(c.st.servers[p.id], now))
	}
	return out
}

// Server returns one server as Servers does.
func (c *Cloud) Server(id string) (Server, bool) {
	c.advance()
	r, err := c.lookup(id)
	if err != nil {
		return Server{}, false
	}
	return c.full(r, c.now()), true
}

func (c *Cloud) full(r *record, now time.Time) Server {
	s := r.Server
	s.Labels = maps.Clone(s.Labels)
	c.measure(r, &s, now)
	return s
}

// PutServer adds a server that no client asked for, or replaces the one of the
// same id. What is zero gets a default: a new id, ACTIVE, one core, 1 GiB, now.
// The figures of use are ignored. A new server is in the ledger, by ByAdmin.
func (c *Cloud) PutServer(s Server) (Server, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if s.ID == "" {
		s.ID = uuid.NewString()
	}
	if s.PowerState == "" {
		s.PowerState = PowerOn
	}
	if s.State == "" {
		s.State = settled(s.PowerState)
	}
	if s.CreatedAt.IsZero() {
		s.CreatedAt = now
	}
	if s.UpdatedAt.IsZero() {
		s.UpdatedAt = now
	}
	if s.Host == "" {
		s.Host = c.place()
	}
	s.CPU, s.Memory = max(s.CPU, 1), max(s.Memory, 1)
	s.Labels = maps.Clone(s.Labels)
	s.CPUUtilization, s.CPUUsageMHz, s.MemoryUsageMB = nil, nil, nil
	r := &record{Server: s}
	var err error
	if old := c.st.servers[s.ID]; old != nil {
		r.Key, r.Override = old.Key, old.Override
		err = c.replace(r)
	} else {
		_, err = c.insert(r, 0, nil, LedgerEntry{Op: OpCreate, By: ByAdmin})
	}
	if err != nil {
		return Server{}, fmt.Errorf("putting server %s: %w", s.ID, err)
	}
	return c.full(r, now), nil
}

// DeleteServer takes a server away at once. It fails if there is none.
func (c *Cloud) DeleteServer(id string) error {
	c.advance()
	_, err := c.deleteServer(id, ByAdmin, "")
	return err
}

// RenameServer changes a server's name. It fails if there is none.
func (c *Cloud) RenameServer(id, name string) error {
	return c.steer(id, func(r *record) { r.Name = name })
}

// SetServerState puts a server into a state, known or made up, for good: a
// build or deletion under way does not end.
func (c *Cloud) SetServerState(id string, state State) error {
	return c.steer(id, func(r *record) {
		r.State, r.ReadyAt, r.GoneAt = state, time.Time{}, time.Time{}
	})
}

// SetUtilisation makes a server report this use in percent, absurd values
// included, instead of what the model says.
func (c *Cloud) SetUtilisation(id string, percent int) error {
	return c.steer(id, func(r *record) { r.Override = &percent })
}

// ClearUtilisation goes back to the model.
func (c *Cloud) ClearUtilisation(id string) error {
	return c.steer(id, func(r *record) { r.Override = nil })
}

func (c *Cloud) steer(id string, change func(*record)) error {
	c.advance()
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.st.servers[id]
	if r == nil {
		return notFound("server", id)
	}
	next := r.clone()
	change(next)
	next.UpdatedAt = c.now()
	return c.replace(next)
}
