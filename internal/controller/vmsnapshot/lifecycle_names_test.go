package vmsnapshot

import (
	"fmt"
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

// extend changes names so that they prove no owner.
func extend(s *cloud.Snapshot) { s.Name += "-dc1" }

// The cloud may give names that prove no owner. A person has a snapshot of such a name, and others that are named after the object's.
func TestSnapshotsWithOtherNamesOrNoProofAreKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*cloud.Snapshot){"the cloud extends names": extend, "the cloud keeps names": func(*cloud.Snapshot) {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, plain, vm(), snapshot())
			h.cloud.AlterSnapshots(change)
			h.reconcile()
			made := h.cloud.Snapshots("s1")[0]
			others := []cloud.Snapshot{made}
			for i, named := range []string{made.Name, "before-upgrade-" + made.Name, made.Name + ".bak", made.Name + "-manual", "old_" + made.Name} {
				if i > 0 || name == "the cloud extends names" {
					others = append(others, cloud.Snapshot{ID: fmt.Sprint("other", i), Name: named, CreatedAt: h.now})
				}
			}
			h.cloud.SetSnapshots("s1", others...)
			for range 3 {
				h.now = h.now.Add(time.Hour)
				h.reconcile()
			}
			h.wantCondition("Ready", "True InSync")
			h.delete(snapshot())
			for range 3 {
				h.now = h.now.Add(time.Minute)
				h.reconcile()
			}
			h.wantGone()
			if left := h.cloud.Snapshots("s1"); len(left) != len(others)-1 {
				t.Errorf("snapshots %v are left, want the %d of others", left, len(others)-1)
			}
		})
	}
}

// The answer is lost, and the cloud gives names that prove no owner: the repeated create returns the snapshot.
func TestLostCreateIsRepeatedWithItsKeyWhereNamesProveNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withKeys, vm(), snapshot())
	h.cloud.AlterSnapshots(extend)
	h.cloud.Fail(cloudfake.CreateSnapshot, errReset, true)
	for range 5 {
		h.reconcile()
		h.now = h.now.Add(settleTime)
	}
	h.wantSnapshots("snap1")
	h.wantCondition("Ready", "True InSync")
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
