package guest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/clouds/vspheredialer"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/internal/testkit/sshlogin"
)

// ovfEnvironment is what a vCenter shows the guest of a VM with a vApp configuration, here that
// of the OVA of a distribution, whose properties nobody has set.
const ovfEnvironment = `<?xml version="1.0" encoding="UTF-8"?>
<Environment xmlns="http://schemas.dmtf.org/ovf/environment/1" xmlns:oe="http://schemas.dmtf.org/ovf/environment/1" oe:id="">
  <PlatformSection><Kind>VMware ESXi</Kind><Version>8.0.3</Version><Vendor>VMware, Inc.</Vendor><Locale>en</Locale></PlatformSection>
  <PropertySection>
    <Property oe:key="hostname" oe:value="template"/>
    <Property oe:key="instance-id" oe:value="id-ovf"/>
    <Property oe:key="public-keys" oe:value=""/>
  </PropertySection>
</Environment>
`

// onVMware are the arguments by which a machine looks like one of VMware, so that cloud-init
// asks for guestinfo: without the emulator's own CPUID leaf, the vendor of the firmware counts.
var onVMware = []string{"-cpu", "max,hypervisor=off", "-smbios", "type=1,manufacturer=VMware,, Inc.,product=VMware Virtual Platform"}

// hostsConfig is user data of a guest that knows its own name with the domain.
const hostsConfig = `#cloud-config
manage_etc_hosts: true
runcmd:
- id -un >/run/user-data-ran
`

// esxi returns the machine that a host makes of a VM of the vCenter.
func esxi(v *vcsim.Server, name string) machine {
	vm := v.VM(name)
	m := machine{
		cpu: int(vm.Config.Hardware.NumCPU), memoryMiB: int(vm.Config.Hardware.MemoryMB), address: lan.given,
		firmware: map[string]string{}, qemu: onVMware,
	}
	for _, option := range vm.Config.ExtraConfig {
		if o := option.GetOptionValue(); strings.HasPrefix(o.Key, "guestinfo.") {
			m.firmware[o.Key] = fmt.Sprint(o.Value)
		}
	}
	for _, gib := range vcsim.Disks(vm) {
		m.disksMiB = append(m.disksMiB, gib<<10)
	}
	slices.Sort(m.disksMiB)
	if v.HasOVFEnvironment(name) {
		m.drives = append(m.drives, drive{"OVF ENV", map[string]string{"ovf-env.xml": ovfEnvironment}})
	}
	return m
}

// The template has a vApp configuration. With an OVF environment beside the keys of guestinfo,
// cloud-init would not read these, and nobody could log in.
func TestGuestOfVSphere(t *testing.T) {
	needGuests(t)
	t.Parallel()
	v, err := vcsim.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	v.GiveVApp(v.TemplateVM())
	client := dial(t, vspheredialer.Dialer{}, testkit.Cloud("vsphere", v.URL, func(c *pcapi.Cloud) {
		c.Spec.Type, c.Spec.REST = pcapi.CloudTypeVSphere, nil
		c.Spec.VSphere = &pcapi.VSphereCloud{
			Datacenter: "DC0", Folder: vcsim.Folder, ResourcePool: "/DC0/host/DC0_C0/Resources", Datastore: "LocalDS_0",
			Templates: pcapi.VSphereTemplates{Folder: "/DC0/vm", Default: vcsim.Template},
		}
	}), map[string]string{"username": "u", "password": "p"})
	private, public := sshlogin.NewKey(t)
	server := create(t, client, vm("db-1.example.com", public, func(vm *pcapi.VM) {
		vm.Spec.Disks = []pcapi.VMDisk{{Name: "data", Size: "1Gi"}}
	}), hostsConfig)
	m := esxi(v, "db-1.example.com")
	s := boot(t, m).logIn(private)
	s.check(m, expected{source: "DataSourceVMware", instance: server.ID, hostname: "db-1.example.com"})
	s.shutDown()
}
