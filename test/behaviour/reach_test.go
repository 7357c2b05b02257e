package behaviour_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func guarded(groups ...pcapi.SecurityGroupName) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.SecurityGroups = groups }
}

// public asks for an address of an external network; empty for none.
func public(network string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		vm.Spec.PublicAddress = nil
		if network != "" {
			vm.Spec.PublicAddress = &pcapi.VMPublicAddress{Network: network}
		}
	}
}

func allowed(addresses ...pcapi.AllowedAddress) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.AllowedAddresses = addresses }
}

func both(first, second func(*pcapi.VM)) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { first(vm); second(vm) }
}

// reachOf returns the groups of the server of a VM, and its public address.
func (f *fixture) reachOf(vm *pcapi.VM) func() ([]string, error) {
	return func() ([]string, error) {
		server, err := f.serverOf(vm)()
		if server.PublicAddress != nil {
			return append(server.SecurityGroups, server.PublicAddress.Address), err
		}
		return server.SecurityGroups, err
	}
}

func TestReach(t *testing.T) {
	cases{
		"a VM has its groups from the create on, and its address before it is ready; both can be changed, and groups are corrected when they drift": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.readyVM("web", guarded("web", "ssh"), public("ext-net"))
			t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpUpdate}))
			t.Expect(f.reachOf(vm)()).To(Equal([]string{"ssh", "web", "203.0.113.1"}))
			t.Eventually(latest(vm)).Should(And(
				HaveField("Status.PublicAddress", "203.0.113.1"), HaveField("Status.SecurityGroups", Equal([]string{"ssh", "web"})),
			))

			server, err := f.serverOf(vm)()
			t.Expect(err).NotTo(HaveOccurred())
			server.SecurityGroups = []string{"default", "web"}
			_, err = f.PutServer(server)
			t.Expect(err).NotTo(HaveOccurred())
			t.Eventually(f.reachOf(vm)).Should(Equal([]string{"ssh", "web", "203.0.113.1"}))

			edit(t, vm, both(guarded("web"), public("")))
			t.Eventually(f.reachOf(vm)).Should(Equal([]string{"web"}))
			t.Eventually(latest(vm)).Should(HaveField("Status.PublicAddress", ""))
			edit(t, vm, guarded())
			waitReady(t, vm)
			t.Expect(f.reachOf(vm)()).To(Equal([]string{"web"}))
		},
		"a VM has its allowed addresses before it is ready; they are corrected when they drift, and removed with the field": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.readyVM("web", allowed("10.0.0.250", "10.0.0.192/28"))
			server, err := f.serverOf(vm)()
			t.Expect(err).NotTo(HaveOccurred())
			t.Expect(server.AllowedAddresses).To(Equal([]string{"10.0.0.192/28", "10.0.0.250"}))
			t.Eventually(latest(vm)).Should(HaveField("Status.AllowedAddresses", Equal([]string{"10.0.0.192/28", "10.0.0.250"})))

			server.AllowedAddresses = []string{"0.0.0.0/0"}
			_, err = f.PutServer(server)
			t.Expect(err).NotTo(HaveOccurred())
			t.Eventually(f.serverOf(vm)).Should(HaveField("AllowedAddresses", Equal([]string{"10.0.0.192/28", "10.0.0.250"})))

			edit(t, vm, allowed("127.0.0.9"))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Rejected", "no server can use 127.0.0.9"))
			edit(t, vm, allowed())
			t.Eventually(f.serverOf(vm)).Should(HaveField("AllowedAddresses", BeEmpty()))
			waitReady(t, vm)
			t.Eventually(latest(vm)).Should(HaveField("Status.AllowedAddresses", BeEmpty()))
		},
		"a group that does not exist: the VM says so, is stopped all the same, and goes on after an edit": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.readyVM("web")
			edit(t, vm, both(guarded("nowhere"), func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff }))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Rejected", `there is no security group "nowhere"`))
			t.Eventually(latest(vm)).Should(HaveField("Status.State", pcapi.VMStateStopped))
			edit(t, vm, guarded("ssh"))
			waitReady(t, vm)
			t.Expect(f.reachOf(vm)()).To(Equal([]string{"ssh"}))
		},
		"a cloud without groups and addresses: the VM says so, and nothing is sent": func(t *T) {
			f := newFixture(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.WithSecurityGroups: false, mockcloud.AllowedAddresses: false, mockcloud.PublicAddresses: false}})
			vm := f.createVM("web", guarded("ssh"), allowed("10.0.0.250"), public("ext-net"))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "this cloud cannot set securityGroups, allowedAddresses, publicAddress"))
			t.Expect(f.createCalls()).To(BeZero())
			edit(t, vm, both(guarded(), both(allowed(), public(""))))
			waitReady(t, vm)
		},
	}.run(t)
}
