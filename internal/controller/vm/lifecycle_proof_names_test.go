package vm

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

func TestNameProvesNothingUnlessExclusive(t *testing.T) {
	h := harnessWithLostAnswer(t, namesNotExclusive, false)
	h.cloud.AddServers(cloud.Server{ID: "x", Name: "web", State: cloud.StateActive}) // another cluster's
	h.later(settleTime)
	h.mustReconcile()
	h.later(settleTime)
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "False Ambiguous", "x", "rename or delete")
	equal(t, "vmId", "", h.vm().Status.VMID)

	h.remove()
	h.mustReconcile()
	h.later(settleTime)
	h.mustReconcile()
	h.wantServers("x")
	h.wantCondition(pcapi.DeletingCondition, "True Blocked", "Orphan")
}

// capital gives the VM a name that a cloud which normalizes names changes.
func capital(vm *pcapi.VM) { vm.Spec.VMName = "Web" }

func TestLostAnswerOnACloudThatNormalizesNames(t *testing.T) {
	lose := func(t *testing.T, committed bool, objects ...client.Object) *harness {
		h := newHarness(t, uniqueNamesOnly, append(objects, vmWith(capital))...)
		h.cloud.Normalize(true)
		h.cloud.Fail(cloudfake.CreateServer, errReset, committed)
		h.mustReconcile()
		h.wantCalls("check Web", "create Web")
		return h
	}
	t.Run("the server is found after the settle time", func(t *testing.T) {
		h := lose(t, true)
		h.later(time.Second)
		h.mustReconcile()
		h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown")
		h.wantCalls()
		h.later(settleTime)
		h.mustReconcile()
		h.wantCalls("check Web")
		equal(t, "vmId", "s1", h.vm().Status.VMID)
		equal(t, "name in the cloud", "web", h.vm().Status.NameInCloud)
		h.mustReconcile()
		h.wantCondition(pcapi.ReadyCondition, "True Running")
		h.remove()
		h.mustReconcile()
		h.wantServers()
		h.wantGone()
	})
	t.Run("deleted before it is found: the server is deleted", func(t *testing.T) {
		h := lose(t, true)
		h.remove()
		for range 2 {
			h.later(settleTime)
			h.mustReconcile()
		}
		h.wantServers()
		h.wantGone()
	})
	t.Run("the cloud does not normalize the name: the other server is not used", func(t *testing.T) {
		h := lose(t, false)
		h.cloud.Normalize(false)
		h.cloud.AddServers(serverWith(unlabelled, withID("x")))
		h.later(settleTime)
		h.mustReconcile()
		equal(t, "vmId", "", h.vm().Status.VMID)
		h.wantCondition(pcapi.ReadyCondition, "False Ambiguous", "VM x")
		h.remove()
		h.later(settleTime)
		h.mustReconcile()
		h.wantServers("x")
	})
	t.Run("another VM has the name of the server: the server is that VM's", func(t *testing.T) {
		h := lose(t, false, other("b", createdAfter(time.Hour), withClaim))
		h.cloud.AddServers(serverWith(unlabelled, withID("x")))
		h.later(settleTime)
		h.mustReconcile()
		equal(t, "vmId", "", h.vm().Status.VMID)
		h.wantCondition(pcapi.NameCheckedCondition, "False Taken", "another VM object")
	})
}

func TestAnswerWithAnotherNameIsUsedAlthoughReadsLag(t *testing.T) {
	for name, caps := range map[string]cloud.Capabilities{"names": uniqueNamesOnly, "no proofs": withoutProofs} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, caps, vmWith())
			h.cloud.AddServers(serverWith(unlabelled, withID("x"), withName("tenant-web")))
			h.cloud.Hide("x") // the answer comes, and reads lag behind it
			h.cloud.Fail(cloudfake.GetServer, &cloud.Error{Kind: cloud.NotFound, Op: "get server x"}, false)
			h.cloud.AnswerCreateWith("x")
			h.mustReconcile()
			h.wantCalls("check web", "create web", "get x")
			h.wantCondition(pcapi.CreatedCondition, "False OutcomeUnknown")
			h.later(time.Second)
			h.mustReconcile()
			equal(t, "vmId while reads lag", "", h.vm().Status.VMID)
			h.cloud.Show("x")
			h.later(time.Second)
			h.mustReconcile()
			equal(t, "vmId", "x", h.vm().Status.VMID)
			equal(t, "name in the cloud", "tenant-web", h.vm().Status.NameInCloud)
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			h.remove()
			h.mustReconcile()
			h.wantServers()
			h.wantGone()
		})
	}
}

func TestServerOfAnotherNameIsNotDeletedWithoutLabels(t *testing.T) {
	h := harnessWithServer(t, uniqueNamesOnly, onRecord(func(vm *pcapi.VM) { vm.Status.NameInCloud = "web" }, deleted), serverWith(unlabelled, withName("db")))
	h.mustReconcile()
	h.wantServers("s1")
	h.wantCondition(pcapi.DeletingCondition, "True Blocked", `"db"`, "Orphan")
	h.edit(orphaning)
	h.mustReconcile()
	h.wantGone()
	h.wantServers("s1")
}

func TestAnswerWithServerThatExistedBeforeIsNotUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		caps cloud.Capabilities
		with []func(*cloud.Server)
	}{
		"without labels":             {caps: withoutProofs, with: []func(*cloud.Server){unlabelled}},
		"labels of another object":   {caps: everything, with: []func(*cloud.Server){func(s *cloud.Server) { s.Labels = map[string]string{"samplecontroller.k8s.io/uid": "other"} }}},
		"names that prove ownership": {caps: uniqueNamesOnly, with: []func(*cloud.Server){unlabelled}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, tc.caps, vmWith())
			h.cloud.AddServers(serverWith(append(tc.with, withID("x"), withName("WEB"))...))
			h.poll()
			h.advance(time.Second)
			h.cloud.AnswerCreateWith("x")
			h.mustReconcile()
			equal(t, "vmId", "", h.vm().Status.VMID)
			h.wantCondition(pcapi.ReadyCondition, "False Ambiguous", "VM x")
		})
	}
}
