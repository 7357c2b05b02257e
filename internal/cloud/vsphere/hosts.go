package vsphere

import (
	"context"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// hours is for how many hours a host is available: a vCenter sets no end. It is the
// longest time that an object can ask for, ten years.
const hours = 87600

// hosts lists hosts.
type hosts struct {
	calls   *calls
	faults  *faults
	sites   *sites
	session *session
}

// list returns the hosts of the datacenter that serve VMs: those that are
// connected and not in maintenance mode. A host has a GPU if a graphics device of it
// can be given to VMs.
func (h *hosts) list(ctx context.Context) ([]cloud.Host, error) {
	const op = "list hosts"
	ctx, end, err := h.calls.begin(cloudWide(ctx), op)
	if err != nil {
		return nil, err
	}
	defer end()
	at, err := h.sites.locate(ctx)
	if err != nil {
		return nil, h.faults.fail(ctx, op, err)
	}
	compute := func(path string) types.BaseSelectionSpec {
		return &types.TraversalSpec{Type: "ComputeResource", Path: path}
	}
	var found []entity
	err = h.session.sure(ctx, func() (bool, error) {
		found, err = collect(ctx, at.vim, types.PropertyFilterSpec{
			PropSet:   []types.PropertySpec{{Type: "HostSystem", PathSet: []string{"name", "config.graphicsInfo", "runtime.inMaintenanceMode", "runtime.connectionState"}}},
			ObjectSet: []types.ObjectSpec{children(at.hosts, true, compute("host"))},
		})
		return err == nil && len(found) == 0, err
	})
	if err != nil {
		return nil, h.faults.fail(ctx, op, h.sites.misplaced(ctx, at, err))
	}
	hosts := make([]cloud.Host, 0, len(found))
	for _, host := range found {
		connected := host.props["runtime.connectionState"] == types.HostSystemConnectionStateConnected
		if connected && !host.flag("runtime.inMaintenanceMode") && host.text("name") != "" {
			hosts = append(hosts, cloud.Host{Name: unescaped(host.text("name")), GPU: hasGPU(host), AvailableHours: hours})
		}
	}
	return hosts, nil
}

// hasGPU reports whether a host has a graphics device that VMs can use. Every host
// has a basic one for its console.
func hasGPU(host entity) bool {
	devices, _ := host.props["config.graphicsInfo"].(types.ArrayOfHostGraphicsInfo)
	for _, device := range devices.HostGraphicsInfo {
		switch types.HostGraphicsInfoGraphicsType(device.GraphicsType) {
		case types.HostGraphicsInfoGraphicsTypeShared, types.HostGraphicsInfoGraphicsTypeDirect, types.HostGraphicsInfoGraphicsTypeSharedDirect:
			return true
		default:
		}
	}
	return false
}
