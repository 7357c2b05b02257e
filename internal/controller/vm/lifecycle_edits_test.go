package vm

import (
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
)

// A VM without a server may be moved to another Network in the edit that changes something else, too.
func TestNewVMFollowsAnEditOfItsNetworkAndAnotherField(t *testing.T) {
	caps := cloud.NewCapabilities(append([]cloud.Capability{cloud.Suspend}, withInterfaces...)...)
	quota := &cloud.Error{Kind: cloud.Quota, Op: "create server", Detail: "no room"}
	states := map[string]struct {
		first func(*pcapi.VM)
		fail  func(*harness)
	}{
		"its Network does not exist":        {first: on("missing"), fail: func(*harness) {}},
		"its address is not in the range":   {first: on("a", "10.9.9.9"), fail: func(*harness) {}},
		"the cloud refused its create":      {first: on("a"), fail: func(h *harness) { h.cloud.Fail(cloudfake.CreateServer, quota, false) }},
		"the answer to its create was lost": {first: on("a"), fail: func(h *harness) { h.cloud.Fail(cloudfake.CreateServer, errReset, false) }},
	}
	edits := map[string]struct {
		edit func(*pcapi.VM)
		done func(cloud.Server) bool
	}{
		"nothing else":   {func(*pcapi.VM) {}, func(cloud.Server) bool { return true }},
		"the size":       {func(vm *pcapi.VM) { vm.Spec.CPU = pcapi.Cores(8) }, func(s cloud.Server) bool { return s.CPU == 8 }},
		"Off":            {poweredOff, func(s cloud.Server) bool { return s.State == cloud.StateStopped }},
		"Suspended":      {suspended, func(s cloud.Server) bool { return s.State == cloud.StateSuspended }},
		"Unmanaged":      {unmanaged, func(s cloud.Server) bool { return s.State == cloud.StateActive }},
		"tags":           {withTags("env", "prod"), func(s cloud.Server) bool { return s.Labels["env"] == "prod" }},
		"disks":          {func(vm *pcapi.VM) { vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "1Gi"}} }, func(s cloud.Server) bool { return s.Disks != "" }},
		"another vmname": {func(vm *pcapi.VM) { vm.Spec.VMName = "db" }, func(s cloud.Server) bool { return s.Name == "db" }},
		"Orphan":         {func(vm *pcapi.VM) { vm.Spec.DeletionPolicy = pcapi.DeletionPolicyOrphan }, func(cloud.Server) bool { return true }},
	}
	for state, before := range states {
		for name, edit := range edits {
			t.Run(state+", and "+name, func(t *testing.T) {
				h := harnessWithNetworks(t, caps, "10.1.0.0/24", vmWith(before.first))
				before.fail(h)
				h.mustReconcile()
				equal(t, "servers", 0, len(h.cloud.ServerIDs()))
				h.edit(func(vm *pcapi.VM) {
					vm.Spec.Network = nil
					on("b", "10.1.0.7")(vm)
					edit.edit(vm)
				})
				for range 3 {
					h.later(settleTime)
					h.complete()
				}
				ids := h.cloud.ServerIDs()
				if len(ids) != 1 {
					t.Fatalf("servers %v, want one", ids)
				}
				server := h.cloud.Server(ids[0])
				equal(t, "attached", []string{"b"}, attachedNetworks(h.cloud.Request("uid-a")))
				equal(t, "the other field", true, edit.done(server))
				if ready, message := h.condition(pcapi.ReadyCondition); ready[:4] != "True" {
					t.Errorf("Ready is %s: %s", ready, message)
				}
			})
		}
	}
}

func attachedNetworks(req cloud.CreateServer) (ids []string) {
	for _, i := range req.Interfaces {
		ids = append(ids, i.NetworkID)
	}
	if req.NetworkID != "" {
		ids = append(ids, req.NetworkID)
	}
	return ids
}
