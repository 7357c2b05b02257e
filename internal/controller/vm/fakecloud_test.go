package vm

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// fault is how a call goes wrong: before it took effect, or after.
type fault struct {
	err       *cloud.Error
	committed bool
}

var (
	errReset     = &cloud.Error{Kind: cloud.Unavailable, Op: "call", Detail: "connection reset", Uncertain: true}
	errRefused   = &cloud.Error{Kind: cloud.Unavailable, Op: "call", Detail: "connection refused"}
	errThrottled = &cloud.Error{Kind: cloud.Throttled, Op: "call", Detail: "too many requests", RetryAfter: 7 * time.Second}
)

// fakeCloud is a cloud in memory with the capabilities it is given.
type fakeCloud struct {
	cloud.Client
	caps  cloud.Capabilities
	clock func() time.Time

	mu      sync.Mutex
	servers map[string]cloud.Server
	keys    map[string]cloud.CreateServer
	made    map[string]string
	n       int
	// prohibited are names that may not be used.
	prohibited map[string]bool
	// slow has servers built, and deleted, only when finish is called.
	slow bool
	// hidden are servers that the listing does not show, and lag is how long it
	// takes to show new ones.
	hidden map[string]bool
	lag    time.Duration
	// faults are how the next calls of a verb go wrong.
	faults map[string][]fault
	calls  []string
	// broken is the first breach of the client's contract.
	broken error
}

func newCloud(clock func() time.Time, caps cloud.Capabilities) *fakeCloud {
	return &fakeCloud{
		caps: caps, clock: clock, servers: map[string]cloud.Server{}, keys: map[string]cloud.CreateServer{}, made: map[string]string{},
		prohibited: map[string]bool{}, hidden: map[string]bool{}, faults: map[string][]fault{},
	}
}

// call notes a call and returns how it goes wrong. The caller holds no lock.
func (f *fakeCloud) call(verb, object string) (fault, func()) {
	f.mu.Lock()
	f.calls = append(f.calls, strings.TrimSpace(verb+" "+object))
	var next fault
	if queue := f.faults[verb]; len(queue) > 0 {
		next, f.faults[verb] = queue[0], queue[1:]
	}
	return next, f.mu.Unlock
}

func (f *fakeCloud) need(used bool, needed cloud.Capability) {
	if used && !f.caps.Has(needed) && f.broken == nil {
		f.broken = fmt.Errorf("a call uses what needs %s", needed)
	}
}

func (f *fakeCloud) named(name string) []string {
	var found []string
	for id, s := range f.servers {
		if s.Name == name {
			found = append(found, id)
		}
	}
	return found
}

func (f *fakeCloud) CheckName(_ context.Context, name string) error {
	fault, done := f.call("check", name)
	defer done()
	switch {
	case fault.err != nil:
		return fault.err
	case f.prohibited[name]:
		return &cloud.Error{Kind: cloud.Prohibited, Op: fmt.Sprintf("check name %q", name), Detail: "prohibited"}
	case f.caps.Has(cloud.UniqueNames) && len(f.named(name)) > 0:
		return &cloud.Error{Kind: cloud.Taken, Op: fmt.Sprintf("check name %q", name), Detail: "taken"}
	}
	return nil
}

func (f *fakeCloud) CreateServer(_ context.Context, req cloud.CreateServer) (cloud.Server, error) {
	fault, done := f.call("create", req.Name)
	defer done()
	f.need(req.CPU != 0 || req.MemoryGiB != 0 || req.Template != "", cloud.Sizing)
	f.need(req.Folder != "", cloud.Folders)
	f.need(req.NetworkID != "", cloud.Networks)
	f.need(req.PowerState != "", cloud.Power)
	f.need(len(req.Labels) > 0, cloud.Labels)
	if fault.err != nil && !fault.committed {
		return cloud.Server{}, fault.err
	}
	server, err := f.create(req)
	if fault.err != nil {
		return cloud.Server{}, fault.err
	}
	return server, err
}

func (f *fakeCloud) create(req cloud.CreateServer) (cloud.Server, error) {
	op := fmt.Sprintf("create server %q", req.Name)
	if first, reused := f.keys[req.IdempotencyKey]; reused && f.caps.Has(cloud.Idempotency) {
		if first.Name != req.Name || first.CPU != req.CPU {
			return cloud.Server{}, &cloud.Error{Kind: cloud.KeyReused, Op: op}
		}
		return f.servers[f.made[req.IdempotencyKey]].Clone(), nil
	}
	if f.caps.Has(cloud.UniqueNames) && len(f.named(req.Name)) > 0 {
		return cloud.Server{}, &cloud.Error{Kind: cloud.Taken, Op: op, Detail: "taken"}
	}
	f.n++
	s := cloud.Server{
		ID: fmt.Sprintf("s%d", f.n), Name: req.Name, Labels: maps.Clone(req.Labels), State: cloud.StateActive,
		CPU: req.CPU, MemoryGiB: req.MemoryGiB, NetworkID: req.NetworkID, CreatedAt: f.clock(),
	}
	if req.PowerState == cloud.PowerOff {
		s.State = cloud.StateStopped
	}
	if f.slow {
		s.State = cloud.StateBuilding
	}
	f.servers[s.ID], f.keys[req.IdempotencyKey], f.made[req.IdempotencyKey] = s, req, s.ID
	return s.Clone(), nil
}

func notFound(op, id string) error {
	return &cloud.Error{Kind: cloud.NotFound, Op: op + " server " + id, Detail: "no such server"}
}

func (f *fakeCloud) GetServer(_ context.Context, id string) (cloud.Server, error) {
	fault, done := f.call("get", id)
	defer done()
	if fault.err != nil {
		return cloud.Server{}, fault.err
	}
	s, ok := f.servers[id]
	if !ok {
		return cloud.Server{}, notFound("get", id)
	}
	return s.Clone(), nil
}

func (f *fakeCloud) ServerStatus(_ context.Context, id string) (cloud.Status, error) {
	fault, done := f.call("status", id)
	defer done()
	if fault.err != nil {
		return cloud.Status{}, fault.err
	}
	return cloud.Status{CPUUtilization: 42}, nil
}

func (f *fakeCloud) UpdateServer(_ context.Context, id string, req cloud.UpdateServer) (cloud.Server, error) {
	fault, done := f.call("update", id)
	defer done()
	f.need(req.CPU != nil || req.MemoryGiB != nil, cloud.Resize)
	f.need(req.PowerState != nil, cloud.Power)
	f.need(len(req.Labels) > 0, cloud.Labels)
	if fault.err != nil && !fault.committed {
		return cloud.Server{}, fault.err
	}
	s, ok := f.servers[id]
	if !ok {
		return cloud.Server{}, notFound("update", id)
	}
	s = s.Clone()
	if req.CPU != nil {
		s.CPU = *req.CPU
	}
	if req.PowerState != nil {
		s.State = map[cloud.PowerState]cloud.State{cloud.PowerOn: cloud.StateActive, cloud.PowerOff: cloud.StateStopped}[*req.PowerState]
	}
	for key, value := range req.Labels {
		if value == nil {
			delete(s.Labels, key)
			continue
		}
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[key] = *value
	}
	f.servers[id] = s
	if fault.err != nil {
		return cloud.Server{}, fault.err
	}
	return s.Clone(), nil
}

func (f *fakeCloud) DeleteServer(_ context.Context, id string) (bool, error) {
	fault, done := f.call("delete", id)
	defer done()
	if fault.err != nil && !fault.committed {
		return false, fault.err
	}
	s, ok := f.servers[id]
	switch {
	case !ok:
		return false, notFound("delete", id)
	case f.slow:
		s.State = cloud.StateDeleting
		f.servers[id] = s
	default:
		delete(f.servers, id)
	}
	if fault.err != nil {
		return false, fault.err
	}
	return !f.slow, nil
}

func (f *fakeCloud) ListServers(context.Context, cloud.ListServers) (cloud.ServerPage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var page cloud.ServerPage
	for _, s := range f.servers {
		if !f.hidden[s.ID] && !s.CreatedAt.Add(f.lag).After(f.clock()) {
			page.Servers = append(page.Servers, s.Clone())
		}
	}
	return page, nil
}

// finish completes what the cloud takes its time over.
func (f *fakeCloud) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, s := range f.servers {
		switch s.State {
		case cloud.StateBuilding:
			s.State = cloud.StateActive
			f.servers[id] = s
		case cloud.StateDeleting:
			delete(f.servers, id)
		default:
		}
	}
}

// add puts a server into the cloud that was there already.
func (f *fakeCloud) add(s cloud.Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers[s.ID] = s.Clone()
}

func (f *fakeCloud) fail(verb string, faults ...fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults[verb] = append(f.faults[verb], faults...)
}

// ids are the servers that there are.
func (f *fakeCloud) ids() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.servers))
}

// took returns the calls since it was last asked, listings aside.
func (f *fakeCloud) took() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}
