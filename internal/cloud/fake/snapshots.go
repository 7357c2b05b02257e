package fake

import (
	"context"
	"fmt"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// snapshots are those of each server, oldest first, and the creates with a key.
type snapshots struct {
	// last is the number of the newest, and reuses means that new ones have the lowest that
	// is free.
	last   int
	reuses bool
	of     map[string][]cloud.Snapshot
	byKeys keys[cloud.CreateSnapshot, cloud.Snapshot]
	// frozen are the servers as they were when the snapshots were taken, by the ids of these.
	frozen map[string]cloud.Server
	// reverts are the reverts with a key, and reverted counts all that took effect.
	reverts  map[string]cloud.Result
	reverted int
}

func newSnapshots() snapshots {
	return snapshots{of: map[string][]cloud.Snapshot{}, byKeys: keys[cloud.CreateSnapshot, cloud.Snapshot]{}, frozen: map[string]cloud.Server{}, reverts: map[string]cloud.Result{}}
}

// newID returns the next id that is not in use, or the lowest.
func (s *snapshots) newID() string {
	if s.reuses {
		s.last = 0
	}
	for {
		s.last++
		if id := fmt.Sprintf("snap%d", s.last); !s.has(id) {
			return id
		}
	}
}

func (s *snapshots) has(id string) bool {
	for _, all := range s.of {
		if slices.ContainsFunc(all, func(one cloud.Snapshot) bool { return one.ID == id }) {
			return true
		}
	}
	return false
}

func snapshotCall(verb Verb, object, op string) call {
	return call{verb: verb, object: object, op: op, needs: []cloud.Capability{cloud.Snapshots}}
}

var _ cloud.Snapshotter = (*Cloud)(nil)

// ListSnapshots returns the snapshots of a server, oldest first.
func (c *Cloud) ListSnapshots(ctx context.Context, serverID string) ([]cloud.Snapshot, error) {
	op := "list snapshots of server " + quote(serverID)
	if err := checkID(op, serverID); err != nil {
		return nil, err
	}
	return do(ctx, c, snapshotCall(ListSnapshots, serverID, op), func() ([]cloud.Snapshot, error) {
		if _, err := c.server(op, serverID); err != nil {
			return nil, err
		}
		return slices.Clone(c.snapshots.of[serverID]), nil
	})
}

// CreateSnapshot creates a snapshot, or returns the one that the key created before.
func (c *Cloud) CreateSnapshot(ctx context.Context, req cloud.CreateSnapshot) (cloud.Snapshot, error) {
	op := "create snapshot " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Snapshot{}, err
	}
	return do(ctx, c, snapshotCall(CreateSnapshot, req.Name, op), func() (cloud.Snapshot, error) {
		server, err := c.server(op, req.ServerID)
		if err != nil {
			return cloud.Snapshot{}, err
		}
		if !c.caps.Has(cloud.Idempotency) {
			req.IdempotencyKey = ""
		}
		switch made, found, reused := c.snapshots.byKeys.find(req.IdempotencyKey, req); {
		case reused:
			return cloud.Snapshot{}, failure(op, cloud.KeyReused, "the key belongs to a create with another request")
		case found:
			return made.res, nil
		}
		made := cloud.Snapshot{ID: c.snapshots.newID(), Name: req.Name, SizeBytes: 1 << 20, CreatedAt: c.clock()}
		if c.alterSnapshot != nil {
			c.alterSnapshot(&made)
		}
		c.snapshots.of[req.ServerID] = append(c.snapshots.of[req.ServerID], made)
		c.snapshots.frozen[made.ID] = server.Clone()
		c.snapshots.byKeys.put(req.IdempotencyKey, req, made.ID, 0, made)
		return made, nil
	})
}

// DeleteSnapshot deletes a snapshot of a server.
func (c *Cloud) DeleteSnapshot(ctx context.Context, serverID, id string) error {
	op := "delete snapshot " + quote(id)
	if err := checkID(op, id); err != nil {
		return err
	}
	_, err := do(ctx, c, snapshotCall(DeleteSnapshot, id, op), func() (struct{}, error) {
		if _, err := c.server(op, serverID); err != nil {
			return struct{}{}, err
		}
		kept := slices.DeleteFunc(slices.Clone(c.snapshots.of[serverID]), func(s cloud.Snapshot) bool { return s.ID == id })
		if len(kept) == len(c.snapshots.of[serverID]) {
			return struct{}{}, failure(op, cloud.NotFound, "no such snapshot")
		}
		if !c.faults.ignored[DeleteSnapshot] {
			c.snapshots.of[serverID] = kept
		}
		return struct{}{}, nil
	})
	return err
}

// Snapshots returns the snapshots of a server, oldest first.
func (c *Cloud) Snapshots(serverID string) []cloud.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.snapshots.of[serverID])
}

// SetSnapshots replaces the snapshots of a server.
func (c *Cloud) SetSnapshots(serverID string, all ...cloud.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.snapshots.of[serverID] = all
}
