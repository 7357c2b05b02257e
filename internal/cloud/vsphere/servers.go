package vsphere

import (
	"context"
	"time"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// vms reads VMs, and remembers their ids.
type vms struct {
	calls   *calls
	faults  *faults
	session *session
	sites   *sites
	place   Place
	refs    *refs
	names   names
	hidden  hidden
	// reads are those of single VMs.
	reads batch[types.ManagedObjectReference, entity]
}

// servers returns VMs as servers. Those without an id are left out: they are being
// created, or were never readable.
func (v *vms) servers(ctx context.Context, at *site, vms []entity) ([]cloud.Server, error) {
	wanted := map[types.ManagedObjectReference]bool{}
	for _, vm := range vms {
		wanted[vm.reference("runtime.host")] = true
		if parent := vm.reference(parentPath); parent != at.root {
			wanted[parent] = true
		}
	}
	delete(wanted, types.ManagedObjectReference{})
	named, err := v.names.of(ctx, at, wanted)
	if err != nil {
		return nil, err
	}
	devices, err := readDevices(ctx, at, vms)
	if err != nil {
		return nil, err
	}
	servers := make([]cloud.Server, 0, len(vms))
	for _, vm := range vms {
		id := v.idOf(vm)
		if id == "" || vm.text("name") == "" {
			continue
		}
		server := vm.server(id)
		addDisks(&server, vm, devices[vm.ref])
		server.Host = named[vm.reference("runtime.host")]
		server.Folder = named[vm.reference(parentPath)]
		server.Zone = at.zoneOf[vm.reference(poolPath)]
		if asked := vm.origin().Folder; shortened(asked) == server.Folder {
			server.Folder = asked
		}
		servers = append(servers, server)
	}
	return servers, nil
}

// idOf returns the id of a VM, that which it had if the vCenter does not return it; empty if it has none yet.
func (v *vms) idOf(vm entity) string {
	for _, path := range []string{uuidPath, summaryUUIDPath} {
		if id := vm.text(path); id != "" {
			v.refs.put(vm.ref, id)
			return id
		}
	}
	return v.refs.id(vm.ref)
}

// server returns the VM as a server, without the names of its host and folder.
func (s entity) server(id string) cloud.Server {
	server := cloud.Server{
		ID: id, Name: unescaped(s.text("name")), Labels: s.labels(), Image: s.image(), NetworkID: s.origin().Network, State: s.state(),
		CPU: s.number("config.hardware.numCPU"), MemoryMiB: s.number("config.hardware.memoryMB"), Interfaces: s.interfaces(),
		Heartbeat: s.heartbeat(),
	}
	if created, ok := s.props["config.createDate"].(time.Time); ok {
		server.CreatedAt = created
	}
	stats, ok := s.props[statsPath].(types.VirtualMachineQuickStats)
	if !ok {
		return server
	}
	server.CPUUsageMHz, server.MemoryUsageMB = int(stats.OverallCpuUsage), int(stats.HostMemoryUsage)
	switch most := s.number("runtime.maxCpuUsage"); {
	case most > 0:
		server.CPUUtilization = new(min(100, max(0, server.CPUUsageMHz*100/most)))
	case server.State == cloud.StateStopped, server.State == cloud.StateSuspended:
		server.CPUUtilization = new(0)
	}
	return server
}
