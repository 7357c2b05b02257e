package vcsim

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"
)

// The types of MAC addresses: one that the vCenter gave, and one that somebody set.
const (
	assigned = string(types.VirtualEthernetCardMacTypeAssigned)
	manual   = string(types.VirtualEthernetCardMacTypeManual)
)

// completeClone adds to a request to clone a VM what a vCenter does and the simulator does not:
// the clone has the extraConfig of its source, and new addresses. It records whether the clone has
// the vApp configuration of its source.
func (s *Server) completeClone(ctx *simulator.Context, from *simulator.VirtualMachine, req *types.CloneVM_Task) {
	var devices object.VirtualDeviceList
	var extra []types.BaseOptionValue
	var vApp bool
	ctx.WithLock(from, func() {
		cards := object.VirtualDeviceList(from.Config.Hardware.Device).SelectByType((*types.VirtualEthernetCard)(nil))
		devices, extra = copied(cards...), slices.Clone(from.Config.ExtraConfig)
		vApp = from.Config.VAppConfig != nil
	})
	if req.Spec.Config == nil {
		req.Spec.Config = &types.VirtualMachineConfigSpec{}
	}
	req.Spec.Config.ExtraConfig = inherited(extra, req.Spec.Config.ExtraConfig)
	s.mu.Lock()
	defer s.mu.Unlock()
	if removed := req.Spec.Config.VAppConfigRemoved; vApp && (removed == nil || !*removed) {
		s.ovf[req.Name] = true
	}
	edited := map[int32]bool{}
	for _, change := range slices.Concat(req.Spec.Location.DeviceChange, req.Spec.Config.DeviceChange) {
		if card, ok := change.GetVirtualDeviceConfigSpec().Device.(types.BaseVirtualEthernetCard); ok {
			edited[card.GetVirtualEthernetCard().Key] = true
			s.address(req.Name, card.GetVirtualEthernetCard())
		}
	}
	for _, device := range devices {
		card, ok := device.(types.BaseVirtualEthernetCard)
		if !ok || edited[card.GetVirtualEthernetCard().Key] {
			continue
		}
		if of := card.GetVirtualEthernetCard(); of.AddressType != manual {
			of.MacAddress = ""
		}
		s.address(req.Name, card.GetVirtualEthernetCard())
		req.Spec.Location.DeviceChange = append(req.Spec.Location.DeviceChange, &types.VirtualDeviceConfigSpec{
			Operation: types.VirtualDeviceConfigSpecOperationEdit, Device: device,
		})
	}
}

// GiveVApp gives a VM a vApp configuration, as templates that were made from the OVA of a distribution have one.
func (s *Server) GiveVApp(vm *simulator.VirtualMachine) {
	s.Change(vm.Self, types.PropertyChange{Name: "config.vAppConfig", Val: &types.VmConfigInfo{
		Property:                []types.VAppPropertyInfo{{Key: 1, Id: "hostname", Type: "string", DefaultValue: "template"}},
		OvfEnvironmentTransport: []string{"iso"},
	}})
}

// HasOVFEnvironment reports whether a vCenter gives the guest of the clone of this name an OVF environment: its source has a
// vApp configuration, and the clone keeps it. The simulator itself does not show it.
func (s *Server) HasOVFEnvironment(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ovf[name]
}

// inherited returns the extraConfig of a clone. An empty value removes a key.
func inherited(source, own []types.BaseOptionValue) []types.BaseOptionValue {
	all := map[string]types.BaseOptionValue{}
	for _, option := range slices.Concat(source, own) {
		if value := option.GetOptionValue(); value.Value == "" {
			delete(all, value.Key)
		} else {
			all[value.Key] = option
		}
	}
	return slices.Collect(maps.Values(all))
}

// address gives an adapter of a new VM an address, if it has none, and records one that
// another VM has. The caller holds mu.
func (s *Server) address(vm string, card *types.VirtualEthernetCard) {
	if card.MacAddress == "" {
		n := len(s.addresses)
		card.MacAddress, card.AddressType = fmt.Sprintf("00:50:56:%02x:%02x:%02x", n>>16&0x3f, n>>8&0xff, n&0xff), assigned
	}
	if of, used := s.addresses[card.MacAddress]; used {
		s.sharedAddresses = append(s.sharedAddresses, fmt.Sprintf("%s of %s and %s", card.MacAddress, of, vm))
		return
	}
	s.addresses[card.MacAddress] = vm
}

// SharedAddresses returns the MAC addresses that more than one VM got.
func (s *Server) SharedAddresses() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sharedAddresses)
}

// Identify gives the adapters of a VM external ids, as networks of NSX have them, and addresses:
// that of the last adapter is marked as set by an administrator, the others as assigned by the
// vCenter.
func (s *Server) Identify(vm *simulator.VirtualMachine) {
	devices := copied(vm.Config.Hardware.Device...)
	var last *types.VirtualEthernetCard
	for _, device := range devices {
		card, ok := device.(types.BaseVirtualEthernetCard)
		if !ok {
			continue
		}
		last = card.GetVirtualEthernetCard()
		last.MacAddress, last.ExternalId = "", fmt.Sprintf("port-%d", last.Key)
		s.mu.Lock()
		s.address(vm.Name, last)
		s.mu.Unlock()
	}
	last.AddressType = manual
	s.Change(vm.Self, types.PropertyChange{Name: "config.hardware.device", Val: []types.BaseVirtualDevice(devices)})
}

// copied returns devices that share nothing with the originals.
func copied(devices ...types.BaseVirtualDevice) object.VirtualDeviceList {
	var text bytes.Buffer
	var same types.ArrayOfVirtualDevice
	err := xml.NewEncoder(&text).Encode(types.ArrayOfVirtualDevice{VirtualDevice: devices})
	decoder := xml.NewDecoder(&text)
	decoder.TypeFunc = types.TypeFunc()
	if err = cmp.Or(err, decoder.Decode(&same)); err != nil {
		panic(fmt.Sprintf("vcsim: copying devices: %v", err))
	}
	return same.VirtualDevice
}

// AttachCard adds a network adapter to a VM.
func (s *Server) AttachCard(ctx context.Context, vm *simulator.VirtualMachine) (types.BaseVirtualDevice, error) {
	card := &types.VirtualVmxnet3{}
	card.Backing = &types.VirtualEthernetCardNetworkBackingInfo{VirtualDeviceDeviceBackingInfo: types.VirtualDeviceDeviceBackingInfo{DeviceName: "VM Network"}}
	template := vm.Config.Template
	s.Change(vm.Self, types.PropertyChange{Name: "config.template", Val: false}) // a vCenter changes no devices of templates
	err := object.NewVirtualMachine(s.Admin.Client, vm.Self).AddDevice(ctx, card)
	s.Change(vm.Self, types.PropertyChange{Name: "config.template", Val: template})
	return card, err
}
