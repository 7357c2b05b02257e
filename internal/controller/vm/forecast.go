package vm

import (
	"cmp"
	"fmt"
	"maps"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller/vm/field"
	"github.com/privatecloud/operator/internal/external"
	"github.com/privatecloud/operator/internal/reconciler"
)

// newID stands for the id of a server that does not exist yet.
const newID = "new"

// Copy returns a copy that Foresee may change.
func (k *kind) Copy(obs *observation) *observation {
	c := *obs
	return &c
}

// Foresee says what the steps of a VM do.
func (k *kind) Foresee(name string, vm *pcapi.VM, obs *observation) ([]pcapi.PlannedChange, bool) {
	switch name {
	case stepCheckName:
		obs.checked = true
	case stepReadUserData, stepConfirmName, stepConfirmImport:
	case stepDeleteAddress:
		if vm.Spec.PublicAddress != nil || vm.Status.PublicAddress != "" {
			return leftover(vm, "its public address"), true
		}
	case stepDeleteSnapshots:
		return leftover(vm, "its snapshots"), true
	case stepDeleteDisks:
		return leftover(vm, disksLeft(vm, obs.Resource)), true
	case stepTakeClass:
		vm.Status.Class, obs.class = obs.class, nil
	case external.StepCreate:
		return k.foreseeCreate(vm, obs), true
	case external.StepAdopt:
		record(vm, obs)
	case stepLabel:
		labels := k.servers.ownerLabels(vm)
		maps.Copy(labels, obs.Resource.Labels)
		changed(obs, func(s *cloud.Server) { s.Labels = labels })
		obs.Owned = true
		return planned(obs, pcapi.PlannedImport), true
	case stepUnlabel:
		return planned(obs, pcapi.PlannedRelease), true
	case stepUpdate:
		return foreseeUpdate(vm, obs), true
	case stepRestart:
		vm.Status.StoppedTime = new(reconciler.StatusTime(obs.Now))
		changed(obs, func(s *cloud.Server) { s.State = cloud.StateStopped })
		return planned(obs, pcapi.PlannedRestart), true
	case stepRecordRestart:
		result := pcapi.VMRestarted
		if restartOf(vm, obs.Now) == restartMissed || field.PowerOf(vm) == pcapi.PowerUnmanaged {
			result = pcapi.VMRestartMissed
		}
		vm.Status.LastRestart = &pcapi.VMRestartStatus{RequestedTime: reconciler.StatusTime(vm.Spec.NextRestartTime.Time), Result: result}
	case stepResume:
		changed(obs, func(s *cloud.Server) { s.State = cloud.StateActive })
		return planned(obs, pcapi.PlannedResume), true
	case stepRevert:
		return foreseeRevert(vm, obs), true
	default:
		return nil, false
	}
	return nil, true
}

// disksLeft returns what a plan says of the disks that are deleted after a server. The server is nil if it is gone.
func disksLeft(vm *pcapi.VM, server *cloud.Server) string {
	const what = "its disks"
	if server == nil {
		return what
	}
	after := server.Clone()
	field.MissingKeeps(vm, after).Apply(&after)
	if kept := after.Disks.KeptNames(); len(kept) > 0 {
		return what + ", except " + firstOf(kept)
	}
	return what
}

// leftover returns the deletion of what outlives the server.
func leftover(vm *pcapi.VM, what string) []pcapi.PlannedChange {
	return []pcapi.PlannedChange{{Action: pcapi.PlannedDelete, Name: cmp.Or(vm.Status.NameInCloud, vm.Spec.VMName), ID: vm.Status.VMID, Details: []string{what}}}
}

// record writes to the status that the server is the VM's.
func record(vm *pcapi.VM, obs *observation) {
	vm.Status.VMID, vm.Status.NameInCloud, vm.Status.Cloud = obs.Resource.ID, obs.Resource.Name, obs.Cloud
	vm.Status.CreatedTime = new(reconciler.StatusTime(obs.Now))
}

func changed(obs *observation, change func(*cloud.Server)) {
	server := obs.Resource.Clone()
	change(&server)
	obs.Resource = &server
}

// planned returns a change of the server.
func planned(obs *observation, action pcapi.PlannedAction, details ...string) []pcapi.PlannedChange {
	change := pcapi.PlannedChange{Action: action, Name: obs.Resource.Name, Details: details}
	if obs.Resource.ID != newID {
		change.ID = obs.Resource.ID
	}
	return []pcapi.PlannedChange{change}
}

func (k *kind) foreseeCreate(vm *pcapi.VM, obs *observation) []pcapi.PlannedChange {
	req := k.request(vm, obs)
	server := cloud.Server{
		ID: newID, Name: req.Name, State: cloud.StateActive, Labels: req.Labels, CPU: req.CPU, MemoryMiB: req.MemoryMiB,
		Flavor: req.Flavor, Folder: req.Folder, Zone: req.Zone, Disks: req.Disks, RootDisk: req.RootDisk, NetworkID: req.FirstNetwork(), SecurityGroups: req.SecurityGroups,
	}
	if req.PowerState == cloud.PowerOff {
		server.State = cloud.StateStopped
	}
	obs.Resource, obs.Owned = &server, true
	record(vm, obs)
	return planned(obs, pcapi.PlannedCreate, field.DescribeCreate(vm, req)...)
}

// foreseeUpdate models the update that is sent first, as the step update makes it.
func foreseeUpdate(vm *pcapi.VM, obs *observation) []pcapi.PlannedChange {
	before, update := *obs.Resource, firstChange(vm, obs, field.Difference(vm, *obs.Resource))
	if update.PowersOff() && asksGuest(vm, obs.Capabilities()) { // which is a call of its own
		update = update.Of(cloud.PowerPart)
	}
	power, switches := update.Power()
	var changes []pcapi.PlannedChange
	if details := field.DescribeUpdate(before, update); len(details) > 0 {
		changes = planned(obs, pcapi.PlannedUpdate, details...)
		switch {
		case !update.Resizes(), before.State != cloud.StateActive, switches:
		case vm.Spec.UpdatePolicy == pcapi.UpdatePolicyRestartAllowed && obs.Capabilities().Has(cloud.Power):
			changes[0].IfStopNeeded = pcapi.StopNeededRestart
		default:
			changes[0].IfStopNeeded = pcapi.StopNeededWait
		}
	}
	if switches {
		changes = append(changes, planned(obs, powerAction(before.State, power.State))...)
	}
	changed(obs, update.Apply)
	return changes
}

func powerAction(from cloud.State, to cloud.PowerState) pcapi.PlannedAction {
	switch {
	case to == cloud.PowerOff:
		return pcapi.PlannedPowerOff
	case to == cloud.PowerSuspended:
		return pcapi.PlannedSuspend
	case from == cloud.StateSuspended:
		return pcapi.PlannedResume
	}
	return pcapi.PlannedPowerOn
}

func foreseeRevert(vm *pcapi.VM, obs *observation) []pcapi.PlannedChange {
	name := vm.Spec.CurrentSnapshotName
	vm.Status.Revert = &pcapi.VMRevertStatus{SnapshotName: name, Phase: pcapi.VMRevertSucceeded}
	detail := "VMSnapshot " + approval.Quoted(name)
	if obs.snapshot != nil && obs.snapshot.Status.SnapshotID != "" {
		detail += fmt.Sprintf(" (%s)", approval.Quoted(obs.snapshot.Status.SnapshotID))
	}
	obs.snapshot = nil
	return planned(obs, pcapi.PlannedRevert, detail)
}
