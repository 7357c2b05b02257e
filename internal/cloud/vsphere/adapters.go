package vsphere

import (
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
)

// firstAdapterKey is the temporary key of the first adapter that a clone adds. Those of others
// are below it.
const firstAdapterKey = -1

// adapters connect the network adapters of a template, in their order, to the networks of the
// clone, and add those that are missing. Further ones of the template stay as they are.
func adapters(from template) []types.BaseVirtualDeviceConfigSpec {
	var specs []types.BaseVirtualDeviceConfigSpec
	cards := adaptersOf(from.devices)
	for n, network := range from.networks {
		change := &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationEdit}
		if n < len(cards) {
			change.Device = copied(cards[n])
		} else {
			card := &types.VirtualVmxnet3{}
			card.Key = firstAdapterKey - int32(n)
			change.Operation, change.Device = types.VirtualDeviceConfigSpecOperationAdd, card
		}
		device := change.Device.GetVirtualDevice()
		device.Backing = network
		device.Connectable = &types.VirtualDeviceConnectInfo{StartConnected: true, AllowGuestControl: true, Connected: true}
		specs = append(specs, change)
	}
	return specs
}

// adaptersOf returns the network adapters among devices.
func adaptersOf(devices object.VirtualDeviceList) object.VirtualDeviceList {
	return devices.SelectByType((*types.VirtualEthernetCard)(nil))
}
