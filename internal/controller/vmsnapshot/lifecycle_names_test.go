package vmsnapshot

import (
	"strings"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// given are ways in which clouds change the name of a snapshot.
var given = map[string]func(string) string{
	"upper case": strings.ToUpper, "domain": func(name string) string { return name + ".cloud.example.com" }, "cut": func(name string) string { return name[:len(name)-5] },
	"prefix": func(name string) string { return "tenant-" + name }, "other characters": func(name string) string { return strings.ReplaceAll(name, "-", "_") },
}

func TestSnapshotIsCreatedOnceUnderANameThatTheCloudChose(t *testing.T) {
	t.Parallel()
	for name, give := range given {
		for profile, caps := range map[string]cloud.Capabilities{"keys": withKeys, "no keys": plain} {
			t.Run(name+", "+profile, func(t *testing.T) {
				t.Parallel()
				h := newHarness(t, caps, vm(), snapshot())
				h.cloud.AlterSnapshots(func(s *cloud.Snapshot) { s.Name = give(s.Name) })
				for range 4 {
					h.reconcile()
					h.now = h.now.Add(settleTime)
				}
				h.wantSnapshots("snap1")
				h.wantCondition("Ready", "True InSync")
				made := h.cloud.Snapshots("s1")[0]
				var snap pcapi.VMSnapshot
				if err := h.client.Get(t.Context(), key, &snap); err != nil || snap.Status.NameInCloud != made.Name {
					t.Errorf("nameInCloud is %q, %v, want %q", snap.Status.NameInCloud, err, made.Name)
				}
				h.cloud.SetSnapshots("s1", cloud.Snapshot{ID: "snap1", Name: "of-others", CreatedAt: made.CreatedAt})
				h.now = h.now.Add(time.Hour)
				h.reconcile()
				h.wantCondition("Ready", "False Drift", made.Name)
				h.cloud.SetSnapshots("s1", made)
				h.delete(snapshot())
				for range 3 {
					h.now = h.now.Add(time.Minute)
					h.reconcile()
				}
				h.wantSnapshots()
				h.wantGone()
			})
		}
	}
}

func TestSnapshotOfALostCreateIsFoundUnderANameThatTheCloudChose(t *testing.T) {
	t.Parallel()
	for name, give := range given {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, plain, vm(), snapshot())
			h.cloud.AlterSnapshots(func(s *cloud.Snapshot) { s.Name = give(s.Name) })
			h.cloud.Fail(cloudfake.CreateSnapshot, errReset, true)
			for range 5 {
				h.reconcile()
				h.now = h.now.Add(settleTime)
			}
			h.wantSnapshots("snap1")
			h.wantCondition("Ready", "True InSync")
		})
	}
}
