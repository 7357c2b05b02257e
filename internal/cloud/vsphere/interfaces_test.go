package vsphere_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/privatecloud/operator/internal/cloud"
)

// setGuestAddress has the simulated guest of a VM report an address of its first interface.
func (v *vcenter) setGuestAddress(t *testing.T, name, address string) {
	t.Helper()
	v.set(t, name, "guest.ipAddress", address)
}

func (v *vcenter) setHeartbeat(t *testing.T, name string, status types.ManagedEntityStatus) {
	t.Helper()
	v.set(t, name, "guestHeartbeatStatus", string(status))
}

// set gives a property of a VM another value.
func (v *vcenter) set(t *testing.T, name, property, value string) {
	t.Helper()
	v.configure(t, name, "SET."+property, value)
}

// configure gives a key of the extraConfig of a VM another value.
func (v *vcenter) configure(t *testing.T, name, key, value string) {
	t.Helper()
	vm := object.NewVirtualMachine(v.Admin.Client, v.VM(name).Self)
	task, err := vm.Reconfigure(t.Context(), types.VirtualMachineConfigSpec{
		ExtraConfig: []types.BaseOptionValue{&types.OptionValue{Key: key, Value: value}},
	})
	if err == nil {
		err = task.Wait(t.Context())
	}
	if err != nil {
		t.Fatalf("set %s of VM %s: %v", key, name, err)
	}
}

func TestInterfacesAreInTheOrderOfTheDevices(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	server := create(t, c, cloud.CreateServer{Name: "web"})
	var vlans []types.GuestNicInfo
	var list []cloud.Interface
	for n := range 40 {
		device, address := 4000+n%2, fmt.Sprintf("10.0.%d.5", n)
		vlans = append(vlans, types.GuestNicInfo{DeviceConfigId: int32(device), IpAddress: []string{address}})
		if device == 4000 {
			list = append(list, cloud.Interface{Addresses: []string{address}})
		}
	}
	inOrder, _ := cloud.NewInterfaces(list)
	for name, test := range map[string]struct {
		reported []types.GuestNicInfo
		want     cloud.Interfaces
	}{
		"a guest without VMware Tools": {},
		"two interfaces in another order": {
			reported: []types.GuestNicInfo{
				{MacAddress: "00:0c:29:00:00:02", DeviceConfigId: 4001, IpAddress: []string{"10.0.1.5"}},
				{MacAddress: "00:0c:29:00:00:01", DeviceConfigId: 4000, IpAddress: []string{"fe80::20c:29ff:fe00:1", "10.0.0.5", "fd00::5"}},
			},
			want: "00:0c:29:00:00:01,10.0.0.5,fd00::5 00:0c:29:00:00:02,10.0.1.5",
		},
		"a device with many interfaces, such as VLANs: in the order of the guest": {reported: vlans, want: inOrder},
		"interfaces of containers": {
			reported: []types.GuestNicInfo{
				{MacAddress: "02:42:00:00:00:01", DeviceConfigId: -1, IpAddress: []string{"172.17.0.1"}},
				{MacAddress: "00:0c:29:00:00:01", DeviceConfigId: 4000, IpAddress: []string{"10.0.0.5"}},
			},
			want: "00:0c:29:00:00:01,10.0.0.5",
		},
	} {
		v.Change(v.VM("web").Self, types.PropertyChange{Name: "guest.net", Val: test.reported})
		got, err := c.GetServer(t.Context(), server.ID)
		if diff := cmp.Diff(test.want, got.Interfaces); diff != "" || err != nil {
			t.Errorf("%s: %v, interfaces (-want +got):\n%s", name, err, diff)
		}
	}
}

// A guest says how much the vCenter answers about its VM. A page with a few VMs that report
// thousands of addresses is too large, and must not stay so.
func TestGuestsWithManyAddressesDoNotMakeAListingUnreadable(t *testing.T) {
	const vms = 4
	v := newVCenter(t)
	c := v.client(t)
	c.SetMaxBody(64 << 10)
	many := types.GuestNicInfo{MacAddress: "00:0c:29:00:00:01", DeviceConfigId: 4000}
	for n := range 1000 {
		many.IpAddress = append(many.IpAddress, fmt.Sprintf("fd00::%x", n))
	}
	for n := range vms {
		name := fmt.Sprint("web-", n)
		create(t, c, cloud.CreateServer{Name: name})
		v.Change(v.VM(name).Self, types.PropertyChange{Name: "guest.net", Val: []types.GuestNicInfo{many}})
	}
	list := func() (all []cloud.Server, err error) {
		for marker := ""; ; {
			page, err := c.ListServers(t.Context(), cloud.ListServers{Marker: marker})
			if err != nil {
				return nil, err
			}
			if all = append(all, page.Servers...); page.Next == "" {
				return all, nil
			}
			marker = page.Next
		}
	}
	if _, err := list(); !cloud.Is(err, cloud.Unreadable) {
		t.Fatalf("the first listing: %v, want Unreadable: the test needs larger answers", err)
	}
	var all []cloud.Server
	var err error
	for range 6 {
		if all, err = list(); err == nil {
			break
		}
	}
	if err != nil || len(all) != vms {
		t.Fatalf("a later listing: %d VMs, %v; want %d", len(all), err, vms)
	}
	if got := len(all[0].Interfaces.List()[0].Addresses); got != cloud.MaxAddresses {
		t.Errorf("%d addresses, want %d", got, cloud.MaxAddresses)
	}
	watchServers(t, c)
}

func TestHeartbeatIsThatOfTheGuest(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	server := create(t, c, cloud.CreateServer{Name: "web"})
	for status, want := range map[types.ManagedEntityStatus]cloud.Heartbeat{
		types.ManagedEntityStatusGreen: cloud.HeartbeatOK, types.ManagedEntityStatusYellow: cloud.HeartbeatOK,
		types.ManagedEntityStatusRed: cloud.HeartbeatLost, types.ManagedEntityStatusGray: cloud.HeartbeatNone, "purple": cloud.HeartbeatUnknown,
	} {
		v.setHeartbeat(t, "web", status)
		got, err := c.GetServer(t.Context(), server.ID)
		if err != nil || got.Heartbeat != want {
			t.Errorf("%s: heartbeat %d, %v, want %d", status, got.Heartbeat, err, want)
		}
		if listed := list(t, c); len(listed) != 1 || listed[0].Heartbeat != want {
			t.Errorf("%s: listed %+v, want heartbeat %d", status, listed, want)
		}
	}
}
