package field

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
)

const mibPerGiB = 1 << 10

var size = Field{
	Lacking: func(vm *pcapi.VM, caps cloud.Capabilities) []string {
		if caps.Has(cloud.Sizing) || vm.Spec.Flavor != "" {
			return nil
		}
		return sizeFields(vm, vm.Spec.CPU != nil, vm.Spec.Memory != nil)
	},
	Create: func(vm *pcapi.VM, in Context, req *cloud.CreateServer) {
		if in.Capabilities.Has(cloud.Flavors) {
			req.Flavor = flavorOf(vm)
		}
		if req.Flavor == "" {
			req.CPU, req.MemoryMiB = sizeOf(vm)
		}
	},
	Change: sizeChange,
	Unchangeable: func(vm *pcapi.VM, update cloud.Update, caps cloud.Capabilities) []string {
		if !update.Has(cloud.SizePart) || caps.Has(cloud.Resize) {
			return nil
		}
		return sizeFields(vm, len(cloud.Changes[cloud.SetCPU](update)) > 0, len(cloud.Changes[cloud.SetMemory](update)) > 0)
	},
	Report: func(vm *pcapi.VM, server cloud.Server, _ cloud.Capabilities) {
		vm.Status.Hardware = hardwareStatus(server, vm.Status.Hardware)
	},
	Hide: func(vm *pcapi.VM) { vm.Status.Hardware = nil },
	Shown: func(vm *pcapi.VM, server *cloud.Server) {
		if hardware := vm.Status.Hardware; hardware != nil {
			server.CPU = int(hardware.CPU)
			if hardware.Memory != nil {
				server.MemoryMiB = int(hardware.Memory.Value() >> 20)
			}
			server.Flavor = hardware.Flavor
		}
		if server.Flavor == "" && vm.Status.Class != nil {
			server.Flavor = vm.Status.Class.Flavor
		}
	},
	DescribeCreate: func(_ *pcapi.VM, req cloud.CreateServer) []string {
		parts := named("flavor", req.Flavor)
		if req.CPU != 0 {
			parts = append(parts, named("cpu", fmt.Sprint(req.CPU))...)
		}
		return append(parts, named("memory", mib(req.MemoryMiB))...)
	},
	DescribeUpdate: func(s cloud.Server, update cloud.Update) (parts []string) {
		for _, change := range update {
			switch change := change.(type) {
			case cloud.SetFlavor:
				parts = append(parts, fmt.Sprintf("flavor %s to %s", approval.Quoted(s.Flavor), approval.Quoted(string(change))))
			case cloud.SetCPU:
				parts = append(parts, fmt.Sprintf("cpu %d to %d", s.CPU, change))
			case cloud.SetMemory:
				parts = append(parts, fmt.Sprintf("memory %s to %s", mib(s.MemoryMiB), mib(int(change))))
			}
		}
		return parts
	},
}

// ClassTaken reports whether the status has the class that the spec names.
func ClassTaken(vm *pcapi.VM) bool {
	return vm.Status.Class != nil && vm.Status.Class.Name == vm.Spec.ClassName
}

// sizeOf returns the cores and the MiB that a VM is to have, each 0 if that is left to the
// cloud. It is that of the class as the VM took it.
func sizeOf(vm *pcapi.VM) (cores, mib int) {
	switch {
	case vm.Spec.ClassName == "":
		return vm.Spec.CPU.Count(), vm.Spec.Memory.MiB()
	case ClassTaken(vm):
		return vm.Status.Class.Hardware.CPU.Count(), vm.Status.Class.Hardware.Memory.MiB()
	}
	return 0, 0
}

// flavorOf returns the name of the flavor that a VM is to have where sizes have names; empty
// if its size decides.
func flavorOf(vm *pcapi.VM) string {
	switch {
	case vm.Spec.ClassName == "":
		return string(vm.Spec.Flavor)
	case ClassTaken(vm):
		return vm.Status.Class.Flavor
	}
	return ""
}

// sizeChange is the part of the difference that is about the size. A size of 0 is one that
// the cloud does not report. Where the VM or its class names a flavor and the server shows its flavor,
// only these are compared: the flavor may have another size than the class.
func sizeChange(vm *pcapi.VM, server cloud.Server) (update cloud.Update) {
	if flavor := flavorOf(vm); flavor != "" && server.Flavor != "" {
		if flavor != server.Flavor {
			update = append(update, cloud.SetFlavor(flavor))
		}
		return update
	}
	cores, mib := sizeOf(vm)
	if cores != 0 && server.CPU != 0 && cores != server.CPU {
		update = append(update, cloud.SetCPU(cores))
	}
	if mib != 0 && server.MemoryMiB != 0 && mib != server.MemoryMiB {
		update = append(update, cloud.SetMemory(mib))
	}
	return update
}

// sizeFields returns the fields of the spec that cores and memory come from.
func sizeFields(vm *pcapi.VM, cpu, memory bool) []string {
	switch {
	case vm.Spec.ClassName != "":
		return []string{"className"}
	case vm.Spec.Flavor != "":
		return []string{"flavor"}
	}
	return append(when(cpu, "cpu"), when(memory, "memory")...)
}

// hardwareStatus returns what the status shows of the size of a server, nil if the cloud
// reports none. If that is the same as last, it returns last, which compares faster.
func hardwareStatus(server cloud.Server, last *pcapi.VMHardwareStatus) *pcapi.VMHardwareStatus {
	cpu := int32(min(server.CPU, math.MaxInt32))                    //nolint:gosec // bounded
	memory := int64(min(server.MemoryMiB, math.MaxInt64>>20)) << 20 // bytes
	flavor := server.Flavor
	if flavor == cloud.FlavorPending {
		flavor = ptr.Deref(last, pcapi.VMHardwareStatus{}).Flavor
	}
	if cpu == 0 && memory == 0 && flavor == "" {
		return nil
	}
	if last != nil {
		if was := ptr.Deref(last.Memory, resource.Quantity{}); last.CPU == cpu && was.Value() == memory && last.Flavor == flavor {
			return last
		}
	}
	status := &pcapi.VMHardwareStatus{CPU: cpu, Flavor: flavor}
	if memory > 0 {
		status.Memory = resource.NewQuantity(memory, resource.BinarySI)
	}
	return status
}

// mib returns a size in MiB as text, empty for 0.
func mib(n int) string {
	switch {
	case n == 0:
		return ""
	case n%mibPerGiB == 0:
		return fmt.Sprintf("%dGi", n/mibPerGiB)
	}
	return fmt.Sprintf("%dMi", n)
}
