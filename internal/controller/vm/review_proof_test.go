package vm

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// A listing that began before any DELETE was answered proves nothing, also if it lacks
// the server, as one that is capped does.
func TestListingBegunBeforeDeleteDoesNotProveThatServerIsGone(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(), serverWith())
	h.mustReconcile()
	h.cloud.Hide("s1")
	h.later(settleTime + time.Minute)
	h.mustReconcile() // GET returns it
	h.later(pollInterval)
	h.remove()
	h.cloud.FailAlways(cloudfake.DeleteServer, errUnproven, false) // a gateway answers
	h.cloud.FailAlways(cloudfake.GetServer, errUnproven, false)
	h.advance(time.Second)
	h.mustReconcile()
	if _, ok := h.find(); !ok {
		t.Fatal("the object was released by a listing that began before the DELETE, and its server exists")
	}
	h.showReads("s1")
	h.cloud.Heal(cloudfake.DeleteServer)
	for range 3 {
		h.later(time.Minute)
		h.mustReconcile()
	}
	h.wantServers()
	h.wantGone()
}

// Two Cloud objects with one endpoint are one cloud: a server that a VM of the one has
// is not imported through the other, and a name that it has is taken.
func TestSecondCloudObjectDoesNotLeadToServersOfTheFirst(t *testing.T) {
	second := &pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "second"}, Spec: pcapi.CloudSpec{Imports: pcapi.ImportPolicyAny}}
	owner := other("b", recorded, func(vm *pcapi.VM) {
		vm.Namespace, vm.Status.Cloud, vm.Spec.CloudRef = "db", "second", &pcapi.CloudReference{Name: "second"}
		vm.Finalizers = []string{pcapi.VMFinalizer}
	})
	for name, change := range map[string]func(*pcapi.VM){"import": importing, "create": func(*pcapi.VM) {}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, uniqueNamesOnly, vmWith(change), owner.DeepCopy(), second.DeepCopy())
			h.cloud.AddServers(serverWith(unlabelled))
			for range 3 {
				h.later(time.Minute)
				h.mustReconcile()
			}
			equal(t, "vmId", "", h.vm().Status.VMID)
			if got, message := h.condition(pcapi.StalledCondition); got != "True Ambiguous" && got != "True Taken" {
				t.Errorf("Stalled=%s (%s)", got, message)
			}
			h.remove()
			for range 3 {
				h.later(time.Minute)
				h.mustReconcile()
			}
			h.wantServers("s1")
		})
	}
}

// A server that does not run has no utilization that an autoscaler could count.
func TestServerThatDoesNotRunHasNoUtilization(t *testing.T) {
	for _, state := range []cloud.State{cloud.StateStopped, cloud.StateError, cloud.StateBuilding, cloud.StateDeleting, cloud.StateUnknown} {
		for name, caps := range map[string]cloud.Capabilities{"listed": everything, "read one by one": without(cloud.BulkStatus)} {
			t.Run(string(state)+" "+name, func(t *testing.T) {
				h := harnessWithServer(t, caps, onRecord(poweredOff), serverWith(withCPUUtilization(90)))
				h.cloud.Ignore(cloudfake.UpdateServer)
				h.mustReconcile()
				equal(t, "utilization while it runs", new(int32(90)), h.vm().Status.CPUUtilization)
				h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.State = state })
				h.later(pollInterval)
				h.mustReconcile()
				equal(t, "utilization", (*int32)(nil), h.vm().Status.CPUUtilization)
			})
		}
	}
}
