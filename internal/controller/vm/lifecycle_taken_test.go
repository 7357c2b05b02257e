package vm

import (
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// harnessWithAlteredServer returns a harness with a VM whose create took effect, and whose answer was lost.
// The cloud made the server with changes.
func harnessWithAlteredServer(t *testing.T, caps cloud.Capabilities, change func(*cloud.Server)) *harness {
	t.Helper()
	h := newHarness(t, caps, vmWith())
	h.cloud.Alter(change)
	h.cloud.Fail(cloudfake.CreateServer, errReset, true)
	h.mustReconcile()
	h.wantCalls("check web", "create web")
	return h
}

func fullyQualified(s *cloud.Server) { s.Name += ".example.com" }

// cut shortens the values of labels.
func cut(s *cloud.Server) {
	labels := map[string]string{}
	for key, value := range s.Labels {
		labels[key] = value[:len(value)-1]
	}
	s.Labels = labels
}

func TestUnrecordedCreateIsNotReleasedWhileItsNameIsTakenByNoOtherServer(t *testing.T) {
	tests := []struct {
		name   string
		caps   cloud.Capabilities
		change func(*cloud.Server)
	}{
		{name: "the cloud made the name a domain name, names alone", caps: uniqueNamesOnly, change: fullyQualified},
		{name: "the cloud made the name a domain name, labels dropped", caps: withoutKeys, change: func(s *cloud.Server) { fullyQualified(s); s.Labels = nil }},
		{name: "the cloud cut the labels", caps: withoutKeys, change: cut},
		{name: "the cloud dropped the labels", caps: withoutKeys, change: unlabelled},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := harnessWithAlteredServer(t, tc.caps, tc.change)
			h.remove()
			for range 3 {
				h.later(settleTime)
				h.mustReconcile()
			}
			h.wantCondition(pcapi.DeletingCondition, "True Blocked", "perhaps with another name or other labels", "deletionPolicy to Orphan")
			h.wantServers("s1")

			h.edit(func(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan })
			h.mustReconcile()
			h.wantGone()
		})
	}
}

func TestUnrecordedCreateIsReleasedIfItsNameIsTakenByAnotherServer(t *testing.T) {
	for name, other := range map[string]cloud.Server{
		"one that another object owns": serverWith(withID("x"), func(s *cloud.Server) { s.Labels = pureKind.servers.ownerLabels(other("b")) }),
		"one that is older":            serverWith(withID("x"), unlabelled, func(s *cloud.Server) { s.CreatedAt = startTime.Add(-time.Hour) }),
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithLostAnswer(t, withoutKeys, false)
			h.cloud.AddServers(other)
			h.remove()
			for range 2 {
				h.later(settleTime)
				h.mustReconcile()
			}
			h.wantServers("x")
			h.wantGone()
		})
	}
}

func TestClaimIsNotMovedToAnotherCloudWhileItsNameIsTakenByNoOtherServer(t *testing.T) {
	h := harnessWithAlteredServer(t, withoutKeys, cut)
	moveToSecondCloud(h)
	for range 2 {
		h.later(settleTime)
		h.mustReconcile()
	}
	h.wantClaim("web")
	h.wantCondition(pcapi.ReadyCondition, "False Ambiguous", "perhaps with another name or other labels")
}

func TestRefusedCreateIsReleasedAfterARestartAlthoughAStrangerHasItsName(t *testing.T) {
	for kind, reason := range map[cloud.Kind]string{
		cloud.Quota: pcapi.QuotaExceededReason, cloud.NoHost: pcapi.UnschedulableReason, cloud.Rejected: pcapi.RejectedReason,
	} {
		t.Run(reason, func(t *testing.T) {
			h := newHarness(t, withoutKeys, vmWith())
			h.cloud.FailAlways(cloudfake.CreateServer, &cloud.Error{Kind: kind, Op: "create server", Detail: "no"}, false)
			h.mustReconcile()
			h.wantCondition(pcapi.CreatedCondition, "False "+reason)
			h.advance(time.Minute)
			h.cloud.AddServers(serverWith(withID("x"), unlabelled, func(s *cloud.Server) { s.CreatedAt = h.now }))
			h.restart()
			h.remove()
			h.mustReconcile()
			for range 2 {
				h.later(settleTime)
				h.mustReconcileIfExists()
			}
			h.wantServers("x")
			h.wantGone()
		})
	}
}

func TestLostCreateIsNotReleasedAfterARestartWhileAServerHasItsName(t *testing.T) {
	h := harnessWithAlteredServer(t, withoutKeys, unlabelled)
	h.restart()
	h.remove()
	h.mustReconcile()
	for range 2 {
		h.later(settleTime)
		h.mustReconcile()
	}
	h.wantCondition(pcapi.DeletingCondition, "True Blocked", "VM s1 has it")
	h.wantServers("s1")
}

func TestRefusedCreateIsNotTheProofThatAnEarlierOneMadeNothing(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"names alone": uniqueNamesOnly, "labels": withoutKeys} {
		for end, finish := range map[string]func(h *harness){
			"it is listed again": func(h *harness) {
				h.cloud.Show("s1")
				for range 2 {
					h.later(settleTime)
					h.mustReconcile()
				}
				h.wantCondition(pcapi.ReadyCondition, "True Running")
			},
			"the VM is deleted": func(h *harness) {
				h.remove()
				for range 2 {
					h.later(settleTime)
					h.mustReconcile()
				}
				h.wantCondition(pcapi.DeletingCondition, "True Blocked", "deletionPolicy to Orphan")
			},
		} {
			t.Run(name+", "+end, func(t *testing.T) {
				h := harnessWithLostAnswer(t, caps, true)
				h.cloud.Hide("s1")
				h.restart()
				h.cloud.FailAlways(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Quota, Op: "create server", Detail: "full"}, false)
				for range 3 {
					h.later(settleTime)
					h.mustReconcile()
				}
				h.wantClaim("web")
				h.wantCondition(pcapi.ReadyCondition, "False Ambiguous")
				finish(h)
				h.wantServers("s1")
			})
		}
	}
}
