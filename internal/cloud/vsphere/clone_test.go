package vsphere_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
	"github.com/vmware/govmomi/vim25/xml"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/vsphere"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
)

// keysOf returns the values of those keys of a VM's extraConfig that configure the guest or that the operator writes.
func keysOf(v *vcenter, vm string) map[string]string {
	keys := map[string]string{}
	for _, option := range v.VM(vm).Config.ExtraConfig {
		if o := option.GetOptionValue(); strings.HasPrefix(o.Key, "guestinfo.") || strings.HasPrefix(o.Key, "privatecloud.") {
			keys[o.Key] = fmt.Sprint(o.Value)
		}
	}
	return keys
}

// A template may be made from a VM that has all that the operator gives to VMs, with secrets.
func TestCloneOfATemplateMadeFromAVMHasNothingOfThatVM(t *testing.T) {
	v := newVCenter(t)
	source := v.client(t)
	create(t, source, cloud.CreateServer{
		Name: "golden", IdempotencyKey: someKey, Labels: map[string]string{"owner": "me"}, Disks: "data=1024", UserData: cloud.UserData("#cloud-config\npassword: secret\n"),
		PowerState: cloud.PowerOff,
	})
	for _, key := range []string{
		"guestinfo.vendordata", "guestinfo.vendordata.encoding", "guestinfo.ignition.config.data", "guestinfo.ignition.config.data.encoding",
		"guestinfo.ignition.config.url", "guestinfo.coreos.config.data", "guestinfo.coreos.config.data.encoding", "guestinfo.coreos.config.url",
	} {
		v.configure(t, "golden", key, "of others")
	}
	written := keysOf(v, "golden")
	if len(written) < 15 {
		t.Fatalf("the VM has the keys %v, want all that are ever written", written)
	}
	v.Convert(v.VM("golden"), true)
	c := v.client(t, func(cfg *vsphere.Config) {
		cfg.Place.TemplateFolder, cfg.Place.DefaultTemplate = vcsim.Folder, "golden"
	})
	created := create(t, c, cloud.CreateServer{Name: "plain", IdempotencyKey: "another"})
	got := keysOf(v, "plain")
	for key, value := range written {
		t.Run(key, func(t *testing.T) {
			if has, ok := got[key]; ok && has == value {
				t.Errorf("the clone has %q of the VM that its template was made from", value)
			}
			if has, ok := got[key]; ok && strings.HasPrefix(key, "guestinfo.") {
				t.Errorf("the clone has %q, want nothing", has)
			}
		})
	}
	if created.Disks != "" || len(created.Labels) != 0 {
		t.Errorf("the clone has the disks %q and the labels %v, want none", created.Disks, created.Labels)
	}
}

func TestParallelClonesHaveMACAddressesOfTheirOwn(t *testing.T) {
	v := newVCenter(t)
	if _, err := v.AttachCard(t.Context(), v.TemplateVM()); err != nil {
		t.Fatal(err)
	}
	v.Identify(v.TemplateVM())
	c := v.client(t)
	group := v.PortGroups()["DC0_DVPG0"]
	var creates sync.WaitGroup
	for n := range 6 {
		creates.Go(func() {
			req := cloud.CreateServer{Name: fmt.Sprintf("vm-%d", n), IdempotencyKey: uuid.NewString()}
			if n%2 == 0 {
				req.NetworkID = group
			}
			if _, err := insist(t.Context(), c, req); err != nil {
				t.Errorf("create %s: %v", req.Name, err)
			}
		})
	}
	creates.Wait()
	used := map[string]string{}
	for _, vm := range v.VMs() {
		for _, device := range object.VirtualDeviceList(vm.Config.Hardware.Device).SelectByType((*types.VirtualEthernetCard)(nil)) {
			card := device.(types.BaseVirtualEthernetCard).GetVirtualEthernetCard() //nolint:forcetypeassert // it is selected by type
			if other, ok := used[card.MacAddress]; ok {
				t.Errorf("%s and %s have the MAC address %s", other, vm.Name, card.MacAddress)
			}
			if card.ExternalId != "" && vm.Name != vcsim.Template {
				t.Errorf("%s has the external id %s of its template", vm.Name, card.ExternalId)
			}
			used[card.MacAddress] = vm.Name
		}
	}
	if len(used) != 2*len(v.VMs()) {
		t.Errorf("%d MAC addresses of %d VMs with two adapters each", len(used), len(v.VMs()))
	}
}

func TestNetworksOfACloneAreWhereAVCenterChecksThem(t *testing.T) {
	v := newVCenter(t)
	c := v.client(t)
	var sent methods.CloneVM_TaskBody
	v.Front.Rewrite(func(method, body string) string {
		if method == "CloneVM_Task" {
			decoder := xml.NewDecoder(strings.NewReader(body))
			decoder.TypeFunc = types.TypeFunc()
			if err := decoder.Decode(&soap.Envelope{Body: &sent}); err != nil {
				t.Error(err)
			}
		}
		return body
	})
	create(t, c, cloud.CreateServer{Name: "web", NetworkID: v.PortGroups()["DC0_DVPG0"], Disks: "data=1024"})
	kinds := func(changes []types.BaseVirtualDeviceConfigSpec) (networks, disks int) {
		for _, change := range changes {
			switch change.GetVirtualDeviceConfigSpec().Device.(type) {
			case types.BaseVirtualEthernetCard:
				networks++
			case *types.VirtualDisk:
				disks++
			}
		}
		return networks, disks
	}
	if networks, disks := kinds(sent.Req.Spec.Location.DeviceChange); networks != 1 || disks != 0 {
		t.Errorf("location.deviceChange has %d networks and %d disks, want 1 and 0", networks, disks)
	}
	if networks, disks := kinds(sent.Req.Spec.Config.DeviceChange); networks != 0 || disks != 1 {
		t.Errorf("config.deviceChange has %d networks and %d disks, want 0 and 1", networks, disks)
	}
}
