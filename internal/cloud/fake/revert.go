package fake

import (
	"context"
	"slices"

	"github.com/privatecloud/operator/internal/cloud"
)

var _ cloud.Reverter = (*Cloud)(nil)

// RevertServer gives a server the size that it had when the snapshot was taken, and stops it.
func (c *Cloud) RevertServer(ctx context.Context, req cloud.RevertServer) (cloud.Result, error) {
	op := "revert to snapshot " + quote(req.SnapshotID)
	if err := checkID(op, req.SnapshotID); err != nil {
		return cloud.Result{}, err
	}
	c.mu.Lock()
	keys := c.caps.Has(cloud.Idempotency)
	c.mu.Unlock()
	if req.Again && (!keys || req.IdempotencyKey == "") {
		return cloud.Result{}, failure(op, cloud.Unsupported, "the cloud has no idempotency keys")
	}
	return do(ctx, c, call{verb: RevertServer, object: req.SnapshotID, op: op, needs: []cloud.Capability{cloud.Revert}}, func() (cloud.Result, error) {
		if made, found := c.snapshots.reverts[req.IdempotencyKey]; found {
			return made, nil
		}
		s, err := c.server(op, req.ServerID)
		switch {
		case err != nil:
			return cloud.Result{}, err
		case s.State == cloud.StateSuspended:
			return cloud.Result{}, failure(op, cloud.Busy, "the server is %s", s.State)
		}
		if !slices.ContainsFunc(c.snapshots.of[req.ServerID], func(s cloud.Snapshot) bool { return s.ID == req.SnapshotID }) {
			return cloud.Result{}, failure(op, cloud.NotFound, "no such snapshot")
		}
		result := c.reverting(req)
		if keys && req.IdempotencyKey != "" {
			c.snapshots.reverts[req.IdempotencyKey] = result
		}
		return result, nil
	})
}

// reverting begins a revert, or makes it. The caller holds mu.
func (c *Cloud) reverting(req cloud.RevertServer) cloud.Result {
	revert := func() (string, error) {
		s, ok := c.servers.get(req.ServerID)
		if ok {
			was := c.snapshots.frozen[req.SnapshotID]
			s = s.Clone()
			s.CPU, s.MemoryMiB, s.Disks, s.State, s.UpdatedAt = was.CPU, was.MemoryMiB, was.Disks, cloud.StateStopped, c.clock()
			c.servers.put(req.ServerID, s)
			c.snapshots.reverted++
		}
		return req.ServerID, nil
	}
	if c.operating {
		return c.later(operation{serverID: req.ServerID, effect: revert})
	}
	_, _ = revert()
	s, _ := c.servers.get(req.ServerID)
	return cloud.Result{Server: c.reported(s)}
}

// Reverts returns how many reverts took effect.
func (c *Cloud) Reverts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.snapshots.reverted
}
