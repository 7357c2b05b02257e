package vm

import (
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/inventory"
)

// harnessWithServer returns a harness whose Cloud lists the server s.
func harnessWithServer(t *testing.T, caps cloud.Capabilities, vm *pcapi.VM, s cloud.Server) *harness {
	t.Helper()
	h := newHarness(t, caps, vm)
	h.cloud.AddServers(s)
	h.poll()
	return h
}

func TestUpdateContainsAllDifferences(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(poweredOff), serverWith(withCores(1), withCPUUtilization(30)))
	h.mustReconcile()
	h.wantCalls("update s1")
	s := h.cloud.Server("s1")
	equal(t, "cores", 2, s.CPU)
	equal(t, "state", cloud.StateStopped, s.State)
	h.wantCondition(pcapi.ReadyCondition, "True Stopped")
	equal(t, "state", pcapi.VMStateStopped, h.vm().Status.State)
	h.mustReconcile()
	h.wantCalls()
}

func TestFailedUpdateIsReportedAndRepeated(t *testing.T) {
	tests := []struct {
		name    string
		err     *cloud.Error
		requeue time.Duration
		ready   string
	}{
		{name: "rejected: stalled", err: &cloud.Error{Kind: cloud.Rejected, Op: "update", Detail: "too big"}, requeue: 10 * time.Minute, ready: "False Rejected"},
		{name: "conflict: waiting", err: &cloud.Error{Kind: cloud.Conflict, Op: "update", Detail: "busy"}, requeue: time.Second, ready: "False CloudUnavailable"},
		{name: "unavailable: waiting", err: errRefused, requeue: time.Second, ready: "False CloudUnavailable"},
		{name: "answer lost: waiting", err: errReset, requeue: time.Second, ready: "False CloudUnavailable"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := harnessWithServer(t, everything, onRecord(), serverWith(withCores(1)))
			h.cloud.Fail(cloudfake.UpdateServer, tc.err, tc.err == errReset)
			h.wantRequeue(tc.requeue, h.mustReconcile())
			h.wantCondition(pcapi.ReadyCondition, tc.ready)
			h.wantCondition(pcapi.CreatedCondition, "True Created")
			h.later(time.Second)
			h.mustReconcile()
			equal(t, "cores", 2, h.cloud.Server("s1").CPU)
			h.wantCondition(pcapi.ReadyCondition, "True Running")
		})
	}
}

func TestDeletionEndsAfterGetReturnsNotFound(t *testing.T) {
	t.Run("server already gone: released", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(deleted), serverWith())
		h.cloud.RemoveServers("s1")
		h.mustReconcile()
		h.wantCalls("delete s1", "get s1")
		h.wantGone()
	})
	t.Run("delete returns NotFound but the server exists: deleted again", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(deleted), serverWith())
		h.cloud.Fail(cloudfake.DeleteServer, &cloud.Error{Kind: cloud.NotFound, Op: "delete"}, false)
		h.wantRequeue(time.Second, h.mustReconcile())
		h.wantCalls("delete s1", "get s1")
		h.wantCondition(pcapi.DeletingCondition, "True Requested", "VM s1")
		h.later(time.Second)
		h.mustReconcile()
		h.wantGone()
		h.wantServers()
	})
	t.Run("answer lost: deleted again", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(deleted), serverWith())
		h.cloud.Fail(cloudfake.DeleteServer, errReset, true)
		h.wantRequeue(time.Second, h.mustReconcile())
		h.wantCondition(pcapi.DeletingCondition, "True WaitingForCloud")
		h.mustReconcile()
		h.wantCalls("delete s1", "delete s1", "get s1")
		h.wantGone()
	})
	t.Run("get fails: the finalizer stays", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(deleted), serverWith())
		h.cloud.Fail(cloudfake.GetServer, errRefused, false)
		h.wantRequeue(time.Second, h.mustReconcile())
		h.wantServers()
		if _, ok := h.find(); !ok {
			t.Fatal("the finalizer was removed before the cloud confirmed that the server is gone")
		}
		h.later(time.Second)
		h.mustReconcile()
		h.wantGone()
	})
	t.Run("finalizer patch conflicts: repeated", func(t *testing.T) {
		h := harnessWithServer(t, everything, onRecord(deleted), serverWith())
		h.refuse["object"] = []error{errConflict}
		h.mustReconcile()
		h.later(time.Second)
		h.mustReconcile()
		h.wantGone()
		h.wantServers()
	})
}

func TestSlowDeletionIsReportedAfterQuietPeriod(t *testing.T) {
	h := harnessWithServer(t, without(cloud.Idempotency), onRecord(deleted), serverWith())
	h.cloud.SetSlow(true)
	h.wantRequeue(quiet, h.mustReconcile())
	h.wantCalls("delete s1")
	equal(t, "writes during the quiet period", []string(nil), h.writes)
	h.advance(quiet)
	h.wantRequeue(external.Safety, h.mustReconcile())
	h.wantCalls()
	h.wantCondition(pcapi.DeletingCondition, "True Requested", "is deleting VM s1")
	h.later(time.Second)
	h.mustReconcile()
	h.wantCalls()

	h.cloud.Finish()
	h.later(time.Second)
	h.mustReconcile()
	h.wantCalls("get s1")
	h.wantGone()
}

func TestSlowCreateIsReportedAsCreating(t *testing.T) {
	h := newHarness(t, everything, vmWith())
	h.cloud.SetSlow(true)
	h.wantRequeue(external.Safety, h.mustReconcile())
	h.wantCondition(pcapi.CreatedCondition, "False Creating", "VM s1")
	equal(t, "vmId", "s1", h.vm().Status.VMID)
	h.cloud.Finish()
	h.later(time.Second)
	h.mustReconcile()
	h.wantCalls("check web", "create web")
	h.wantCondition(pcapi.CreatedCondition, "True Created")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
}

func TestOrphanedServerLosesOwnerLabels(t *testing.T) {
	tests := []struct {
		name    string
		caps    cloud.Capabilities
		do      func(*harness)
		calls   []string
		servers []string
	}{
		{name: "server exists: labels removed, server kept", caps: everything, do: func(*harness) {}, calls: []string{"update s1"}, servers: []string{"s1"}},
		{name: "server deleted meanwhile: released", caps: everything, do: func(h *harness) { h.cloud.RemoveServers("s1") }, calls: []string{"update s1"}, servers: nil},
		{name: "cloud without labels: server unchanged", caps: uniqueNamesOnly, do: func(*harness) {}, calls: nil, servers: []string{"s1"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := harnessWithServer(t, tc.caps, onRecord(orphaning), serverWith(func(s *cloud.Server) { s.Labels = map[string]string{"team": "a"} }))
			if tc.caps.Has(cloud.Labels) {
				h.cloud.AddServers(serverWith(func(s *cloud.Server) {
					s.Labels = map[string]string{"team": "a"}
					maps.Copy(s.Labels, ownLabels)
				}))
				h.poll()
			}
			h.mustReconcile()
			h.remove()
			tc.do(h)
			h.mustReconcile()
			h.wantGone()
			h.wantCalls(tc.calls...)
			h.wantServers(tc.servers...)
			for _, s := range h.cloud.Servers() {
				equal(t, "labels", map[string]string{"team": "a"}, s.Labels)
			}
		})
	}
}

func TestOrphaningWaitsUntilLabelsAreRemoved(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(orphaning, deleted), serverWith())
	h.cloud.Fail(cloudfake.UpdateServer, errRefused, false)
	h.wantRequeue(time.Second, h.mustReconcile())
	h.wantCondition(pcapi.DeletingCondition, "True WaitingForCloud")
	h.mustReconcile()
	h.wantGone()
	h.wantServers("s1")
}

func TestImportIsRecordedAfterLabeling(t *testing.T) {
	h := harnessWithServer(t, everything, vmWith(importing), serverWith(unlabelled))
	h.cloud.Fail(cloudfake.UpdateServer, errReset, false)
	h.wantRequeue(time.Second, h.mustReconcile())
	equal(t, "vmId before the labels are set", "", h.vm().Status.VMID)
	h.mustReconcile()
	h.wantCalls("get s1", "update s1", "get s1", "update s1")
	equal(t, "vmId", "s1", h.vm().Status.VMID)
	equal(t, "labels", ownLabels, h.cloud.Server("s1").Labels)
	h.wantCondition(pcapi.CreatedCondition, "True Imported")
	h.wantClaim("web")
	h.mustReconcile()
	h.wantCalls()

	h.remove()
	h.mustReconcile()
	h.wantGone()
	h.wantServers()
}

// TestImportReadsAServerThatTheListingMayNotKnow: somebody deleted the server since the last listing, the cloud
// may have given its id to another one, or another VM may have taken it over.
func TestImportReadsAServerThatTheListingMayNotKnow(t *testing.T) {
	of := func(uid, cluster string) cloud.Server {
		return serverWith(func(s *cloud.Server) {
			s.Labels = map[string]string{inventory.UIDLabel: uid, inventory.ClusterLabel: cluster}
		})
	}
	next := map[string][]cloud.Server{
		"deleted": nil, "its id given to another server": {serverWith(unlabelled, withName("others"))}, "its name in other case": {serverWith(unlabelled, withName("WEB"))},
		"a server of the same name, created later": {serverWith(unlabelled, func(s *cloud.Server) { s.CreatedAt = startTime.Add(2 * time.Hour) })},
		"taken over by another VM":                 {of("uid-b", "cluster")}, "taken over by another cluster": {of("uid-b", "another")},
	}
	for name, caps := range profiles {
		for policy, edits := range map[string][]func(*pcapi.VM){"Managed": {importing}, "ObserveOnly": {importing, observing}} {
			for what, servers := range next {
				for age, created := range map[string]time.Time{"": startTime, ", a new VM": startTime.Add(time.Hour)} {
					if !caps.Has(cloud.Labels) && strings.HasPrefix(what, "taken over") {
						continue
					}
					t.Run(name+", "+policy+", "+what+age, func(t *testing.T) {
						vm := vmWith(edits...)
						vm.CreationTimestamp = metav1.NewTime(created)
						h := harnessWithServer(t, caps, vm, serverWith(unlabelled, func(s *cloud.Server) { s.CreatedAt = startTime }))
						h.cloud.RemoveServers("s1")
						h.cloud.AddServers(servers...)
						before := h.cloud.Servers()
						h.mustReconcile()
						equal(t, "vmId", "", h.vm().Status.VMID)
						equal(t, "servers", before, h.cloud.Servers())
					})
				}
			}
			for what, failure := range map[string]error{"the read fails": errReset, "the cloud cannot be reached": errRefused, "the read is throttled": errThrottled} {
				t.Run(name+", "+policy+", "+what, func(t *testing.T) {
					h := harnessWithServer(t, caps, vmWith(edits...), serverWith(unlabelled))
					h.cloud.FailAlways(cloudfake.GetServer, failure, false)
					_, _ = h.reconcile()
					equal(t, "vmId", "", h.vm().Status.VMID)
					h.cloud.Heal(cloudfake.GetServer)
					h.later(time.Hour)
					h.mustReconcile()
					equal(t, "vmId once it is read", "s1", h.vm().Status.VMID)
				})
			}
		}
	}
}

func TestServerThatIsManagedFromNowOnIsReadBeforeItIsLabelled(t *testing.T) {
	h := harnessWithServer(t, everything, vmWith(importing, observing), serverWith(unlabelled))
	h.mustReconcile()
	h.later(time.Hour)
	h.mustReconcile()
	h.cloud.RemoveServers("s1")
	h.cloud.AddServers(serverWith(unlabelled, withName("others")))
	h.edit(func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyManaged })
	for range 3 {
		h.mustReconcile()
		h.later(settleTime)
	}
	equal(t, "labels of the other server", 0, len(h.cloud.Server("s1").Labels))
}

func TestObserveOnlyVMIsReportedAndNotChanged(t *testing.T) {
	h := harnessWithServer(t, everything, vmWith(importing, observing), serverWith(unlabelled, withCores(9), withCPUUtilization(30)))
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	equal(t, "cpuUtilization", int32(30), *h.vm().Status.CPUUtilization)
	h.wantClaim("")
	h.edit(func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(8) })
	h.mustReconcile()
	h.wantCalls("get s1")

	h.edit(func(vm *pcapi.VM) { vm.Spec.ManagementPolicy = pcapi.ManagementPolicyManaged })
	h.mustReconcile()
	h.mustReconcile()
	h.wantCalls("get s1", "update s1", "update s1")
	h.wantClaim("web")
	equal(t, "labels once it is managed", ownLabels, h.cloud.Server("s1").Labels)
	equal(t, "cores once it is managed", 8, h.cloud.Server("s1").CPU)
}

func TestImportOfServerOfAnotherVMIsAmbiguous(t *testing.T) {
	older := other("b", importing, func(vm *pcapi.VM) { vm.CreationTimestamp = metav1.NewTime(startTime.Add(-time.Hour)) })
	h := newHarness(t, everything, vmWith(importing), older)
	h.cloud.AddServers(serverWith(unlabelled))
	h.poll()
	h.wantRequeue(time.Minute, h.mustReconcile())
	h.wantCalls()
	h.wantCondition(pcapi.CreatedCondition, "False Ambiguous", "another VM object")
	h.wantClaim("")
}

func TestAllowedNamespacesRestrictsCreates(t *testing.T) {
	tests := []struct {
		name    string
		team    string
		allowed bool
	}{
		{name: "namespace selected: created", team: "a", allowed: true},
		{name: "namespace not selected: blocked", team: "b"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": tc.team}}}
			h := newHarness(t, everything, vmWith(), ns)
			h.editCloud(func(c *pcapi.Cloud) {
				c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
			})
			result := h.mustReconcile()
			if tc.allowed {
				h.wantServers("s1")
				return
			}
			h.wantRequeue(0, result)
			h.wantCalls()
			h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable", `Cloud "default" does not exist, or namespace "ns" may not use it`)
		})
	}
}

func TestMissingCloudStallsVM(t *testing.T) {
	h := newHarness(t, everything, vmWith(func(vm *pcapi.VM) { vm.Spec.CloudRef = &pcapi.CloudReference{Name: "absent"} }))
	equal(t, "result", ctrl.Result{}, h.mustReconcile())
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable", `Cloud "absent" does not exist, or namespace "ns" may not use it`)
	h.remove()
	h.wantGone()
}

func TestDeletionIsConfirmedEverySecond(t *testing.T) {
	h := newHarness(t, everything, onRecord())
	h.cloud.AddServers(serverWith())
	h.poll()
	h.remove()
	// The cloud answers that there is no such server, and keeps it.
	h.cloud.FailAlways(cloudfake.DeleteServer, &cloud.Error{Kind: cloud.NotFound, Op: "delete server"}, false)
	for range 8 {
		h.kind.Backoff.When("uid-a")
	}
	for range 4 {
		h.wantRequeue(time.Second, h.mustReconcile())
		h.later(time.Second)
	}
}

func TestDeletionKeepsAdoptedAsTheReasonOfCreated(t *testing.T) {
	h := newHarness(t, everything, onRecord(func(vm *pcapi.VM) { vm.Status = pcapi.VMStatus{} }))
	h.cloud.AddServers(serverWith())
	h.remove()
	h.later(time.Hour)
	// The cloud answers that there is no such server, and keeps it.
	h.cloud.FailAlways(cloudfake.DeleteServer, &cloud.Error{Kind: cloud.NotFound, Op: "delete server"}, false)
	h.mustReconcile()
	h.later(time.Second)
	h.mustReconcile()
	h.wantCondition(pcapi.CreatedCondition, "True Adopted")
}
