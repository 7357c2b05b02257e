package vsphere

import "github.com/vmware/govmomi/vim25/types"

// firstAdapterKey is the temporary key of the first adapter that a clone adds. Those of others
// are below it.
const firstAdapterKey = -1

// adapters connect the network adapters of a template, in their order, to the networks of the
// clone, and add those that are missing. Further ones of the template stay connected as they
// are. No adapter keeps the MAC address or the external id of the template.
func adapters(from template) []types.BaseVirtualDeviceConfigSpec {
	var specs []types.BaseVirtualDeviceConfigSpec
	cards := adaptersOf(from.devices)
	for n := range max(len(cards), len(from.networks)) {
		change := &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationEdit}
		switch {
		case n >= len(cards):
			card := &types.VirtualVmxnet3{}
			card.Key = firstAdapterKey - int32(n)
			change.Operation, change.Device = types.VirtualDeviceConfigSpecOperationAdd, card
		case n < len(from.networks), keepsIdentity(cards[n]):
			change.Device = anonymous(cards[n])
		default:
			continue // the vCenter gives it another address
		}
		if n < len(from.networks) {
			device := change.Device.GetVirtualDevice()
			device.Backing = from.networks[n]
			device.Connectable = &types.VirtualDeviceConnectInfo{StartConnected: true, AllowGuestControl: true, Connected: true}
		}
		specs = append(specs, change)
	}
	return specs
}

// keepsIdentity reports whether a clone would have the MAC address or the external id of an
// adapter: a vCenter gives another address in place of one that it gave, and copies one that
// somebody set.
func keepsIdentity(adapter types.BaseVirtualDevice) bool {
	card, ok := adapter.(types.BaseVirtualEthernetCard)
	return ok && (card.GetVirtualEthernetCard().AddressType == string(types.VirtualEthernetCardMacTypeManual) || card.GetVirtualEthernetCard().ExternalId != "")
}

// anonymous returns a copy of an adapter that gets an address of its own.
func anonymous(adapter types.BaseVirtualDevice) types.BaseVirtualDevice {
	same := copied(adapter)
	if card, ok := same.(types.BaseVirtualEthernetCard); ok {
		of := card.GetVirtualEthernetCard()
		of.MacAddress, of.AddressType, of.ExternalId = "", string(types.VirtualEthernetCardMacTypeGenerated), ""
	}
	return same
}
