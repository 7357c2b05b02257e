package vm

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func TestDeletionSaysOnceWhichSnapshotsAreDeleted(t *testing.T) {
	const event = "Warning " + pcapi.SnapshotsDeletedReason
	named := func(name string, change func(*pcapi.VMSnapshot)) *pcapi.VMSnapshot {
		return snapshotOf(func(s *pcapi.VMSnapshot) { s.Name = name }, change)
	}
	for name, test := range map[string]struct {
		snapshot *pcapi.VMSnapshot
		want     int
	}{
		"a snapshot of the server":          {named("before", func(*pcapi.VMSnapshot) {}), 1},
		"a snapshot of an earlier server":   {named("before", func(s *pcapi.VMSnapshot) { s.Status.VMID = "s0" }), 0},
		"a VMSnapshot without a snapshot":   {named("before", func(s *pcapi.VMSnapshot) { s.Status.SnapshotID = "" }), 0},
		"a snapshot of another VM":          {named("before", func(s *pcapi.VMSnapshot) { s.Spec.VMName = "b" }), 0},
		"a VMSnapshot of another namespace": {named("before", func(s *pcapi.VMSnapshot) { s.Namespace = "other" }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, onRecord(deleted), test.snapshot)
			h.cloud.AddServers(serverWith())
			h.poll()
			for range 3 {
				h.mustReconcile()
				h.advance(quiet)
			}
			got := len(slices.DeleteFunc(slices.Clone(h.events), func(e string) bool { return e != event }))
			if got != test.want {
				t.Errorf("%d events %s among %v, want %d", got, event, h.events, test.want)
			}
		})
	}
}

// outliving is a cloud whose snapshots outlive their server.
type outliving struct {
	*cloudfake.Cloud
	// fails are the errors of the next calls.
	fails []error
	// deleted are the servers whose snapshots were to be deleted, with their owners, and early
	// those that existed then.
	deleted, early []string
}

func (o *outliving) DeleteSnapshots(_ context.Context, serverID, owner string) error {
	o.deleted = append(o.deleted, serverID+" of "+owner)
	if slices.Contains(o.ServerIDs(), serverID) {
		o.early = append(o.early, serverID)
	}
	if len(o.fails) == 0 {
		return nil
	}
	err := o.fails[0]
	o.fails = o.fails[1:]
	return err
}

func TestSnapshotsThatOutliveTheirServerAreDeletedAfterIt(t *testing.T) {
	away := &cloud.Error{Kind: cloud.Unavailable, Op: "delete the snapshots of server s1", Detail: "503 of http://glance.example:9292"}
	lost := func(vm *pcapi.VM) {
		meta.SetStatusCondition(&vm.Status.Conditions, metav1.Condition{Type: pcapi.CreatedCondition, Status: metav1.ConditionFalse, Reason: pcapi.LostReason})
	}
	once := []string{"s1 of uid-a"}
	for name, test := range map[string]struct {
		vm      *pcapi.VM
		gone    bool
		refused error
		fails   []error
		restart bool
		want    []string
		stays   bool
	}{
		"the server is deleted":                    {vm: onRecord(deleted), want: once},
		"an earlier manager has deleted it":        {vm: onRecord(deleted), gone: true, want: once},
		"the cloud refuses to delete the server":   {vm: onRecord(deleted), refused: &cloud.Error{Kind: cloud.Rejected, Op: "delete server"}, stays: true},
		"they cannot be deleted at once":           {vm: onRecord(deleted), fails: []error{away}, want: slices.Repeat(once, 2)},
		"the manager ends before they are deleted": {vm: onRecord(deleted), fails: []error{away}, restart: true, want: slices.Repeat(once, 2)},
		"somebody else has deleted the server":     {vm: onRecord(deleted, lost), gone: true},
		"the server stays":                         {vm: onRecord(deleted, orphaning)},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, test.vm)
			if !test.gone {
				h.cloud.AddServers(serverWith())
			}
			c := &outliving{Cloud: h.cloud, fails: test.fails}
			connect := func() {
				h.inv.Connect(c, h.cloud.Can())
				h.poll()
			}
			connect()
			if test.refused != nil {
				h.cloud.FailAlways(cloudfake.DeleteServer, test.refused, false)
			}
			for range 5 {
				h.mustReconcile()
				if vm, there := h.find(); there && len(test.fails) > 0 && len(c.deleted) == 1 {
					h.wantCondition(pcapi.DeletingCondition, "True WaitingForCloud", "delete the snapshots of server s1: the cloud does not answer")
					if !slices.Contains(vm.Finalizers, pcapi.VMFinalizer) {
						t.Error("the VM is released before its snapshots are deleted")
					}
				}
				if test.restart && len(c.deleted) == 1 {
					h.start()
					h.connect()
					connect()
				}
				h.later(settleTime)
				if _, there := h.find(); !there {
					break
				}
			}
			if _, there := h.find(); there != test.stays {
				t.Errorf("the VM is there: %t, want %t", there, test.stays)
			}
			equal(t, "servers whose snapshots are deleted", test.want, c.deleted)
			equal(t, "servers that existed then", []string(nil), c.early)
		})
	}
}
