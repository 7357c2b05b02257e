package vm

import (
	"maps"
	"testing"
	"time"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

func TestDuplicateServerIsDeleted(t *testing.T) {
	labelled := without(cloud.Idempotency, cloud.UniqueNames)
	h := harnessWithLostAnswer(t, labelled, true)
	h.cloud.AddServers(serverWith(withID("s2"), func(s *cloud.Server) { s.CreatedAt = h.now.Add(time.Second) }))
	h.cloud.AddServers(serverWith(withID("x"), func(s *cloud.Server) { s.Labels = other("b").Labels }))
	h.later(time.Second)
	h.wantRequeue(time.Second, h.mustReconcile())
	h.wantCalls("get s2", "delete s2")
	equal(t, "vmId: the oldest server", "s1", h.vm().Status.VMID)
	h.later(time.Second)
	h.mustReconcile()
	h.wantCalls()
	h.wantServers("s1", "x")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestServerBesideOneThatIsGoneIsDeletedWithVM(t *testing.T) {
	for name, tc := range map[string]struct {
		vm     *pcapi.VM
		second cloud.Server
		want   []string
	}{
		"its labels are those of the VM": {onRecord(), serverWith(withID("s2")), nil},
		"another cluster has labelled it": {onRecord(), serverWith(withID("s2"), func(s *cloud.Server) {
			s.Labels = maps.Clone(s.Labels)
			s.Labels[inventory.ClusterLabel] = "x"
		}), []string{"s2"}},
		"the VM keeps its server":         {onRecord(orphaning), serverWith(withID("s2")), []string{"s2"}},
		"the VM is protected: it is kept": {onRecord(protected), serverWith(withID("s2")), []string{"s2"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, everything, tc.vm, tc.second)
			h.later(settleTime + time.Minute)
			h.mustReconcile()
			equal(t, "state", pcapi.VMStateLost, h.vm().Status.State)
			h.remove()
			for range 3 {
				h.later(time.Second)
				if _, ok := h.find(); ok {
					h.mustReconcile()
				}
			}
			h.wantServers(tc.want...)
			if pcapi.Protected(tc.vm) {
				h.wantCondition(pcapi.ReadyCondition, "False Blocked", "deletion protection is on, so VM s2 is kept")
				h.edit(func(vm *pcapi.VM) { delete(vm.Annotations, pcapi.DeletionProtectionAnnotation) })
				h.mustReconcile()
				h.later(time.Second)
				h.mustReconcile()
				h.wantServers()
			}
			h.wantGone()
		})
	}
}

// harnessWithSecondServer returns a harness with a deleted VM whose recorded server is gone, and a second
// one with its labels.
func harnessWithSecondServer(t *testing.T, caps cloud.Capabilities) *harness {
	t.Helper()
	h := harnessWithServer(t, caps, onRecord(), serverWith(withID("s2")))
	h.later(settleTime + time.Minute)
	h.mustReconcile()
	h.remove()
	h.cloud.TakeCalls()
	return h
}

func TestDuplicateThatIsGoneIsNotDeletedAgain(t *testing.T) {
	h := harnessWithSecondServer(t, everything)
	h.cloud.RemoveServers("s2")
	for range 10 {
		h.advance(time.Second)
		h.mustReconcile()
	}
	if n := h.cloud.Sent(cloudfake.DeleteServer); n != 0 {
		t.Errorf("%d deletions of a server that a GET does not find", n)
	}
	h.cloud.AddServers(cloud.Server{ID: "s2", Name: "of-others", State: cloud.StateActive})
	h.advance(time.Minute)
	h.mustReconcile()
	h.later(time.Minute)
	h.mustReconcile()
	h.wantGone()
	h.wantServers("s2")
}

func TestVMStaysUntilItsSecondServerIsGone(t *testing.T) {
	for name, slow := range map[string]func(*cloudfake.Cloud){
		"slow deletions":    func(c *cloudfake.Cloud) { c.SetSlow(true) },
		"operations":        func(c *cloudfake.Cloud) { c.SetOperating(true) },
		"a gateway answers": func(c *cloudfake.Cloud) { c.FailAlways(cloudfake.DeleteServer, errUnproven, false) },
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithSecondServer(t, operating)
			slow(h.cloud)
			for range 120 {
				h.later(time.Second)
				h.mustReconcile()
				if _, ok := h.find(); !ok {
					t.Fatal("the VM is released while its second server exists")
				}
			}
			h.wantCondition(pcapi.ReadyCondition, "False Progressing", "VM s2 is deleted before this VM is removed")
			h.cloud.RemoveServers("s2")
			h.later(time.Second)
			h.mustReconcile()
			h.wantGone()
		})
	}
}

func TestMissingDuplicateIsIgnored(t *testing.T) {
	h := newHarness(t, everything, onRecord())
	h.cloud.AddServers(serverWith())
	h.cloud.AddServers(serverWith(withID("s2")))
	h.poll()
	h.cloud.RemoveServers("s2")
	h.mustReconcile()
	h.wantCalls("get s2")
	h.later(time.Second)
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}
