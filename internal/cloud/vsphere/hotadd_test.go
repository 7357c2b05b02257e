package vsphere_test

import (
	"testing"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// A vCenter accepts the change of the size of a VM that runs, and fails its task.
func TestTaskOfResizeWithoutHotAddNeedsStop(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	created := create(t, c, cloud.CreateServer{Name: "grown"})
	for name, fault := range map[string]types.BaseMethodFault{
		"CPUs": &types.CpuHotPlugNotSupported{}, "memory": &types.MemoryHotPlugNotSupported{},
		"power state": &types.InvalidPowerState{RequestedState: types.VirtualMachinePowerStatePoweredOff, ExistingState: types.VirtualMachinePowerStatePoweredOn},
	} {
		restore := v.RefuseHotAdd(fault)
		result, err := c.UpdateServer(t.Context(), created.ID, cloud.Update{cloud.SetCPU(8)})
		if err != nil {
			t.Fatalf("%s: UpdateServer: %v", name, err)
		}
		_, err = follow(t.Context(), c, result.Operation)
		restore()
		wantError(t, err, cloud.NeedsStop)
	}
}
