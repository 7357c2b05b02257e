package vm

import (
	"fmt"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// difference is what must change on the server for it to be as the spec says.
func difference(vm *pcapi.VM, server cloud.Server) cloud.UpdateServer {
	change := sizeChange(vm, server)
	change.Disks = diskChange(vm, server)
	change.Labels = tagChange(vm, server)
	change.PowerState = nextPower(powerOf(vm), server.State)
	return change
}

// sizeChange is the part of the difference that is about the size. A size of 0 is one that
// the cloud does not report. Where the class names a flavor and the server shows its flavor,
// only these are compared: the flavor may have another size than the class.
func sizeChange(vm *pcapi.VM, server cloud.Server) (change cloud.UpdateServer) {
	if flavor := flavorOf(vm); flavor != "" && server.Flavor != "" {
		if flavor != server.Flavor {
			change.Flavor = &flavor
		}
		return change
	}
	cores, mib := sizeOf(vm)
	if cores != 0 && server.CPU != 0 && cores != server.CPU {
		change.CPU = &cores
	}
	if mib != 0 && server.MemoryMiB != 0 && mib != server.MemoryMiB {
		change.MemoryMiB = &mib
	}
	return change
}

// resizes reports whether a change is one of the size, which may need a stopped server.
func resizes(change cloud.UpdateServer) bool {
	return change.CPU != nil || change.MemoryMiB != nil || change.Flavor != nil || change.Disks != ""
}

// sizeFirst reports whether the size is to change before the power state: while the server is
// stopped or, if it is to be suspended, still runs.
func sizeFirst(change cloud.UpdateServer) bool {
	return resizes(change) && change.PowerState != nil && !powersOff(change)
}

// firstChange returns the part of a change that is sent first. Tags are sent alone and
// before all else, since nothing else is refused with them or has to wait. A server that is
// to be started or suspended gets its size before, unless the cloud refused it: a size that the
// cloud refuses must not keep the server from that. One that is to be stopped gets its disks
// after. One that is suspended gets nothing else: it keeps the memory that it has.
func firstChange(vm *pcapi.VM, obs *observation, change cloud.UpdateServer) cloud.UpdateServer {
	change = possible(vm, obs, change)
	if len(change.Labels) > 0 {
		return cloud.UpdateServer{Labels: change.Labels}
	}
	switch {
	case change.PowerState == nil || !resizes(change):
	case powersOff(change): // disks that the cloud refuses must not keep the server on
		change.Disks = ""
	case obs.Resource.State == cloud.StateSuspended, obs.refusal != "":
		change.CPU, change.MemoryMiB, change.Flavor, change.Disks = nil, nil, nil, ""
	default:
		change.PowerState = nil
	}
	return change
}

// ofChange returns the part of what is left to change that a change was to make.
func ofChange(left, change cloud.UpdateServer) cloud.UpdateServer {
	if change.CPU == nil {
		left.CPU = nil
	}
	if change.MemoryMiB == nil {
		left.MemoryMiB = nil
	}
	if change.Flavor == nil {
		left.Flavor = nil
	}
	if change.Disks == "" {
		left.Disks = ""
	}
	if len(change.Labels) == 0 {
		left.Labels = nil
	}
	if change.PowerState == nil || left.PowerState != nil && *left.PowerState != *change.PowerState { // another is next
		left.PowerState = nil
	}
	return left
}

// possible returns a change without disks and tags that the cloud cannot have, and tags that it
// refused lately, so that other changes are made. A server that is to stay suspended is resumed
// for a new size if updatePolicy allows restarts.
func possible(vm *pcapi.VM, obs *observation, change cloud.UpdateServer) cloud.UpdateServer {
	caps := obs.Capabilities()
	if !caps.Has(cloud.WithDisks) {
		change.Disks = ""
	}
	if !caps.Has(cloud.Labels) || obs.untagged != nil {
		change.Labels = nil
	}
	if keepsSuspended(vm, obs, change) != nil && vm.Spec.PowerState == pcapi.PowerSuspended && vm.Spec.UpdatePolicy == pcapi.UpdatePolicyRestartAllowed && obs.refusal == "" {
		change.PowerState = new(cloud.PowerOn)
	}
	return change
}

// unsupported refuses a new VM that asks for what the cloud cannot do.
func unsupported(vm *pcapi.VM, caps cloud.Capabilities) error {
	var fields []string
	if !caps.Has(cloud.Sizing) {
		fields = sizeFields(vm, vm.Spec.CPU != nil, vm.Spec.Memory != nil)
		if vm.Spec.Template != "" {
			fields = append(fields, "template")
		}
	}
	if vm.Spec.Folder != "" && !caps.Has(cloud.Folders) {
		fields = append(fields, "folder")
	}
	if field := controller.InterfacesLacking(controller.InterfacesOf(vm), caps); field != "" {
		fields = append(fields, field)
	}
	fields = append(fields, lacksPower(vm, caps)...)
	if lacksSoft(vm, caps) {
		fields = append(fields, "powerOffMode")
	}
	if len(vm.Spec.Disks) > 0 && !caps.Has(cloud.WithDisks) {
		fields = append(fields, "disks")
	}
	if len(vm.Spec.Tags) > 0 && !caps.Has(cloud.Labels) {
		fields = append(fields, "tags")
	}
	if vm.Spec.Zone != "" && !caps.Has(cloud.Zones) {
		fields = append(fields, "zone")
	}
	if vm.Spec.AntiAffinity != nil && !caps.Has(cloud.WithAntiAffinity) {
		fields = append(fields, "antiAffinity")
	}
	if field := controller.ProbeLacking(vm.Spec.ReadinessProbe, caps); field != "" {
		fields = append(fields, field)
	}
	if vm.Spec.Bootstrap != nil && !caps.Has(cloud.WithUserData) {
		fields = append(fields, "bootstrap")
	}
	return lacks(fields)
}

// unchangeable refuses a change that the cloud cannot make.
func unchangeable(vm *pcapi.VM, change cloud.UpdateServer, caps cloud.Capabilities) error {
	var fields []string
	if (change.CPU != nil || change.MemoryMiB != nil || change.Flavor != nil) && !caps.Has(cloud.Resize) {
		fields = append(fields, sizeFields(vm, change.CPU != nil, change.MemoryMiB != nil)...)
	}
	switch {
	case change.PowerState == nil:
	case !caps.Has(cloud.Power):
		fields = append(fields, "powerState")
	case vm.Spec.PowerState == pcapi.PowerOff && lacksSoft(vm, caps):
		fields = append(fields, "powerOffMode")
	default:
		fields = append(fields, lacksPower(vm, caps)...)
	}
	return lacks(fields)
}

// lacksSoft reports whether the guest must be asked to shut down and the cloud cannot do that.
func lacksSoft(vm *pcapi.VM, caps cloud.Capabilities) bool {
	return vm.Spec.PowerOffMode == pcapi.PowerOffModeSoft && !caps.Has(cloud.SoftPowerOff)
}

// sizeFields returns the fields of the spec that cores and memory come from.
func sizeFields(vm *pcapi.VM, cpu, memory bool) []string {
	if vm.Spec.ClassName != "" {
		return []string{"className"}
	}
	var fields []string
	if cpu {
		fields = append(fields, "cpu")
	}
	if memory {
		fields = append(fields, "memory")
	}
	return fields
}

func lacks(fields []string) error {
	if len(fields) == 0 {
		return nil
	}
	return reconciler.Stalled(pcapi.UnsupportedReason, external.RecheckRefused, fmt.Errorf("this cloud cannot set %s: remove it from the spec, or set it back",
		strings.Join(fields, ", ")))
}
