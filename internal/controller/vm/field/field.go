// Package field describes the fields of a VM that its server has, too. Each file has what belongs to one field and
// does not depend on the life cycle of the server. No function reads or calls anything but its arguments.
//
//	field.go         what all fields make together
//	size.go          cpu, memory, className and flavor, status.hardware
//	flavor.go        clouds that lack flavor
//	template.go      template, status.image
//	folder.go        folder
//	zone.go          zone, status.zone, status.host
//	network.go       networkRef and network, status.network
//	antiaffinity.go  antiAffinity
//	securitygroups.go  securityGroups, status.securityGroups
//	allowedaddresses.go  allowedAddresses, status.allowedAddresses
//	publicaddress.go   publicAddress, status.publicAddress
//	rootdisk.go      rootDisk, status.rootDisk
//	disks.go         disks, status.disks
//	tags.go          tags
//	bootstrap.go     bootstrap
//	probe.go         readinessProbe
//	power.go         powerState and powerOffMode
package field

import (
	"fmt"
	"slices"
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/approval"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/reconciler"
)

// Field is a field of a VM, or several that belong together. A function that is nil does nothing.
type Field struct {
	// Lacking returns the fields of the spec that a cloud with these capabilities cannot give to a new server.
	Lacking func(*pcapi.VM, cloud.Capabilities) []string
	// Create sets what a create asks for.
	Create func(*pcapi.VM, Context, *cloud.CreateServer)
	// Change returns the changes by which a server becomes what the spec says.
	Change func(*pcapi.VM, cloud.Server) cloud.Update
	// Unchangeable returns the fields of the spec that a cloud with these capabilities cannot change as an update does.
	// Where it is nil, such changes are left out, and Drift reports them.
	Unchangeable func(*pcapi.VM, cloud.Update, cloud.Capabilities) []string
	// Drift returns the outcome for what a server lacks of the spec and does not get; nil if there is no such thing.
	Drift func(*pcapi.VM, cloud.Server, cloud.Capabilities) error
	// Report writes to the status what the cloud shows of a server, and Hide removes it.
	Report func(*pcapi.VM, cloud.Server, cloud.Capabilities)
	Hide   func(*pcapi.VM)
	// Shown sets what the status, or the spec for tags, shows of a server.
	Shown func(*pcapi.VM, *cloud.Server)
	// DescribeCreate and DescribeUpdate return what a plan says of a create, and of an update of a server. A pending
	// approval is one of these texts: one that changes has to be given again.
	DescribeCreate func(*pcapi.VM, cloud.CreateServer) []string
	DescribeUpdate func(cloud.Server, cloud.Update) []string
}

// Context is what a create needs beside the VM.
type Context struct {
	// Cluster is the UID of the namespace kube-system.
	Cluster      string
	Capabilities cloud.Capabilities
	// Interfaces are the network interfaces, whose Networks are ready.
	Interfaces []cloud.Attachment
	// UserData is what the Secret holds that the spec names.
	UserData cloud.UserData
}

// all are the fields in the order in which plans and messages name them.
var all = []Field{size, Flavor, template, folder, Zone, Network, SecurityGroups, AllowedAddresses, PublicAddress, AntiAffinity, RootDisk, Disks, Tags, bootstrap, Probe, power}

// reported are the parts of a server of which Drift reports the changes that a cloud cannot make.
var reported = []cloud.Part{cloud.LabelPart, cloud.GroupPart, cloud.AllowedPart, cloud.AddressPart, cloud.KeepPart, cloud.DiskPart}

// Unsupported returns the outcome for a new VM that asks for what the cloud cannot do; nil if it can.
func Unsupported(vm *pcapi.VM, caps cloud.Capabilities) error {
	var fields []string
	for _, f := range all {
		if f.Lacking != nil {
			fields = append(fields, f.Lacking(vm, caps)...)
		}
	}
	return Lacks(fields...)
}

// Create sets what a create asks for.
func Create(vm *pcapi.VM, in Context, req *cloud.CreateServer) {
	for _, f := range all {
		if f.Create != nil {
			f.Create(vm, in, req)
		}
	}
}

// Difference returns the changes by which a server becomes what the spec says.
func Difference(vm *pcapi.VM, server cloud.Server) cloud.Update {
	var update cloud.Update
	for _, f := range all {
		if f.Change != nil {
			update = append(update, f.Change(vm, server)...)
		}
	}
	return update
}

// Possible returns an update without the changes of reported parts that the cloud cannot make, so that the others
// are made. Drift reports them.
func Possible(update cloud.Update, caps cloud.Capabilities) cloud.Update {
	return slices.DeleteFunc(slices.Clone(update), func(c cloud.ServerChange) bool {
		return slices.Contains(reported, c.Part()) && !caps.HasAll(c.Needs()...)
	})
}

// Unchangeable returns the outcome for an update that the cloud cannot make; nil if it can.
func Unchangeable(vm *pcapi.VM, update cloud.Update, caps cloud.Capabilities) error {
	var fields []string
	for _, f := range all {
		if f.Unchangeable != nil {
			fields = append(fields, f.Unchangeable(vm, update, caps)...)
		}
	}
	return Lacks(fields...)
}

// Drift returns the outcome for what a server lacks of the spec and does not get; nil if there is no such thing. What
// the cloud can do is unknown without capabilities.
func Drift(vm *pcapi.VM, server cloud.Server, caps cloud.Capabilities) error {
	if caps == nil {
		return nil
	}
	for _, f := range all {
		if f.Drift == nil {
			continue
		}
		if err := f.Drift(vm, server, caps); err != nil {
			return err
		}
	}
	return nil
}

// Report writes to the status what the cloud shows of a server.
func Report(vm *pcapi.VM, server cloud.Server, caps cloud.Capabilities) {
	for _, f := range all {
		if f.Report != nil {
			f.Report(vm, server, caps)
		}
	}
}

// Hide removes from the status what the cloud shows of a server.
func Hide(vm *pcapi.VM) {
	for _, f := range all {
		if f.Hide != nil {
			f.Hide(vm)
		}
	}
}

// Shown sets what the status shows of a server.
func Shown(vm *pcapi.VM, server *cloud.Server) {
	for _, f := range all {
		if f.Shown != nil {
			f.Shown(vm, server)
		}
	}
}

// DescribeCreate returns what a plan says of a create.
func DescribeCreate(vm *pcapi.VM, req cloud.CreateServer) (parts []string) {
	for _, f := range all {
		if f.DescribeCreate != nil {
			parts = append(parts, f.DescribeCreate(vm, req)...)
		}
	}
	return parts
}

// DescribeUpdate returns what a plan says of an update, but for the power state.
func DescribeUpdate(server cloud.Server, update cloud.Update) (parts []string) {
	for _, f := range all {
		if f.DescribeUpdate != nil {
			parts = append(parts, f.DescribeUpdate(server, update)...)
		}
	}
	return parts
}

// Lacks returns the outcome for a spec with fields that the cloud cannot have; nil if there are none.
func Lacks(fields ...string) error {
	if len(fields) == 0 {
		return nil
	}
	return reconciler.Stalled(pcapi.UnsupportedReason, controller.RecheckRefused, fmt.Errorf("this cloud cannot set %s: remove it from the spec, or set it back",
		strings.Join(fields, ", ")))
}

// named returns a field of a create in a plan; nil if its value is empty.
func named(name, value string) []string {
	if value == "" {
		return nil
	}
	return []string{name + " " + approval.Quoted(value)}
}

// when returns the name of a field if the condition holds, else nil.
func when(lacks bool, name string) []string {
	if !lacks {
		return nil
	}
	return []string{name}
}
