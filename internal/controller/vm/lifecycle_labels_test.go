package vm

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

const realUID = "3f2b8c1e-9a4d-4c57-8e21-0b6d7f5a9c33"

func withRealUID(vm *pcapi.VM) { vm.UID = realUID }

// relabel changes each value of the labels of a new server.
func relabel(change func(string) string) func(*cloud.Server) {
	return func(s *cloud.Server) {
		labels := map[string]string{}
		for key, value := range s.Labels {
			labels[key] = change(value)
		}
		s.Labels = labels
	}
}

func cutTo(most int) func(string) string {
	return func(text string) string { return text[:min(most, len(text))] }
}

// alterations are what clouds do with the labels of a create.
var alterations = map[string]func(*cloud.Server){
	"cut to 30": relabel(cutTo(30)), "cut to 10": relabel(cutTo(10)), "in upper case": relabel(strings.ToUpper),
	"with underscores":            relabel(func(text string) string { return strings.ReplaceAll(text, "-", "_") }),
	"without that of the cluster": func(s *cloud.Server) { delete(s.Labels, inventory.ClusterLabel) },
}

var withLabels = map[string]cloud.Capabilities{
	"all capabilities": everything, "labels and names": withoutKeys, "labels alone": profiles["labels alone"], "a key and labels": without(cloud.UniqueNames),
}

func TestLabelsThatTheCloudDoesNotKeepAreReportedAtTheCreate(t *testing.T) {
	changes := map[string]func(*cloud.Server){"dropped": unlabelled}
	maps.Copy(changes, alterations)
	for name, change := range changes {
		for profile, caps := range withLabels {
			t.Run(name+", "+profile, func(t *testing.T) {
				h := newHarness(t, caps, vmWith(withRealUID))
				h.cloud.Alter(change)
				h.mustReconcile()
				equal(t, "vmId", "s1", h.vm().Status.VMID)
				h.wantCondition(pcapi.CreatedCondition, "True Created")
				h.wantCondition(pcapi.ReadyCondition, "False LabelsMissing", "set "+inventory.UIDLabel+" to "+realUID, "the capability labels", "deletionPolicy to Orphan")
				if !slices.Contains(h.events, "Warning LabelsMissing") {
					t.Errorf("events %v, want a warning", h.events)
				}
				for range 3 {
					h.later(settleTime)
					h.mustReconcile()
				}
				h.wantCondition(pcapi.ReadyCondition, "False LabelsMissing")
				equal(t, "creates", 1, h.cloud.Sent(cloudfake.CreateServer))

				h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Labels = pureKind.servers.ownerLabels(h.vm()) })
				h.later(pollInterval)
				h.mustReconcile()
				h.wantCondition(pcapi.ReadyCondition, "True Running")
			})
		}
	}
}

func TestServerWithoutItsLabelsIsNotDeleted(t *testing.T) {
	for name, change := range map[string]func(*cloud.Server){"dropped": unlabelled, "cut": alterations["cut to 30"]} {
		for profile, caps := range withLabels {
			t.Run(name+", "+profile, func(t *testing.T) {
				h := newHarness(t, caps, vmWith(withRealUID))
				h.cloud.Alter(change)
				h.mustReconcile()
				h.remove()
				for range 2 {
					h.later(settleTime)
					h.mustReconcile()
				}
				h.wantCondition(pcapi.DeletingCondition, "True Blocked", "set "+inventory.UIDLabel+" to "+realUID, "deletionPolicy to Orphan")
				h.wantServers("s1")
				h.edit(orphaning)
				h.mustReconcile()
				h.wantGone()
				h.wantServers("s1")
			})
		}
	}
}

func TestServerOfLostAnswerIsFoundByAlteredLabels(t *testing.T) {
	for name, change := range alterations {
		for profile, caps := range withLabels {
			t.Run(name+", "+profile, func(t *testing.T) {
				h := newHarness(t, caps, vmWith(withRealUID))
				h.cloud.Alter(change)
				h.cloud.Fail(cloudfake.CreateServer, errReset, true)
				h.mustReconcile()
				for range 4 {
					h.later(settleTime)
					h.mustReconcile()
				}
				equal(t, "vmId", "s1", h.vm().Status.VMID)
				equal(t, "creates", 1, h.cloud.Sent(cloudfake.CreateServer))
				h.wantCondition(pcapi.ReadyCondition, "False LabelsMissing", realUID)
			})
			t.Run(name+", "+profile+", deleted", func(t *testing.T) {
				h := newHarness(t, caps, vmWith(withRealUID))
				h.cloud.Alter(change)
				h.cloud.Fail(cloudfake.CreateServer, errReset, true)
				h.mustReconcile()
				h.remove()
				for range 4 {
					h.later(settleTime)
					h.mustReconcile()
				}
				h.wantServers("s1")
				h.wantCondition(pcapi.DeletingCondition, "True Blocked", "s1", "deletionPolicy to Orphan")
			})
		}
	}
}

func TestAlteredLabelsAreReportedAfterAnOperationThatMadeTheServer(t *testing.T) {
	for name, change := range alterations {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, operatingWithout(cloud.Idempotency), vmWith(withRealUID))
			h.cloud.Alter(change)
			h.cloud.SetOperating(true)
			h.mustReconcile()
			h.cloud.FinishOperations()
			for range 4 {
				h.later(settleTime)
				h.mustReconcile()
			}
			equal(t, "vmId", "s1", h.vm().Status.VMID)
			equal(t, "creates", 1, h.cloud.Sent(cloudfake.CreateServer))
			h.wantCondition(pcapi.ReadyCondition, "False LabelsMissing", realUID)
		})
	}
}

func TestServerOfAnotherOwnerIsNotTakenForOneWithAlteredLabels(t *testing.T) {
	for label, value := range map[string]string{inventory.UIDLabel: "3f2b8c1e-0000-4c57-8e21-0b6d7f5a9c33", inventory.ClusterLabel: "another-cluster"} {
		t.Run(label, func(t *testing.T) {
			h := harnessWithLostAnswer(t, without(cloud.Idempotency, cloud.UniqueNames), false)
			h.cloud.AddServers(serverWith(withID("x"), owned, func(s *cloud.Server) { s.Labels[label] = value }))
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			h.wantServers("s1", "x")
			equal(t, "vmId", "s1", h.vm().Status.VMID)
		})
	}
}

func TestMissingLabelsAreNotReportedWhileTheServerIsBuilt(t *testing.T) {
	h := newHarness(t, everything, vmWith(withRealUID))
	h.cloud.Alter(func(s *cloud.Server) { s.State, s.Labels = cloud.StateBuilding, nil })
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Creating")
	h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.State, s.Labels = cloud.StateActive, pureKind.servers.ownerLabels(h.vm()) })
	h.later(time.Second)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestServerThatHasGotTheIDIsNotCalledOneWithoutItsLabels(t *testing.T) {
	for name, change := range map[string]func(*cloud.Server){
		"another name":  func(s *cloud.Server) { s.Name, s.Labels = "db", nil },
		"created later": func(s *cloud.Server) { s.CreatedAt, s.Labels = s.CreatedAt.Add(time.Hour), nil },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, everything, vmWith(withRealUID))
			h.mustReconcile()
			h.later(settleTime)
			h.cloud.ModifyServer("s1", change)
			h.later(time.Second)
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "False Blocked", "find out who created it")
			h.remove()
			h.later(time.Second)
			h.mustReconcile()
			h.wantServers("s1")
		})
	}
}

func TestCreateIsNotRepeatedOnACloudThatDropsLabelsAndWhoseReadsLag(t *testing.T) {
	for _, caps := range []cloud.Capabilities{profiles["labels alone"], profiles["labels and names"], profiles["a key and labels"]} {
		h := newHarness(t, caps, vmWith())
		h.cloud.Alter(unlabelled)
		h.hideReads(errNotFound)
		h.mustReconcile()
		h.showReads()
		for range 4 {
			h.later(settleTime + time.Second)
			h.mustReconcile()
		}
		h.wantServers("s1")
		h.wantCondition(pcapi.ReadyCondition, "False LabelsMissing")
		h.remove()
		for range 3 {
			h.later(settleTime)
			h.mustReconcileIfExists()
		}
		h.wantServers("s1")
		h.wantCondition(pcapi.DeletingCondition, "True Blocked")
	}
}

func TestServerOfAnAnswerWithoutLabelsIsNotDeletedUnderAnUnrecordedID(t *testing.T) {
	h := newHarness(t, profiles["labels alone"], vmWith())
	h.cloud.Alter(unlabelled)
	h.hideReads(errNotFound)
	h.mustReconcile()
	h.showReads()
	h.remove()
	for range 3 {
		h.later(settleTime)
		h.mustReconcileIfExists()
	}
	h.wantServers("s1")
	h.wantCondition(pcapi.DeletingCondition, "True Blocked", "VM s1")
}

// The process is killed before the status has the check of the name.
func TestCreateOnACloudThatDropsLabelsIsNotReleasedAfterARestart(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	h.cloud.Alter(unlabelled)
	h.refuse["status"] = []error{errAPIAway}
	_, _ = h.reconcile()
	h.wantServers("s1")
	h.remove()
	h.start()
	h.connect()
	for range 3 {
		h.later(settleTime)
		h.mustReconcileIfExists()
	}
	h.wantServers("s1")
	h.wantCondition(pcapi.DeletingCondition, "True Blocked", `"web"`)
}

func TestClaimIsKeptAfterARestartOnACloudThatDropsLabels(t *testing.T) {
	for _, name := range []string{"all capabilities", "labels and names"} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, withLabels[name], vmWith())
			h.cloud.Alter(unlabelled)
			h.refuse["status"] = []error{errAPIAway}
			_, _ = h.reconcile()
			h.start()
			h.connect()
			for range 3 {
				h.mustReconcile()
				h.later(settleTime)
			}
			h.wantServers("s1")
			h.wantClaim("web")
			h.wantCondition(pcapi.ReadyCondition, "False Ambiguous")
			h.wantCondition(pcapi.CreatedCondition, "False Ambiguous")
		})
	}
}

// The create arrives after its process has ended, and the name is checked already.
func TestNameThatALostCreateTookWithoutLabelsIsAmbiguous(t *testing.T) {
	tests := map[string]struct {
		created time.Duration // of the server that has the name; 0 if the cloud does not say it
		labels  map[string]string
		hidden  bool
		want    string
	}{
		"it may be the VM's":      {time.Second, nil, false, "False Ambiguous"},
		"it is of unknown age":    {0, nil, false, "False Ambiguous"},
		"no listing shows it":     {time.Second, nil, true, "False Ambiguous"},
		"it is older than the VM": {-time.Hour, nil, false, "False Taken"},
		"it is another owner's":   {time.Second, map[string]string{inventory.UIDLabel: "another-uid", inventory.ClusterLabel: "cluster"}, false, "False Taken"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, profiles["labels and names"], vmWith())
			h.cloud.Fail(cloudfake.CreateServer, errReset, false)
			h.mustReconcile()
			h.start()
			h.connect()
			late := cloud.Server{ID: "late", Name: "web", State: cloud.StateActive, CPU: 2, Labels: tc.labels}
			if tc.created != 0 {
				late.CreatedAt = startTime.Add(tc.created)
			}
			h.cloud.AddServers(late)
			if tc.hidden {
				h.cloud.Hide("late")
			}
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			writes, creates := len(h.writes), h.cloud.Sent(cloudfake.CreateServer)
			for range 8 {
				h.later(settleTime / 4)
				h.mustReconcile()
				h.wantCondition(pcapi.ReadyCondition, tc.want, "the name is in use")
			}
			h.wantServers("late")
			h.wantCondition(pcapi.NameCheckedCondition, "False Taken")
			equal(t, "writes at rest", writes, len(h.writes))
			equal(t, "creates at rest", creates, h.cloud.Sent(cloudfake.CreateServer))
		})
	}
}

// The cloud answers the create with the server of another VM, and reads lag.
func TestServerOfAnotherOwnerInAnUnconfirmedAnswerIsNotAdopted(t *testing.T) {
	for name, labels := range map[string]map[string]string{"of another owner": {inventory.UIDLabel: "uid-b", inventory.ClusterLabel: "cluster"}, "without labels": nil} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, profiles["labels alone"], vmWith())
			h.cloud.AddServers(cloud.Server{ID: "x1", Name: "of-b", State: cloud.StateActive, CPU: 2, Labels: labels, CreatedAt: startTime.Add(time.Hour)})
			h.cloud.Hide("x1")
			h.cloud.AnswerCreateWith("x1")
			h.cloud.FailAlways(cloudfake.GetServer, errNotFound, false)
			h.mustReconcile()
			h.showReads()
			for range 4 {
				h.later(settleTime + time.Second)
				h.mustReconcile()
			}
			if id := h.vm().Status.VMID; id == "x1" {
				t.Error("the VM has the server of another owner")
			}
		})
	}
}
