package vm

import (
	"slices"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
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
