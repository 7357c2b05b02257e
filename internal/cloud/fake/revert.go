package fake

import (
	"context"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

// RevertServer gives a server the size that it had when the snapshot was taken, and stops it.
func (c *snapshotClient) RevertServer(ctx context.Context, req cloud.RevertServer) (cloud.Result, error) {
	op := "revert to snapshot " + quote(req.SnapshotID)
	if err := checkID(op, req.SnapshotID); err != nil {
		return cloud.Result{}, err
	}
	c.calls.mu.Lock()
	keys := c.settings.caps.Has(cloud.Idempotency)
	c.calls.mu.Unlock()
	if req.Again && (!keys || req.IdempotencyKey == "") {
		return cloud.Result{}, failure(op, cloud.Unsupported, "the cloud has no idempotency keys")
	}
	return do(ctx, c.calls, call{verb: RevertServer, object: req.SnapshotID, op: op, needs: []cloud.Capability{cloud.Revert}}, func() (cloud.Result, error) {
		if made, found := c.reverts[req.IdempotencyKey]; found {
			return made, nil
		}
		s, err := c.servers.server(op, req.ServerID)
		switch {
		case err != nil:
			return cloud.Result{}, err
		case s.State == cloud.StateSuspended:
			return cloud.Result{}, failure(op, cloud.Busy, "the server is %s", s.State)
		}
		if !slices.ContainsFunc(c.of[req.ServerID], func(s cloud.Snapshot) bool { return s.ID == req.SnapshotID }) {
			return cloud.Result{}, failure(op, cloud.NotFound, "no such snapshot")
		}
		result := c.reverting(req)
		if keys && req.IdempotencyKey != "" {
			c.reverts[req.IdempotencyKey] = result
		}
		return result, nil
	})
}

// reverting begins a revert, or makes it. The caller holds mu.
func (c *snapshotClient) reverting(req cloud.RevertServer) cloud.Result {
	revert := func() (string, error) {
		s, ok := c.servers.store.get(req.ServerID)
		if ok {
			was := c.frozen[req.SnapshotID]
			s = s.Clone()
			s.CPU, s.MemoryMiB, s.Disks, s.RootDisk, s.State, s.UpdatedAt = was.CPU, was.MemoryMiB, was.Disks.Reverted(s.Disks), was.RootDisk, cloud.StateStopped, c.settings.clock()
			c.servers.store.put(req.ServerID, s)
			c.reverted++
		}
		return req.ServerID, nil
	}
	if c.servers.operations.operating {
		return c.servers.operations.later(operation{serverID: req.ServerID, effect: revert})
	}
	_, _ = revert()
	s, _ := c.servers.store.get(req.ServerID)
	return cloud.Result{Server: c.servers.reported(s)}
}
