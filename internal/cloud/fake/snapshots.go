package fake

import (
	"context"
	"fmt"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// snapshotClient has the snapshots of each server, oldest first, and makes the calls about them.
type snapshotClient struct {
	calls    *calls
	settings *settings
	servers  *serverClient
	// last is the number of the newest, and reuses means that new ones have the lowest that
	// is free.
	last   int
	reuses bool
	of     map[string][]cloud.Snapshot
	keys   keys[cloud.CreateSnapshot, cloud.Snapshot]
	// frozen are the servers as they were when the snapshots were taken, by the ids of these.
	frozen map[string]cloud.Server
	// reverts are the reverts with a key, and reverted counts all that took effect.
	reverts  map[string]cloud.Result
	reverted int
	// alter changes each new snapshot.
	alter func(*cloud.Snapshot)
}

func newSnapshotClient(servers *serverClient) *snapshotClient {
	return &snapshotClient{
		calls: servers.calls, settings: servers.settings, servers: servers,
		of: map[string][]cloud.Snapshot{}, keys: keys[cloud.CreateSnapshot, cloud.Snapshot]{}, frozen: map[string]cloud.Server{}, reverts: map[string]cloud.Result{},
	}
}

// newID returns the next id that is not in use, or the lowest.
func (c *snapshotClient) newID() string {
	if c.reuses {
		c.last = 0
	}
	for {
		c.last++
		if id := fmt.Sprintf("snap%d", c.last); !c.has(id) {
			return id
		}
	}
}

func (c *snapshotClient) has(id string) bool {
	for _, all := range c.of {
		if slices.ContainsFunc(all, func(one cloud.Snapshot) bool { return one.ID == id }) {
			return true
		}
	}
	return false
}

func snapshotCall(verb Verb, object, op string) call {
	return call{verb: verb, object: object, op: op, needs: []cloud.Capability{cloud.Snapshots}}
}

// ListSnapshots returns the snapshots of a server, oldest first.
func (c *snapshotClient) ListSnapshots(ctx context.Context, serverID string) ([]cloud.Snapshot, error) {
	op := "list snapshots of server " + quote(serverID)
	if err := checkID(op, serverID); err != nil {
		return nil, err
	}
	return do(ctx, c.calls, snapshotCall(ListSnapshots, serverID, op), func() ([]cloud.Snapshot, error) {
		if _, err := c.servers.server(op, serverID); err != nil {
			return nil, err
		}
		return slices.Clone(c.of[serverID]), nil
	})
}

// CreateSnapshot creates a snapshot, or returns the one that the key created before.
func (c *snapshotClient) CreateSnapshot(ctx context.Context, req cloud.CreateSnapshot) (cloud.Snapshot, error) {
	op := "create snapshot " + quote(req.Name)
	if err := checkName(op, req.Name); err != nil {
		return cloud.Snapshot{}, err
	}
	return do(ctx, c.calls, snapshotCall(CreateSnapshot, req.Name, op), func() (cloud.Snapshot, error) {
		server, err := c.servers.server(op, req.ServerID)
		if err != nil {
			return cloud.Snapshot{}, err
		}
		if !c.settings.caps.Has(cloud.Idempotency) {
			req.IdempotencyKey = ""
		}
		switch made, found, reused := c.keys.find(req.IdempotencyKey, req); {
		case reused:
			return cloud.Snapshot{}, failure(op, cloud.KeyReused, "the key belongs to a create with another request")
		case found:
			return made.res, nil
		}
		made := cloud.Snapshot{ID: c.newID(), Name: req.Name, SizeBytes: 1 << 20, CreatedAt: c.settings.clock()}
		if c.alter != nil {
			c.alter(&made)
		}
		c.of[req.ServerID] = append(c.of[req.ServerID], made)
		c.frozen[made.ID] = server.Clone()
		c.keys.put(req.IdempotencyKey, req, made.ID, 0, made)
		return made, nil
	})
}

// DeleteSnapshot deletes a snapshot of a server.
func (c *snapshotClient) DeleteSnapshot(ctx context.Context, serverID, id string) error {
	op := "delete snapshot " + quote(id)
	if err := checkID(op, id); err != nil {
		return err
	}
	_, err := do(ctx, c.calls, snapshotCall(DeleteSnapshot, id, op), func() (struct{}, error) {
		if _, err := c.servers.server(op, serverID); err != nil {
			return struct{}{}, err
		}
		kept := slices.DeleteFunc(slices.Clone(c.of[serverID]), func(s cloud.Snapshot) bool { return s.ID == id })
		if len(kept) == len(c.of[serverID]) {
			return struct{}{}, failure(op, cloud.NotFound, "no such snapshot")
		}
		if !c.calls.faults.ignored[DeleteSnapshot] {
			c.of[serverID] = kept
		}
		return struct{}{}, nil
	})
	return err
}
