package vsphere_test

import (
	"context"
	"testing"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
)

// snapshotted returns a vCenter, a client of it and a server.
func snapshotted(t *testing.T) (*vcenter, cloud.Snapshotter, string) {
	t.Helper()
	v := newVCenter(t)
	c := v.client(t)
	result, err := c.CreateServer(t.Context(), cloud.CreateServer{Name: "web"})
	if err != nil {
		t.Fatalf("CreateServer: %v", err)
	}
	for {
		operation, err := c.GetOperation(t.Context(), result.Operation)
		if err != nil || operation.Err != nil {
			t.Fatalf("GetOperation: %+v, %v", operation, err)
		}
		if operation.Done {
			return v, c, operation.ServerID
		}
	}
}

// untilSnapshot returns a context that ends once a VM has a snapshot: a call that ends before may
// have sent nothing.
func (v *vcenter) untilSnapshot(t *testing.T, name string) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for tick := time.NewTicker(time.Millisecond); v.VM(name).Snapshot == nil; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx
}

func TestSnapshotThatTakesLongIsFoundByItsName(t *testing.T) {
	t.Parallel()
	v, c, server := snapshotted(t)
	release := v.Front.HoldTasks()
	req := cloud.CreateSnapshot{ServerID: server, Name: "ns-snap-0123456789ab", Memory: true, Quiesce: time.Second}
	short := v.untilSnapshot(t, "web")
	if _, err := c.CreateSnapshot(short, req); !cloud.Uncertain(err) {
		t.Errorf("CreateSnapshot while the task runs: %v, want an error with Uncertain set", err)
	}
	release()
	made, err := c.CreateSnapshot(t.Context(), req)
	if err != nil {
		t.Fatalf("second CreateSnapshot: %v", err)
	}
	found, err := c.ListSnapshots(t.Context(), server)
	if err != nil || len(found) != 1 || found[0] != made {
		t.Errorf("ListSnapshots: %+v, %v, want %+v alone", found, err, made)
	}
	if sent := v.Front.Sent("CreateSnapshotEx_Task"); sent != 1 {
		t.Errorf("%d snapshots were requested, want one", sent)
	}
}

func TestListingWhileASnapshotIsTakenProvesNothing(t *testing.T) {
	t.Parallel()
	v, c, server := snapshotted(t)
	release := v.Front.HoldTasks()
	short := v.untilSnapshot(t, "web")
	if _, err := c.CreateSnapshot(short, cloud.CreateSnapshot{ServerID: server, Name: "first"}); !cloud.Uncertain(err) {
		t.Errorf("CreateSnapshot while the task runs: %v, want an error with Uncertain set", err)
	}
	found, err := c.ListSnapshots(t.Context(), server)
	if !cloud.Is(err, cloud.Busy) || len(found) != 1 {
		t.Errorf("ListSnapshots while the task runs: %+v, %v, want the snapshot and Busy", found, err)
	}
	_, err = c.CreateSnapshot(t.Context(), cloud.CreateSnapshot{ServerID: server, Name: "second"})
	if !cloud.Is(err, cloud.Busy) || !cloud.Uncertain(err) {
		t.Errorf("CreateSnapshot while another is taken: %v, want Busy with Uncertain set", err)
	}
	if sent := v.Front.Sent("CreateSnapshotEx_Task"); sent != 1 {
		t.Errorf("%d snapshots were requested, want one", sent)
	}
	release()
	if found, err := c.ListSnapshots(t.Context(), server); err != nil || len(found) != 1 {
		t.Errorf("ListSnapshots: %+v, %v, want one snapshot", found, err)
	}
}

func TestLostAnswerToDeletionOfSnapshotIsSentOnce(t *testing.T) {
	t.Parallel()
	v, c, server := snapshotted(t)
	made, err := c.CreateSnapshot(t.Context(), cloud.CreateSnapshot{ServerID: server, Name: "snap"})
	if err != nil {
		t.Fatalf("CreateSnapshot: %v", err)
	}
	restore := v.Front.Lose("RemoveSnapshot_Task")
	if err := c.DeleteSnapshot(t.Context(), server, made.ID); !cloud.Uncertain(err) {
		t.Errorf("DeleteSnapshot: %v, want an error with Uncertain set", err)
	}
	restore()
	if sent := v.Front.Sent("RemoveSnapshot_Task"); sent != 1 {
		t.Errorf("%d deletions were sent, want one", sent)
	}
	if err := c.DeleteSnapshot(t.Context(), server, made.ID); !cloud.Is(err, cloud.NotFound) {
		t.Errorf("second DeleteSnapshot: %v, want NotFound", err)
	}
}
