package vm

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

// owned gives the server the owner labels of the VM.
func owned(s *cloud.Server) { s.Labels = maps.Clone(ownLabels) }

// A cloud that accepts the PATCH of labels and does not apply it must not lead to a
// release: the server would be an orphan, and orphanPolicy Delete would delete it.
func TestReleaseWaitsUntilAcceptedUnlabelIsApplied(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(orphaning), serverWith(owned))
	h.mustReconcile()
	h.cloud.Ignore(cloudfake.UpdateServer)
	h.remove()
	h.mustReconcile()
	if _, ok := h.find(); !ok {
		t.Fatalf("the object was released, and its server still has the labels %v", h.cloud.Server("s1").Labels)
	}
	h.cloud.Heal(cloudfake.UpdateServer)
	h.later(time.Minute)
	h.mustReconcile()
	h.wantGone()
	h.wantServers("s1")
}

// OpenStack removes one label after the other, that of the cluster before that of the UID, so
// that a release may end between them.
func TestReleaseThatEndedBetweenLabelsIsCompleted(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(orphaning), serverWith(owned))
	h.mustReconcile()
	h.remove()
	h.cloud.AddServers(serverWith(owned, func(s *cloud.Server) {
		delete(s.Labels, inventory.ClusterLabel)
		s.Labels["env"], s.Labels[inventory.TagsLabel] = "prod", "env"
	}))
	h.poll()
	h.cloud.Ignore(cloudfake.UpdateServer)
	h.mustReconcile()
	if _, ok := h.find(); !ok {
		t.Fatalf("the object was released, and its server still has the labels %v", h.cloud.Server("s1").Labels)
	}
	h.cloud.Heal(cloudfake.UpdateServer)
	h.later(time.Minute)
	h.mustReconcile()
	h.wantGone()
	equal(t, "labels", map[string]string{"env": "prod"}, h.cloud.Server("s1").Labels)
}

// A PATCH of the labels that is refused with 404 soon after the create must not lead to
// a release: reads may lag, and the server keeps the labels.
func TestReleaseWaitsWhileUnlabelOfYoungServerIsNotFound(t *testing.T) {
	h := newHarness(t, everything, vmWith(orphaning))
	h.mustReconcile()
	h.cloud.FailAlways(cloudfake.UpdateServer, errNotFound, false)
	h.remove()
	h.mustReconcile()
	if _, ok := h.find(); !ok {
		t.Fatalf("the object was released, and its server still has the labels %v", h.cloud.Servers()[0].Labels)
	}
	h.cloud.Heal(cloudfake.UpdateServer)
	h.later(time.Minute)
	h.mustReconcile()
	h.wantGone()
	equal(t, "labels", 0, len(h.cloud.Servers()[0].Labels))
}

// An import whose labels the cloud accepted and did not apply is not in sync.
func TestImportIsNotReadyUntilLabelsAreApplied(t *testing.T) {
	h := harnessWithServer(t, everything, vmWith(func(vm *pcapi.VM) { vm.Spec.Import = &pcapi.VMImport{VMID: "s1"} }), serverWith(func(s *cloud.Server) { s.Labels = nil }))
	h.cloud.Ignore(cloudfake.UpdateServer)
	for range 3 {
		h.later(time.Minute)
		h.mustReconcile()
	}
	if got, _ := h.condition(pcapi.ReadyCondition); got == "True Running" {
		t.Errorf("Ready=%s, and the server has the labels %v", got, h.cloud.Server("s1").Labels)
	}
}

// A server that is being deleted is not that of the VM's create.
func TestServerThatIsBeingDeletedIsNotAdoptedByName(t *testing.T) {
	h := harnessWithLostAnswer(t, uniqueNamesOnly, false)
	h.cloud.AddServers(cloud.Server{ID: "dying", Name: "web", State: cloud.StateDeleting})
	h.later(time.Second)
	h.mustReconcile()
	if id := h.vm().Status.VMID; id == "dying" {
		t.Error("the VM adopted a server that is being deleted")
	}
}

// That a Cloud is away does not answer what became of an ambiguous create.
func TestAmbiguousStaysWhileCloudIsUnavailable(t *testing.T) {
	h := harnessWithLostAnswer(t, namesNotExclusive, false)
	h.cloud.AddServers(cloud.Server{ID: "x", Name: "web", State: cloud.StateActive})
	h.later(settleTime + time.Second)
	h.mustReconcile()
	h.later(settleTime)
	h.mustReconcile()
	h.wantCondition(pcapi.CreatedCondition, "False Ambiguous")
	h.start()
	h.inv.MarkUnavailable("the cloud does not answer")
	h.advance(time.Minute)
	h.mustReconcile()
	if got, message := h.condition(pcapi.CreatedCondition); got != "False Ambiguous" && got != "False OutcomeUnknown" {
		t.Errorf("Created=%s (%s) while the cloud is unavailable", got, message)
	}
}

// The answers to the PATCH show the change, and the listing does not: the VM is not Ready
// between two listings either.
func TestChangeThatOnlyAnswersShowIsNotReadyBetweenListings(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(), serverWith(withCores(1)))
	revert := func() { h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.CPU = 1 }) }
	for range 3 {
		h.later(pollInterval)
		h.mustReconcile()
		revert()
	}
	h.wantCondition(pcapi.ReadyCondition, "False Progressing", "does not show it")
	h.advance(5 * time.Second) // the requeue, before the next listing
	h.mustReconcile()
	if got, message := h.condition(pcapi.ReadyCondition); got == "True Running" {
		t.Errorf("Ready=%s (%s), and no listing has shown the change", got, message)
	}
}

// The cloud writes sizes in a form that cannot be read, such as "4GB". They count as
// absent, which is no difference from the spec.
func TestSizeThatCannotBeReadIsNoDifference(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"with resize": everything, "without": without(cloud.Resize)} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith(func(vm *pcapi.VM) { vm.Spec.Memory = pcapi.GiB(4) }))
			for range 4 {
				h.mustReconcile()
				h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.CPU, s.MemoryMiB = 0, 0 })
				h.later(pollInterval)
			}
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			if n := h.cloud.Sent(cloudfake.UpdateServer); n > 0 {
				t.Errorf("%d changes were sent", n)
			}
		})
	}
}

// A utilization that the cloud does not report any more is not kept for ever: it feeds
// autoscalers.
func TestUtilizationThatIsNotReportedAnyMoreIsDropped(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"listed": everything, "read one by one": without(cloud.BulkStatus)} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, caps, onRecord(), serverWith(withCPUUtilization(90)))
			h.mustReconcile()
			equal(t, "utilization", new(int32(90)), h.vm().Status.CPUUtilization)
			if caps.Has(cloud.BulkStatus) {
				h.cloud.SetCapabilities(without(cloud.BulkStatus)) // the listing has no cpuUtilization from now on
			}
			h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.CPUUtilization = nil })
			h.cloud.FailAlways(cloudfake.ServerStatus, &cloud.Error{Kind: cloud.Unreadable, Op: "get status"}, false)
			for range 20 {
				h.later(pollInterval)
				h.mustReconcile()
			}
			if kept := h.vm().Status.CPUUtilization; kept != nil {
				t.Errorf("utilization %d after ten minutes without any", *kept)
			}
		})
	}
}

// The answer to a first create names a server that existed before: it is not used, also
// on a cloud that has keys.
func TestAnswerWithServerThatExistedBeforeIsNotUsedOnCloudWithKeys(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"a key alone": without(cloud.Labels, cloud.UniqueNames), "a key and names": without(cloud.Labels)} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith())
			h.cloud.AddServers(cloud.Server{ID: "x", Name: "WEB", State: cloud.StateActive})
			h.later(time.Minute)
			h.advance(time.Second)
			h.cloud.AnswerCreateWith("x")
			for range 3 { // each create is answered so
				h.mustReconcile()
				if id := h.vm().Status.VMID; id == "x" {
					t.Fatal("the VM took over a server that existed before its create")
				}
				h.later(time.Minute)
			}
			h.cloud.AnswerCreateWith("")
			h.remove()
			for range 4 {
				h.later(settleTime)
				h.mustReconcile()
			}
			if !h.cloud.HasServer("x") {
				t.Error("the server of somebody else was deleted")
			}
		})
	}
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

// A cloud without codes refuses the repeated create of an edited spec. The server that
// exists may be that of the first create.
func TestRefusalWithoutCodeOfARepeatedCreateIsAmbiguous(t *testing.T) {
	h := harnessWithLostAnswer(t, without(cloud.Labels, cloud.UniqueNames), true)
	h.edit(func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(4) })
	h.cloud.FailAlways(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Rejected, Op: "create server", Detail: "the key was used with another body"}, false)
	for range 3 {
		h.later(settleTime)
		h.mustReconcile()
	}
	h.wantClaim("web")
	h.wantCondition(pcapi.ReadyCondition, "False Ambiguous", "the key was used with another body", "set the spec back")
}

// Two VMs create one name at a time on a cloud that normalizes names: the one that is
// refused does not look for a server of its own again and again.
func TestNameTakenByServerWithANormalizedName(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"all capabilities": everything, "labels and names": withoutKeys} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith(capital))
			h.cloud.AddServers(serverWith(withID("x"), func(s *cloud.Server) { s.Labels = map[string]string{"samplecontroller.k8s.io/uid": "other"} }))
			h.poll()
			h.advance(time.Second)
			h.cloud.FailAlways(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Taken, Op: "create server"}, false)
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "False Taken")
			h.wantServers("x")
		})
	}
}

func TestBusyAnswerToARepeatedCreateKeepsTheClaim(t *testing.T) {
	h := harnessWithLostAnswer(t, without(cloud.Labels, cloud.UniqueNames), true)
	h.cloud.FailAlways(cloudfake.CreateServer, &cloud.Error{Kind: cloud.Busy, Op: "create server", Detail: "the server is being built"}, false)
	for range 3 {
		h.later(settleTime)
		h.mustReconcile()
	}
	h.wantClaim("web")
	h.wantCondition(pcapi.ReadyCondition, "False OutcomeUnknown", "the server is being built")
	h.cloud.Heal(cloudfake.CreateServer)
	for range 2 {
		h.later(settleTime)
		h.mustReconcile()
	}
	h.wantServers("s1")
	equal(t, "vmId", "s1", h.vm().Status.VMID)
}
