package openstack_test

import (
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
)

// TestGuest follows docs/openstack.md from a Cloud to a login by SSH from outside of the network of
// the project, and goes on with what a user does then.
func TestGuest(t *testing.T) {
	if !guests {
		t.Skip("needs servers that are guests: run make test-openstack GUEST=1")
	}
	g := newGuestCloud(t)
	network, vm := g.applyFirstVM()

	booted := g.step("is there, with a public address")
	g.t.Eventually(storedIn(g, network)).Should(testkit.BeReady())
	g.routeTo(network)
	g.t.Eventually(storedIn(g, vm)).Should(And(testkit.BeReady(),
		HaveField("Status.PublicAddress", Not(BeEmpty()))))
	made := current(g, vm).Status
	g.server = made.VMID
	address := sshAt(made.PublicAddress)
	booted()

	reached := g.step("accepts logins")
	guest := g.logIn(address)
	g.guestReady(vm, metav1.ConditionTrue, pcapi.PortOpenReason)
	reached()

	g.t.Expect(guest.run("cloud-init status --wait")).To(HaveSuffix("status: done"))
	g.t.Expect(guest.run("hostname")).To(Equal(vm.Name))
	g.t.Expect(guest.run("cat /run/user-data-ran")).To(Equal(vm.Name), "what the script of the Secret wrote")
	own := guest.run("ip -4 -o address show scope global | awk '{ print $4 }'")
	g.t.Expect(own).To(HaveSuffix("/24"))
	// Nova shows a public address some time after neutron does.
	g.t.Eventually(storedIn(g, vm)).Should(HaveField("Status.Network.Interfaces",
		ConsistOf(HaveField("Addresses", ConsistOf(made.PublicAddress, strings.TrimSuffix(own, "/24"))))))
	g.t.Expect(guest.run("getent ahostsv4 "+knownName)).To(HavePrefix(knownAddress+" "), "the DNS server of the Network answers")
	g.t.Expect(guest.run("nproc")).To(Equal("1"))

	closed := g.step("is closed by the default security group, and opened by the one of the page")
	edit(g, vm, func(vm *pcapi.VM) { vm.Spec.SecurityGroups = []pcapi.SecurityGroupName{"default"} })
	g.guestReady(vm, metav1.ConditionFalse, pcapi.ConnectionTimeoutReason)
	g.t.Expect(dial(address)).To(Satisfy(os.IsTimeout), "the port of sshd")
	edit(g, vm, func(vm *pcapi.VM) { vm.Spec.SecurityGroups = []pcapi.SecurityGroupName{"ssh"} })
	g.guestReady(vm, metav1.ConditionTrue, pcapi.PortOpenReason)
	guest = g.logIn(address)
	closed()

	taken := g.step("is frozen in a VMSnapshot and edited")
	guest.run("echo before > state && sync")
	snap := newSnapshot("before", vm.Name)
	g.t.Expect(g.env.Client.Create(g.t.Context(), snap)).To(Succeed())
	g.t.Eventually(storedIn(g, snap)).Should(testkit.BeReady())
	// Nova may suspend a guest for a snapshot.
	guest = g.logIn(address)
	guest.run("echo after > state && sync")
	taken()

	off := g.step("shuts down when the cloud asks it to")
	edit(g, vm, func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
	g.t.Eventually(storedIn(g, vm)).Should(HaveField("Status.State", pcapi.VMStateStopped))
	off()

	grown := g.step("boots with more processors, at the same public address")
	edit(g, vm, func(vm *pcapi.VM) {
		vm.Spec.CPU, vm.Spec.Memory, vm.Spec.PowerState = pcapi.Cores(2), pcapi.GiB(1), pcapi.PowerOn
	})
	g.t.Eventually(storedIn(g, vm)).Should(And(testkit.BeReady(), HaveField("Status.State", pcapi.VMStateRunning)))
	guest = g.logIn(address)
	g.t.Expect(guest.run("nproc")).To(Equal("2"))
	g.t.Expect(guest.run("last -x shutdown")).To(HavePrefix("shutdown "), "the record of a guest that was not just switched off")
	g.t.Expect(guest.run("cat state")).To(Equal("after"))
	grown()

	reverted := g.step("is reverted to the VMSnapshot")
	edit(g, vm, func(vm *pcapi.VM) { vm.Spec.CurrentSnapshotName = snap.Name })
	g.t.Eventually(storedIn(g, vm)).Should(HaveField("Status.Revert", HaveField("Phase", pcapi.VMRevertSucceeded)))
	guest = g.logIn(address)
	g.t.Expect(guest.run("cat state")).To(Equal("before"))
	g.t.Expect(current(g, vm).Status.PublicAddress).To(Equal(made.PublicAddress))
	reverted()

	deleted := g.step("is deleted, with all that was made for it")
	g.t.Expect(g.floatingAddresses()).To(ConsistOf(made.PublicAddress))
	g.remove(vm, snap, network)
	g.t.Expect(g.floatingAddresses()).To(BeEmpty())
	for _, resource := range []string{"routers", "networks", "ports"} {
		g.t.Expect(admin().list("network", resource, "project_id="+g.project.id)).To(BeEmpty(), resource)
	}
	deleted()
}

// step begins a part of the test, and returns a function that logs how long it took.
func (g *guestCloud) step(name string) func() {
	began := time.Now()
	return func() {
		g.t.Logf("the guest %s: %.0f s, %.0f s after the test began", name, time.Since(began).Seconds(), time.Since(g.began).Seconds())
	}
}
