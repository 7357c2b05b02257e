package vsphere

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

const (
	uuidPath        = "config.instanceUuid"
	summaryUUIDPath = "summary.config.instanceUuid"
	connectionPath  = "runtime.connectionState"
	versionPath     = "config.changeVersion"
	templatePath    = "config.template"
	statsPath       = "summary.quickStats"
	powerPath       = "runtime.powerState"
	guestNetPath    = "guest.net"
	heartbeatPath   = "guestHeartbeatStatus"
	parentPath      = "parent"
	devicePath      = "config.hardware.device"
	vAppPath        = "config.vAppConfig"
)

// extraPath is the path of one key of the extraConfig, which as a whole is long.
func extraPath(key string) string { return `config.extraConfig["` + key + `"]` }

// poolPath is read of VMs only where there are zones.
const poolPath = "resourcePool"

// vmPaths are what is read of a VM.
var vmPaths = []string{
	"name", parentPath, uuidPath, summaryUUIDPath, templatePath, "config.createDate", versionPath,
	"config.hardware.numCPU", "config.hardware.memoryMB", extraPath(labelsKey), extraPath(originKey), extraPath(disksKey),
	powerPath, connectionPath, "runtime.host", "runtime.maxCpuUsage", statsPath, guestNetPath, heartbeatPath,
}

// pathsOf returns the paths that are read of VMs, with that of the pool if there are zones.
func (p Place) pathsOf(paths []string) []string {
	if len(p.Zones) == 0 {
		return paths
	}
	return append(slices.Clip(paths), poolPath)
}

// entity is what was read of a managed object.
type entity struct {
	ref   types.ManagedObjectReference
	props map[string]types.AnyType
	// faults are why properties are missing.
	faults map[string]types.BaseMethodFault
	// above are the folders that it is in, and their datacenter, and inside is whether the
	// root is one of them; set by vms.look.
	above  []types.ManagedObjectReference
	inside bool
}

func (s entity) text(path string) string {
	text, _ := s.props[path].(string)
	return text
}

func (s entity) flag(path string) bool {
	flag, _ := s.props[path].(bool)
	return flag
}

func (s entity) number(path string) int {
	n, _ := s.props[path].(int32)
	return int(n)
}

func (s entity) reference(path string) types.ManagedObjectReference {
	ref, _ := s.props[path].(types.ManagedObjectReference)
	return ref
}

// extra returns the value of a key of the extraConfig, and whether there is one.
func (s entity) extra(key string) (string, bool) {
	option, ok := s.props[extraPath(key)].(types.OptionValue)
	text, _ := option.Value.(string)
	return text, ok && text != ""
}

// marked reports whether the VM has an owner's mark.
func (s entity) marked() bool {
	_, found := s.extra(labelsKey)
	return found && !s.copied()
}

// copied reports whether the mark is that of another VM, of which this one is a copy: a
// clone has the extraConfig of its source, and an instance UUID of its own.
func (s entity) copied() bool {
	key, id := s.origin().Key, s.text(uuidPath)
	return key != "" && id != "" && idOf(key) != id
}

// created reports whether a create of an operator made the VM. A VM that was imported
// is marked only.
func (s entity) created() bool {
	_, found := s.extra(originKey)
	return found && s.marked()
}

// labels returns the labels, nil if there are none. Labels that cannot be read count as
// absent: only somebody who edits the VM by hand makes such.
func (s entity) labels() map[string]string {
	text, _ := s.extra(labelsKey)
	var labels map[string]string
	if s.copied() || json.Unmarshal([]byte(text), &labels) != nil || len(labels) == 0 {
		return nil
	}
	return labels
}

// image returns the template that the VM was cloned from, if a create of an operator made it.
func (s entity) image() cloud.Image {
	if s.copied() {
		return cloud.Image{}
	}
	from := s.origin()
	return cloud.Image{Name: cmp.Or(from.Template, from.Default)}
}

func (s entity) origin() origin {
	text, _ := s.extra(originKey)
	var from origin
	if json.Unmarshal([]byte(text), &from) != nil {
		return origin{}
	}
	return from
}

// antiAffinity returns that of the VM, zero for none.
func (s entity) antiAffinity() cloud.AntiAffinity {
	if s.copied() {
		return cloud.AntiAffinity{}
	}
	return s.origin().AntiAffinity
}

// slots returns where the disks with names are attached, also those that are not there any
// more. A text that cannot be read counts as none: only somebody who edits the VM by hand makes
// such.
func (s entity) slots() map[string]slot {
	text, _ := s.extra(disksKey)
	var slots map[string]slot
	if s.copied() || json.Unmarshal([]byte(text), &slots) != nil {
		return nil
	}
	return slots
}

func devicesOf(vm entity) object.VirtualDeviceList {
	devices, _ := vm.props[devicePath].(types.ArrayOfVirtualDevice)
	return devices.VirtualDevice
}

// deviceless reports whether an object was read without its devices.
func (s entity) deviceless() bool { return !s.deleted() && len(devicesOf(s)) == 0 }

// deleted reports whether the object was deleted while it was read.
func (s entity) deleted() bool {
	for _, fault := range s.faults {
		if gone, ok := fault.(*types.ManagedObjectNotFound); ok && gone.Obj == s.ref {
			return true
		}
	}
	return false
}

// lost reports whether the vCenter cannot read the VM at the moment.
func (s entity) lost() bool {
	switch s.props[connectionPath] {
	case types.VirtualMachineConnectionStateInaccessible, types.VirtualMachineConnectionStateInvalid, types.VirtualMachineConnectionStateOrphaned:
		return true
	}
	return false
}

// configured reports whether the vCenter returned the configuration of the VM. It cannot while it has no
// access to the files, and a VM that is being created or registered has none yet.
func (s entity) configured() bool { return s.text(uuidPath) != "" }

// denied reports whether properties are missing because the account may not read them.
func (s entity) denied() bool {
	for _, fault := range s.faults {
		if _, denied := fault.(*types.NoPermission); denied {
			return true
		}
	}
	return false
}

// state returns the state as far as it does not concern the life of the VM.
func (s entity) state() cloud.State {
	if s.lost() {
		return cloud.StateError
	}
	if !s.configured() {
		return cloud.StateUnknown
	}
	switch s.props[powerPath] {
	case types.VirtualMachinePowerStatePoweredOn:
		return cloud.StateActive
	case types.VirtualMachinePowerStatePoweredOff:
		return cloud.StateStopped
	case types.VirtualMachinePowerStateSuspended:
		return cloud.StateSuspended
	}
	return cloud.StateUnknown
}

// heartbeat returns whether the vCenter receives heartbeats of VMware Tools. Those of a guest
// under load may be late, which is yellow.
func (s entity) heartbeat() cloud.Heartbeat {
	switch s.props[heartbeatPath] {
	case types.ManagedEntityStatusGreen, types.ManagedEntityStatusYellow:
		return cloud.HeartbeatOK
	case types.ManagedEntityStatusRed:
		return cloud.HeartbeatLost
	case types.ManagedEntityStatusGray:
		return cloud.HeartbeatNone
	}
	return cloud.HeartbeatUnknown
}

// unescaped returns a name without the escapes of the vCenter.
var unescaped = strings.NewReplacer("%2f", "/", "%2F", "/", "%5c", `\`, "%5C", `\`, "%25", "%").Replace
