package vm

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/external"
)

// settled is a world with the VM's server s1 listed.
func settled(t *testing.T, caps cloud.Capabilities, vm *v1alpha1.VM, s cloud.Server) *world {
	t.Helper()
	w := newWorld(t, caps, vm)
	w.cloud.AddServers(s)
	w.poll()
	return w
}

func TestOneChangeCarriesAllThatDiffers(t *testing.T) {
	w := settled(t, everything, onRecord(poweredOff), serverWith(cores(1), busy(30)))
	w.mustPass()
	w.wantCalls("update s1")
	s := w.cloud.Server("s1")
	equal(t, "cores", 2, s.CPU)
	equal(t, "state", cloud.StateStopped, s.State)
	w.wantSays(v1alpha1.ReadyCondition, "True Stopped")
	equal(t, "state", v1alpha1.VMStateStopped, w.vm().Status.State)
	w.mustPass()
	w.wantCalls()
}

func TestAChangeThatFails(t *testing.T) {
	tests := []struct {
		name  string
		err   *cloud.Error
		again time.Duration
		ready string
	}{
		{name: "the cloud refuses it for good", err: &cloud.Error{Kind: cloud.Rejected, Op: "update", Detail: "too big"}, again: 10 * time.Minute, ready: "False Rejected"},
		{name: "the server is not in a state for it", err: &cloud.Error{Kind: cloud.Conflict, Op: "update", Detail: "busy"}, again: time.Second, ready: "False CloudUnavailable"},
		{name: "the cloud is away", err: errRefused, again: time.Second, ready: "False CloudUnavailable"},
		{name: "the answer was lost", err: errReset, again: time.Second, ready: "False CloudUnavailable"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := settled(t, everything, onRecord(), serverWith(cores(1)))
			w.cloud.Fail(cloudfake.UpdateServer, tc.err, tc.err == errReset)
			w.wantAgain(tc.again, w.mustPass())
			w.wantSays(v1alpha1.ReadyCondition, tc.ready)
			w.wantSays(v1alpha1.CreatedCondition, "True Created")
			w.later(time.Second)
			w.mustPass()
			equal(t, "cores", 2, w.cloud.Server("s1").CPU)
			w.wantSays(v1alpha1.ReadyCondition, "True Running")
		})
	}
}

func TestADeletionEndsWithTheCloudsOwnWord(t *testing.T) {
	t.Run("the cloud says that there is nothing to delete", func(t *testing.T) {
		w := settled(t, everything, onRecord(deleted), serverWith())
		w.cloud.RemoveServers("s1")
		w.mustPass()
		w.wantCalls("delete s1", "get s1")
		w.wantGone()
	})
	t.Run("the cloud says that it is deleted, and it is not", func(t *testing.T) {
		w := settled(t, everything, onRecord(deleted), serverWith())
		w.cloud.Fail(cloudfake.DeleteServer, &cloud.Error{Kind: cloud.NotFound, Op: "delete"}, false)
		w.wantAgain(time.Second, w.mustPass())
		w.wantCalls("delete s1", "get s1")
		w.wantSays(v1alpha1.DeletingCondition, "True Requested", "VM s1")
		w.later(time.Second)
		w.mustPass()
		w.wantGone()
		w.wantServers()
	})
	t.Run("the answer was lost", func(t *testing.T) {
		w := settled(t, everything, onRecord(deleted), serverWith())
		w.cloud.Fail(cloudfake.DeleteServer, errReset, true)
		w.wantAgain(time.Second, w.mustPass())
		w.wantSays(v1alpha1.DeletingCondition, "True WaitingForCloud")
		w.mustPass()
		w.wantCalls("delete s1", "delete s1", "get s1")
		w.wantGone()
	})
	t.Run("its absence cannot be confirmed", func(t *testing.T) {
		w := settled(t, everything, onRecord(deleted), serverWith())
		w.cloud.Fail(cloudfake.GetServer, errRefused, false)
		w.wantAgain(time.Second, w.mustPass())
		w.wantServers()
		if _, ok := w.find(); !ok {
			t.Fatal("the VM went before the cloud said that its server is gone")
		}
		w.later(time.Second)
		w.mustPass()
		w.wantGone()
	})
	t.Run("the finalizer could not be taken off", func(t *testing.T) {
		w := settled(t, everything, onRecord(deleted), serverWith())
		w.refuse["object"] = []error{errConflict}
		w.mustPass()
		w.later(time.Second)
		w.mustPass()
		w.wantGone()
		w.wantServers()
	})
}

func TestACloudThatTakesItsTimeOverADeletion(t *testing.T) {
	w := settled(t, without(cloud.Idempotency), onRecord(deleted), serverWith())
	w.cloud.SetSlow(true)
	w.wantAgain(quiet, w.mustPass())
	w.wantCalls("delete s1")
	equal(t, "writes before anybody would read of it", []string(nil), w.writes)
	w.advance(quiet)
	w.wantAgain(external.Safety, w.mustPass())
	w.wantCalls()
	w.wantSays(v1alpha1.DeletingCondition, "True Requested", "is deleting VM s1")
	w.later(time.Second)
	w.mustPass()
	w.wantCalls()

	w.cloud.Finish()
	w.later(time.Second)
	w.mustPass()
	w.wantCalls("get s1")
	w.wantGone()
}

func TestACloudThatTakesItsTimeOverACreate(t *testing.T) {
	w := newWorld(t, everything, vmWith())
	w.cloud.SetSlow(true)
	w.wantAgain(external.Safety, w.mustPass())
	w.wantSays(v1alpha1.CreatedCondition, "False Creating", "VM s1")
	equal(t, "vmId", "s1", w.vm().Status.VMID)
	w.cloud.Finish()
	w.later(time.Second)
	w.mustPass()
	w.wantCalls("check web", "create web")
	w.wantSays(v1alpha1.CreatedCondition, "True Created")
	w.wantSays(v1alpha1.ReadyCondition, "True Running")
}

func TestAnOrphanLosesItsLabels(t *testing.T) {
	tests := []struct {
		name  string
		caps  cloud.Capabilities
		do    func(*world)
		calls []string
		there []string
	}{
		{name: "and stays", caps: everything, do: func(*world) {}, calls: []string{"update s1"}, there: []string{"s1"}},
		{name: "unless somebody deleted it meanwhile", caps: everything, do: func(w *world) { w.cloud.RemoveServers("s1") }, calls: []string{"update s1"}, there: nil},
		{name: "where the cloud has labels", caps: named, do: func(*world) {}, calls: nil, there: []string{"s1"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			w := settled(t, tc.caps, onRecord(orphaning), serverWith(func(s *cloud.Server) { s.Labels = map[string]string{"team": "a"} }))
			if tc.caps.Has(cloud.Labels) {
				w.cloud.AddServers(serverWith(func(s *cloud.Server) {
					s.Labels = map[string]string{"team": "a"}
					maps.Copy(s.Labels, ours)
				}))
				w.poll()
			}
			w.mustPass()
			w.remove()
			tc.do(w)
			w.mustPass()
			w.wantGone()
			w.wantCalls(tc.calls...)
			w.wantServers(tc.there...)
			for _, s := range w.cloud.Servers() {
				equal(t, "labels", map[string]string{"team": "a"}, s.Labels)
			}
		})
	}
}

func TestAnOrphanWaitsForACloudThatCannotTakeItsLabelsOff(t *testing.T) {
	w := settled(t, everything, onRecord(orphaning, deleted), serverWith())
	w.cloud.Fail(cloudfake.UpdateServer, errRefused, false)
	w.wantAgain(time.Second, w.mustPass())
	w.wantSays(v1alpha1.DeletingCondition, "True WaitingForCloud")
	w.mustPass()
	w.wantGone()
	w.wantServers("s1")
}

func TestAnImportIsTakenWhenItsLabelsAreOn(t *testing.T) {
	w := settled(t, everything, vmWith(importing), serverWith(bare))
	w.cloud.Fail(cloudfake.UpdateServer, errReset, false)
	w.wantAgain(time.Second, w.mustPass())
	equal(t, "vmId before the cloud took the labels", "", w.vm().Status.VMID)
	w.mustPass()
	w.wantCalls("update s1", "update s1")
	equal(t, "vmId", "s1", w.vm().Status.VMID)
	equal(t, "labels", ours, w.cloud.Server("s1").Labels)
	w.wantSays(v1alpha1.CreatedCondition, "True Imported")
	w.wantClaim("web")
	w.mustPass()
	w.wantCalls()

	w.remove()
	w.mustPass()
	w.wantGone()
	w.wantServers()
}

func TestAnObservedVMIsShownAndLeftAlone(t *testing.T) {
	w := settled(t, everything, vmWith(importing, observing), serverWith(bare, cores(9), busy(30)))
	w.mustPass()
	w.wantSays(v1alpha1.ReadyCondition, "True Running")
	equal(t, "cpuUtilization", int32(30), *w.vm().Status.CPUUtilization)
	w.wantClaim("")
	w.edit(func(vm *v1alpha1.VM) { *vm.Spec.CPU = 8 })
	w.mustPass()
	w.wantCalls()

	w.edit(func(vm *v1alpha1.VM) { vm.Spec.ManagementPolicy = v1alpha1.ManagementPolicyManaged })
	w.mustPass()
	w.mustPass()
	w.wantCalls("update s1", "update s1")
	w.wantClaim("web")
	equal(t, "labels once it is managed", ours, w.cloud.Server("s1").Labels)
	equal(t, "cores once it is managed", 8, w.cloud.Server("s1").CPU)
}

func TestTwoObjectsThatImportOneServer(t *testing.T) {
	older := other("b", importing, func(vm *v1alpha1.VM) { vm.CreationTimestamp = metav1.NewTime(dawn.Add(-time.Hour)) })
	w := newWorld(t, everything, vmWith(importing), older)
	w.cloud.AddServers(serverWith(bare))
	w.poll()
	w.wantAgain(time.Minute, w.mustPass())
	w.wantCalls()
	w.wantSays(v1alpha1.CreatedCondition, "False Ambiguous", "another VM object")
	w.wantClaim("")
}

func TestACloudMayBeClosedToANamespace(t *testing.T) {
	for team, open := range map[string]bool{"a": true, "b": false} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"team": team}}}
		w := newWorld(t, everything, vmWith(), ns)
		var c v1alpha1.Cloud
		if err := w.client.Get(t.Context(), ctrlKey("default"), &c); err != nil {
			t.Fatalf("Get: %v", err)
		}
		c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
		if err := w.client.Update(t.Context(), &c); err != nil {
			t.Fatalf("Update: %v", err)
		}
		result := w.mustPass()
		if open {
			w.wantServers("s1")
			continue
		}
		w.wantAgain(time.Minute, result)
		w.wantCalls()
		w.wantSays(v1alpha1.ReadyCondition, "False CloudUnavailable", `namespace "ns" may not use Cloud "default"`)
	}
}

func TestACloudThatDoesNotExistIsWaitedFor(t *testing.T) {
	w := newWorld(t, everything, vmWith(func(vm *v1alpha1.VM) { vm.Spec.CloudRef = &v1alpha1.CloudReference{Name: "absent"} }))
	equal(t, "result", ctrl.Result{}, w.mustPass())
	w.wantCalls()
	w.wantSays(v1alpha1.ReadyCondition, "False CloudUnavailable", `Cloud "absent" does not exist: create it`)
	w.remove()
	w.wantGone()
}
