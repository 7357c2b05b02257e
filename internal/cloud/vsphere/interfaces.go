package vsphere

import (
	"cmp"
	"slices"

	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// interfaces returns the network interfaces as VMware Tools report them, in the order of the
// VM's devices. Interfaces that the guest made, as for containers, are left out: they have no
// device.
func (s entity) interfaces() cloud.Interfaces {
	reported, _ := s.props[guestNetPath].(types.ArrayOfGuestNicInfo)
	nics := slices.DeleteFunc(slices.Clone(reported.GuestNicInfo), func(nic types.GuestNicInfo) bool { return nic.DeviceConfigId <= 0 })
	slices.SortStableFunc(nics, func(a, b types.GuestNicInfo) int { return cmp.Compare(a.DeviceConfigId, b.DeviceConfigId) })
	list := make([]cloud.Interface, len(nics))
	for n, nic := range nics {
		list[n] = cloud.Interface{MAC: nic.MacAddress, Addresses: nic.IpAddress}
	}
	interfaces, _ := cloud.NewInterfaces(list)
	return interfaces
}
