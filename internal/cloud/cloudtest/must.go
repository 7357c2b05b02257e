package cloudtest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

func mustCreate(ctx context.Context, t *testing.T, f Fixture, req cloud.CreateServer) cloud.Server {
	t.Helper()
	result, err := processed(ctx, f, func() (cloud.Result, error) { return f.Client.CreateServer(ctx, req) })
	if err != nil {
		t.Fatalf("CreateServer(%+v): %v", req, err)
	}
	return serverOf(ctx, t, f, result)
}

// processed makes a call, again while the cloud says that the first one with its key is in progress.
func processed[R any](ctx context.Context, f Fixture, call func() (R, error)) (R, error) {
	pause := time.NewTicker(f.pollTime())
	defer pause.Stop()
	result, err := call()
	for inProgress(err) && ctx.Err() == nil {
		<-pause.C
		result, err = call()
	}
	return result, err
}

// createError returns the error of a create, or of its operation.
func createError(ctx context.Context, t *testing.T, f Fixture, req cloud.CreateServer) error {
	t.Helper()
	result, err := f.Client.CreateServer(ctx, req)
	if err != nil || result.Operation == "" {
		return err
	}
	if operation := mustEnd(ctx, t, f, result.Operation); operation.Err != nil {
		return operation.Err
	}
	return nil
}

// mustUpdate changes a server and returns it as it is then.
func mustUpdate(ctx context.Context, t *testing.T, f Fixture, id string, req cloud.Update) cloud.Server {
	t.Helper()
	result, err := f.Client.UpdateServer(ctx, id, req)
	if err != nil {
		t.Fatalf("UpdateServer(%s, %+v): %v", id, req, err)
	}
	return serverOf(ctx, t, f, result)
}

// mustResize changes the size of a server, which is stopped first if the cloud demands it.
func mustResize(ctx context.Context, t *testing.T, f Fixture, id string, req cloud.Update) cloud.Server {
	t.Helper()
	result, err := f.Client.UpdateServer(ctx, id, req)
	if !cloud.Is(err, cloud.NeedsStop) {
		if err != nil {
			t.Fatalf("UpdateServer(%s, %+v): %v", id, req, err)
		}
		return serverOf(ctx, t, f, result)
	}
	stopped := mustUpdate(ctx, t, f, id, cloud.Update{cloud.SetPower{State: cloud.PowerOff}})
	resized := mustUpdate(ctx, t, f, id, req)
	if stopped.State != cloud.StateStopped || resized.State != cloud.StateStopped {
		t.Errorf("a server that was stopped for a change of its size is %s, and %s after it", stopped.State, resized.State)
	}
	return mustUpdate(ctx, t, f, id, cloud.Update{cloud.SetPower{State: cloud.PowerOn}})
}

// mustDelete deletes a server, waits until it is gone, and deletes what outlives it.
func mustDelete(ctx context.Context, t *testing.T, f Fixture, id string) {
	t.Helper()
	result, err := f.Client.DeleteServer(ctx, id)
	if err != nil {
		t.Fatalf("DeleteServer(%s): %v", id, err)
	}
	if result.Operation != "" {
		mustEnd(ctx, t, f, result.Operation)
	} else if !result.Gone() {
		t.Fatalf("DeleteServer(%s): %+v, want it gone", id, result)
	}
	if c, ok := f.Client.(cloud.PublicAddressRemover); ok {
		if err := c.DeletePublicAddresses(ctx, id); err != nil {
			t.Fatalf("DeletePublicAddresses(%s): %v", id, err)
		}
	}
	if c, ok := f.Client.(cloud.DiskRemover); ok {
		if err := c.DeleteDisks(ctx, id); err != nil {
			t.Fatalf("DeleteDisks(%s): %v", id, err)
		}
	}
	if c, ok := f.Client.(cloud.SnapshotRemover); ok {
		if err := c.DeleteSnapshots(ctx, id, ""); err != nil {
			t.Fatalf("DeleteSnapshots(%s): %v", id, err)
		}
	}
}

// serverOf returns the server of a result once its operation has ended.
func serverOf(ctx context.Context, t *testing.T, f Fixture, result cloud.Result) cloud.Server {
	t.Helper()
	if result.Operation == "" {
		return result.Server
	}
	operation := mustEnd(ctx, t, f, result.Operation)
	if operation.Err != nil {
		t.Fatalf("operation %s: %v", result.Operation, operation.Err)
	}
	server, err := f.Client.GetServer(ctx, operation.ServerID)
	if err != nil {
		t.Fatalf("GetServer(%s) after its operation: %v", operation.ServerID, err)
	}
	return server
}

func (f Fixture) pollTime() time.Duration { return cmp.Or(f.PollTime, pollTime) }

// mustEnd waits until an operation is done.
func mustEnd(ctx context.Context, t *testing.T, f Fixture, id string) cloud.Operation {
	t.Helper()
	for pause := time.NewTicker(f.pollTime()); ; {
		operation, err := f.Client.GetOperation(ctx, id)
		switch {
		case err != nil:
			t.Fatalf("GetOperation(%s): %v", id, err)
		case operation.Progress < 0 || operation.Progress > 100:
			t.Fatalf("GetOperation(%s): progress %d, want 0-100", id, operation.Progress)
		case operation.Done:
			return operation
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			t.Fatalf("operation %s is not done: %+v", id, operation)
		}
	}
}
