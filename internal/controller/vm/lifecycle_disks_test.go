package vm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func withDisks(disks ...pcapi.VMDisk) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.Disks = disks }
}

// hadDisks makes the status show disks.
func hadDisks(disks ...pcapi.VMDiskStatus) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Status.Disks = disks }
}

func hasDisks(disks cloud.Disks) func(*cloud.Server) {
	return func(s *cloud.Server) { s.Disks = disks }
}

// typedDisks are two disks of the same type.
func typedDisks(vm *pcapi.VM) {
	vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "2Gi", Type: "fast"}, {Name: "logs", Size: "1Gi", Type: "fast"}}
}

func rooted(size pcapi.VMDiskSize, of pcapi.VMDiskType) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.RootDisk = &pcapi.VMRootDisk{Size: size, Type: of} }
}

func hasRoot(mib int, of string) func(*cloud.Server) {
	return func(s *cloud.Server) { s.RootDisk = cloud.RootDisk{SizeMiB: mib, Type: of} }
}

// twoDisks are those of the spec in these tests.
func twoDisks() func(*pcapi.VM) {
	return withDisks(pcapi.VMDisk{Name: "logs", Size: "1Gi"}, pcapi.VMDisk{Name: "data", Size: "2Gi"})
}

const bothDisks = cloud.Disks("data=2048 logs=1024")

// keptDisks are two disks, of which the first is kept when the VM is deleted.
func keptDisks(vm *pcapi.VM) {
	vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "2Gi", DeletionPolicy: pcapi.VMDiskKeep}, {Name: "logs", Size: "1Gi", DeletionPolicy: pcapi.VMDiskDelete}}
}

func TestDisksArePartOfTheCreate(t *testing.T) {
	h := newHarness(t, everything, vmWith(twoDisks()))
	h.mustReconcile()
	h.wantCalls("check web", "create web")
	equal(t, "disks", bothDisks, h.cloud.Server("s1").Disks)
	equal(t, "status", []pcapi.VMDiskStatus{{Name: "data", Size: "2Gi"}, {Name: "logs", Size: "1Gi"}}, h.vm().Status.Disks)
}

func TestDisksOfAServer(t *testing.T) {
	for name, test := range map[string]struct {
		has     cloud.Disks
		had     []pcapi.VMDiskStatus
		without []cloud.Capability
		calls   []string
		want    cloud.Disks
		ready   string
		says    []string
		status  []pcapi.VMDiskStatus
	}{
		"it has them: nothing is sent": {has: bothDisks, want: bothDisks, ready: "True Running",
			status: []pcapi.VMDiskStatus{{Name: "data", Size: "2Gi"}, {Name: "logs", Size: "1Gi"}}},
		"one is smaller and one missing: grown and added in one change": {has: "data=1024", calls: []string{"update s1"}, want: bothDisks, ready: "True Running",
			had:    []pcapi.VMDiskStatus{{Name: "data", Size: "1Gi"}},
			status: []pcapi.VMDiskStatus{{Name: "data", Size: "2Gi"}, {Name: "logs", Size: "1Gi"}}},
		"it has others too: they are shown and stay": {has: "a=5 data=2048 logs=1024", want: "a=5 data=2048 logs=1024", ready: "True Running",
			status: []pcapi.VMDiskStatus{{Name: "a", Size: "5Mi"}, {Name: "data", Size: "2Gi"}, {Name: "logs", Size: "1Gi"}}},
		"one is larger: it stays, and the VM says so": {has: "data=2049 logs=1024", want: "data=2049 logs=1024", ready: "False Unsupported",
			says:   []string{`the disk "data"`, "set its size in spec.disks to 3Gi"},
			status: []pcapi.VMDiskStatus{{Name: "data", Size: "2049Mi"}, {Name: "logs", Size: "1Gi"}}},
		"one was removed: it is not created again, and the other one grows": {has: "data=1024", calls: []string{"update s1"}, want: "data=2048", ready: "False Drift",
			had:    []pcapi.VMDiskStatus{{Name: "data", Size: "1Gi"}, {Name: "logs", Size: "1Gi"}},
			says:   []string{`the disk "logs" was removed`},
			status: []pcapi.VMDiskStatus{{Name: "data", Size: "2Gi"}, {Name: "logs", Lost: true}}},
		"one was removed before: it stays lost": {has: "data=2048", want: "data=2048", ready: "False Drift",
			had:    []pcapi.VMDiskStatus{{Name: "data", Size: "2Gi"}, {Name: "logs", Lost: true}},
			status: []pcapi.VMDiskStatus{{Name: "data", Size: "2Gi"}, {Name: "logs", Lost: true}}},
		"one that was lost is there again: shown": {has: bothDisks, want: bothDisks, ready: "True Running",
			had:    []pcapi.VMDiskStatus{{Name: "data", Size: "2Gi"}, {Name: "logs", Lost: true}},
			status: []pcapi.VMDiskStatus{{Name: "data", Size: "2Gi"}, {Name: "logs", Size: "1Gi"}}},
		"the cloud lacks the capability now: not sent, and the VM says so": {without: []cloud.Capability{cloud.WithDisks}, ready: "False Unsupported", says: []string{"this cloud cannot set disks"},
			had: []pcapi.VMDiskStatus{{Name: "data", Size: "1Gi"}, {Name: "logs", Size: "1Gi"}}, status: []pcapi.VMDiskStatus{{Name: "data", Size: "1Gi"}, {Name: "logs", Size: "1Gi"}}},
		"the cloud lacks the capability: not sent": {without: []cloud.Capability{cloud.WithDisks}, ready: "False Unsupported", says: []string{"this cloud cannot set disks"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, without(test.without...), onRecord(twoDisks(), hadDisks(test.had...)), serverWith(hasDisks(test.has)))
			h.mustReconcile()
			h.wantCalls(test.calls...)
			equal(t, "disks", test.want, h.cloud.Server("s1").Disks)
			h.wantCondition(pcapi.ReadyCondition, test.ready, test.says...)
			equal(t, "status", test.status, h.vm().Status.Disks)
		})
	}
}

func TestStatusKeepsDisksWhileTheServerIsBuilt(t *testing.T) {
	had := []pcapi.VMDiskStatus{{Name: "data", Size: "2Gi"}}
	h := harnessWithServer(t, everything, onRecord(twoDisks(), hadDisks(had...)), serverWith(func(s *cloud.Server) { s.State = cloud.StateBuilding }))
	h.mustReconcile()
	h.wantCalls()
	equal(t, "status", had, h.vm().Status.Disks)
}

func TestGrowthThatNeedsStop(t *testing.T) {
	t.Run("restarts are not allowed: stalled, and the server runs on", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(twoDisks()), serverWith(hasDisks("data=1024 logs=1024")))
		h.cloud.SetNeedsStop(true)
		h.wantRequeue(10*time.Minute, h.mustReconcile())
		h.wantCondition(pcapi.StalledCondition, "True NeedsRestart", "spec.updatePolicy")
		equal(t, "state", cloud.StateActive, h.cloud.Server("s1").State)
	})
	t.Run("restarts are allowed: stopped, grown, started", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(twoDisks(), restartAllowed), serverWith(hasDisks("data=1024 logs=1024")))
		h.cloud.SetNeedsStop(true)
		for range 4 {
			h.mustReconcile()
			h.advance(time.Second)
		}
		h.wantCondition(pcapi.ReadyCondition, "True Running")
		equal(t, "disks", bothDisks, h.cloud.Server("s1").Disks)
		equal(t, "state", cloud.StateActive, h.cloud.Server("s1").State)
	})
}

func TestLostAnswerToGrowthLeadsToTheTargetSize(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(twoDisks()), serverWith(hasDisks("data=1024")))
	h.cloud.Fail(cloudfake.UpdateServer, &cloud.Error{Kind: cloud.Unavailable, Op: "update", Uncertain: true}, true)
	h.mustReconcile()
	for range 3 {
		h.later(pollInterval)
		h.mustReconcile()
	}
	equal(t, "disks", bothDisks, h.cloud.Server("s1").Disks)
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestDisksThatCannotBeChangedKeepNoServerOnOrOff(t *testing.T) {
	huge := withDisks(pcapi.VMDisk{Name: "data", Size: "64Ti"})
	t.Run("it is to be off, and the cloud refuses the disks: stopped", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(huge, poweredOff, mode(pcapi.PowerOffModeHard)), serverWith(hasDisks("data=1024")))
		for range 3 {
			h.mustReconcile()
			h.later(time.Second)
		}
		equal(t, "state", cloud.StateStopped, h.serverState())
		h.wantCondition(pcapi.ReadyCondition, "False Rejected", "larger than")
	})
	t.Run("it is off, and the cloud has no disks: started", func(t *testing.T) {
		h := harnessWithServer(t, without(cloud.WithDisks), onRecord(huge), serverWith(func(s *cloud.Server) { s.State = cloud.StateStopped }))
		for range 3 {
			h.mustReconcile()
			h.later(time.Second)
		}
		equal(t, "state", cloud.StateActive, h.serverState())
		h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "disks")
	})
	t.Run("it is to be off and to get a disk: both, in this order", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(twoDisks(), poweredOff, mode(pcapi.PowerOffModeHard)), serverWith())
		for range 3 {
			h.mustReconcile()
			h.later(time.Second)
		}
		h.wantCalls("update s1", "update s1")
		equal(t, "disks", bothDisks, h.cloud.Server("s1").Disks)
		h.wantCondition(pcapi.ReadyCondition, "True Stopped")
	})
}

func TestDisksThatAreUnknownAreNeitherChangedNorLost(t *testing.T) {
	shown := []pcapi.VMDiskStatus{{Name: "data", Size: "2Gi"}, {Name: "logs", Size: "1Gi"}}
	root := &pcapi.VMRootDiskStatus{Size: "20Gi"}
	rooted := func(vm *pcapi.VM) {
		vm.Spec.RootDisk, vm.Status.RootDisk = &pcapi.VMRootDisk{Size: "30Gi"}, root.DeepCopy()
	}
	caps := cloud.NewCapabilities(append(without(), cloud.WithRootDisk)...)
	h := harnessWithServer(t, caps, onRecord(twoDisks(), hadDisks(shown...), rooted), serverWith(hasDisks(cloud.DisksUnknown)))
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	equal(t, "disks in the status", shown, h.vm().Status.Disks)
	equal(t, "root disk in the status", root, h.vm().Status.RootDisk)
}

func TestDisksThatAreKept(t *testing.T) {
	shown := func(data, logs pcapi.VMDiskDeletionPolicy) []pcapi.VMDiskStatus {
		return []pcapi.VMDiskStatus{{Name: "data", Size: "2Gi", DeletionPolicy: data}, {Name: "logs", Size: "1Gi", DeletionPolicy: logs}}
	}
	for name, test := range map[string]struct {
		has    cloud.Disks
		lacks  []cloud.Capability
		calls  []string
		want   cloud.Disks
		ready  string
		says   string
		status []pcapi.VMDiskStatus
	}{
		"as the spec says: nothing is sent":                {has: "data=2048==keep logs=1024", want: "data=2048==keep logs=1024", ready: "True Running", status: shown(pcapi.VMDiskKeep, "")},
		"the other way round: changed":                     {has: "data=2048 logs=1024==keep", calls: []string{"update s1"}, want: "data=2048==keep logs=1024", ready: "True Running", status: shown(pcapi.VMDiskKeep, "")},
		"one is smaller: changed, and it grows after that": {has: "data=1024 logs=1024", calls: []string{"update s1", "update s1"}, want: "data=2048==keep logs=1024", ready: "True Running", status: shown(pcapi.VMDiskKeep, "")},
		"the cloud cannot do that: the disk grows all the same": {has: "data=1024 logs=1024", lacks: []cloud.Capability{cloud.KeepDisks}, calls: []string{"update s1"}, want: "data=2048 logs=1024",
			ready: "False Unsupported", says: "this cloud cannot set disks[].deletionPolicy", status: shown("", "")},
		"the disks are not known: nothing is sent": {has: cloud.DisksUnknown, want: cloud.DisksUnknown, ready: "True Running"},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, allOf(test.lacks...), onRecord(keptDisks), serverWith(hasDisks(test.has)))
			for range len(test.calls) + 1 {
				h.mustReconcile()
			}
			h.wantCalls(test.calls...)
			equal(t, "disks", test.want, h.cloud.Server("s1").Disks)
			h.wantCondition(pcapi.ReadyCondition, test.ready, test.says)
			equal(t, "status", test.status, h.vm().Status.Disks)
		})
	}
}

func TestDiskThatTheSpecKeepsIsKeptBeforeTheDeletion(t *testing.T) {
	refused := &cloud.Error{Kind: cloud.Rejected, Op: "update s1", Detail: "not now"}
	const remedy = "set their deletionPolicy in spec.disks to Delete"
	for name, test := range map[string]struct {
		lacks  []cloud.Capability
		has    cloud.Disks
		before func(*harness)
		calls  []string
		says   string
		kept   []string
	}{
		"the cloud does not keep it yet: changed first": {calls: []string{"update s1", "delete s1"}, kept: []string{"data", "logs"}},
		"the cloud refuses that: not deleted":           {before: func(h *harness) { h.cloud.FailAlways(cloudfake.UpdateServer, refused, false) }, calls: []string{"update s1"}, says: "Blocked update s1: not now; the VM is not deleted before the cloud keeps its disks data:"},
		"the cloud ignores that: not deleted":           {before: func(h *harness) { h.cloud.Ignore(cloudfake.UpdateServer) }, calls: []string{"update s1"}, says: "Blocked delete server s1: the cloud accepts"},
		"the cloud begins an operation: not deleted":    {before: func(h *harness) { h.cloud.SetOperating(true) }, calls: []string{"update s1"}},
		"the disks are not known: not deleted":          {has: cloud.DisksUnknown, calls: []string{"get s1"}},
		"the disks are known again": {has: cloud.DisksUnknown, calls: []string{"get s1", "update s1", "delete s1"}, kept: []string{"data"},
			before: func(h *harness) { h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Disks = bothDisks }) }},
		"the cloud cannot keep disks": {lacks: []cloud.Capability{cloud.KeepDisks}, calls: []string{"delete s1"}, kept: []string{"logs"}},
	} {
		t.Run(name, func(t *testing.T) {
			has := cmp.Or(test.has, "data=2048 logs=1024==keep")
			h := harnessWithServer(t, allOf(test.lacks...), onRecord(deleted, keptDisks), serverWith(hasDisks(has)))
			if test.before != nil {
				test.before(h)
			}
			_, _ = h.reconcile()
			calls := h.cloud.TakeCalls(cloudfake.ListServers)
			if len(test.kept) > 0 && calls[len(calls)-1] == "get s1" { // whether the server is gone
				calls = calls[:len(calls)-1]
			}
			equal(t, "calls", test.calls, calls)
			equal(t, "disks that the cloud keeps", test.kept, h.cloud.KeptDisks("s1"))
			if test.says != "" {
				reason, message := h.condition(pcapi.DeletingCondition)
				if text := strings.TrimPrefix(reason, "True ") + " " + message; !strings.Contains(text, test.says) || !strings.Contains(text, remedy) {
					t.Errorf("Deleting says %q, want %q", text, test.says)
				}
			}
		})
	}
}

func TestDeletionGoesOnOnceTheOperationThatKeepsDisksHasEnded(t *testing.T) {
	h := harnessWithServer(t, allOf(), onRecord(deleted, keptDisks), serverWith(hasDisks(bothDisks)))
	h.cloud.SetOperating(true)
	_, _ = h.reconcile()
	h.cloud.FinishOperations()
	h.cloud.SetOperating(false)
	for range 3 {
		h.later(settleTime)
		h.poll()
		_, _ = h.reconcile()
	}
	equal(t, "disks that the cloud keeps", []string{"data"}, h.cloud.KeptDisks("s1"))
}

func TestPlanOfADeletionNamesTheDisksThatAreKept(t *testing.T) {
	server := serverWith(hasDisks("a=1024==keep data=2048 logs=1024"))
	for want, vm := range map[string]*pcapi.VM{"its disks, except a": onRecord(twoDisks()), "its disks, except a, data": onRecord(keptDisks)} {
		equal(t, "plan", want, disksLeft(vm, &server))
	}
	equal(t, "plan", "its disks", disksLeft(onRecord(keptDisks), nil))
}

func TestChangeOfWhatIsKeptStopsNoServer(t *testing.T) {
	h := harnessWithServer(t, allOf(), onRecord(keptDisks, restartAllowed), serverWith(hasDisks("data=2048 logs=1024")))
	h.cloud.FailAlways(cloudfake.UpdateServer, &cloud.Error{Kind: cloud.NeedsStop, Op: "update s1", Detail: "stop it"}, false)
	for range 3 {
		_, _ = h.reconcile()
	}
	if got := h.cloud.Server("s1").State; got != cloud.StateActive {
		t.Errorf("the server is %s", got)
	}
	for _, call := range h.cloud.TakeCalls(cloudfake.ListServers) {
		if call != "update s1" {
			t.Errorf("call %s", call)
		}
	}
}

func TestDeletionNamesTheDisksThatAreKept(t *testing.T) {
	h := harnessWithServer(t, allOf(), onRecord(deleted, keptDisks), serverWith(hasDisks("a=1024==keep data=2048==keep logs=1024")))
	h.mustReconcile()
	equal(t, "disks that the cloud keeps", []string{"a", "data"}, h.cloud.KeptDisks("s1"))
	if !slices.Contains(h.events, "Normal "+pcapi.DisksKeptReason) {
		t.Errorf("the events %v have none of the disks", h.events)
	}
	recorder := events.NewFakeRecorder(1)
	many := make([]cloud.Disk, cloud.MaxDisks)
	for i := range many {
		many[i] = cloud.Disk{Name: fmt.Sprintf("%s%02d", strings.Repeat("d", 61), i), SizeMiB: 1, Keep: true}
	}
	disks, _ := cloud.NewDisks(many)
	recordKept(t.Context(), recorder, onRecord(), cloud.Server{ID: "s1", Disks: disks})
	if text := <-recorder.Events; !strings.Contains(text, "the cloud keeps disks of VM s1, which is deleted: "+many[0].Name) || len(text) > 1024 {
		t.Errorf("an event of %d bytes: %s", len(text), text)
	}
}

// keepsDisks is a cloud whose disks outlive their servers.
type keepsDisks struct {
	*cloudfake.Cloud
	deleted []string
}

func (k *keepsDisks) DeleteDisks(_ context.Context, serverID string) error {
	k.deleted = append(k.deleted, fmt.Sprint(serverID, " ", slices.Contains(k.ServerIDs(), serverID)))
	return nil
}

func TestDisksThatOutliveTheirServerAreDeletedAfterIt(t *testing.T) {
	had := hadDisks(pcapi.VMDiskStatus{Name: "data", Size: "2Gi"}, pcapi.VMDiskStatus{Name: "logs", Lost: true})
	lost := func(vm *pcapi.VM) {
		meta.SetStatusCondition(&vm.Status.Conditions, metav1.Condition{Type: pcapi.CreatedCondition, Status: metav1.ConditionFalse, Reason: pcapi.LostReason})
	}
	for name, test := range map[string]struct {
		vm   *pcapi.VM
		gone bool
		want []string
	}{
		"the server is deleted":                  {vm: onRecord(deleted, twoDisks(), had), want: []string{"s1 false"}},
		"an earlier manager has deleted it":      {vm: onRecord(deleted, twoDisks(), had), gone: true, want: []string{"s1 false"}},
		"a disk was being added":                 {vm: onRecord(deleted, twoDisks()), want: []string{"s1 false"}},
		"it has a root disk":                     {vm: onRecord(deleted, func(vm *pcapi.VM) { vm.Spec.RootDisk = &pcapi.VMRootDisk{Size: "20Gi"} }), want: []string{"s1 false"}},
		"it has no disks":                        {vm: onRecord(deleted)},
		"somebody else has deleted the server":   {vm: onRecord(deleted, twoDisks(), had, lost), gone: true},
		"the server stays":                       {vm: onRecord(deleted, twoDisks(), had, orphaning)},
		"the VM is only observed and is deleted": {vm: onRecord(deleted, twoDisks(), had, observing), gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, test.vm)
			if !test.gone {
				h.cloud.AddServers(serverWith(hasDisks(bothDisks)))
			}
			c := &keepsDisks{Cloud: h.cloud}
			h.inv.Connect(c, h.cloud.Can())
			h.poll()
			for range 5 {
				h.mustReconcile()
				h.later(settleTime)
				if _, there := h.find(); !there {
					break
				}
			}
			if _, there := h.find(); there {
				t.Error("the VM is still there")
			}
			equal(t, "disks that are deleted", test.want, c.deleted)
		})
	}
}
