package vm

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/external"
)

var (
	withInterfaces = cloud.NewCapabilities(append(without(), cloud.Networks, cloud.WithInterfaces, cloud.StaticAddresses)...)
	oneInterface   = cloud.NewCapabilities(append(without(), cloud.Networks)...)
)

// on gives a VM an interface on a Network, with static addresses.
func on(network string, addresses ...pcapi.VMAddress) func(*pcapi.VM) {
	return func(vm *pcapi.VM) {
		if vm.Spec.Network == nil {
			vm.Spec.Network = &pcapi.VMNetwork{}
		}
		vm.Spec.Network.Interfaces = append(vm.Spec.Network.Interfaces, pcapi.VMInterface{
			Name: "on-" + network, NetworkRef: pcapi.NetworkReference{Name: network}, Addresses: addresses,
		})
	}
}

// rangedNet is a Network with a range, whose id is its name.
func rangedNet(name, cidr, gateway string) *pcapi.Network {
	return netWith(func(net *pcapi.Network) {
		net.Name, net.Status.NetworkID, net.Status.CIDR, net.Status.Gateway = name, name, cidr, gateway
	})
}

// harnessWithNetworks has the Networks a, 10.0.0.0/24, and b, with another range, on a cloud with both.
func harnessWithNetworks(t *testing.T, caps cloud.Capabilities, cidrOfB string, objects ...client.Object) *harness {
	t.Helper()
	h := newHarness(t, caps, append(objects, rangedNet("a", "10.0.0.0/24", "10.0.0.1"), rangedNet("b", cidrOfB, ""))...)
	h.cloud.AddNetworks(cloud.Network{ID: "a"}, cloud.Network{ID: "b"})
	return h
}

func TestUnusableAddress(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ cidr, gateway, address, want string }{
		"inside":                                {"10.0.0.0/24", "10.0.0.1", "10.0.0.5", ""},
		"outside":                               {"10.0.0.0/24", "10.0.0.1", "10.0.1.5", "is not inside the range"},
		"of the other family":                   {"10.0.0.0/24", "10.0.0.1", "fd00::5", "is not inside the range"},
		"the gateway":                           {"10.0.0.0/24", "10.0.0.1", "10.0.0.1", "is the gateway"},
		"the gateway in another form":           {"fd00::/64", "fd00:0::1", "fd00::1", "is the gateway"},
		"the first":                             {"10.0.0.0/24", "10.0.0.1", "10.0.0.0", "is the network address"},
		"the last":                              {"10.0.0.0/24", "10.0.0.1", "10.0.0.255", "is the broadcast address"},
		"the first of IPv6":                     {"fd00::/64", "fd00::1", "fd00::", "is the network address"},
		"the last of IPv6, which is no special": {"fd00::/64", "fd00::1", "fd00::ffff:ffff:ffff:ffff", ""},
		"the second of two":                     {"10.0.0.0/31", "10.0.0.0", "10.0.0.1", ""},
		"the first of all":                      {"0.0.0.0/0", "10.0.0.1", "0.0.0.0", "is the network address"},
		"no range":                              {"", "", "10.0.0.5", ""},
		"a range that cannot be read":           {"ten", "", "10.0.0.5", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := unusable(test.address, rangedNet("net", test.cidr, test.gateway))
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("%s on %s with gateway %s: %q, want %q in it", test.address, test.cidr, test.gateway, got, test.want)
			}
		})
	}
}

func TestCreateWithInterfaces(t *testing.T) {
	for name, test := range map[string]struct {
		change []func(*pcapi.VM)
		caps   cloud.Capabilities
		// network and attached are what the create asks for.
		network  string
		attached []cloud.Attachment
	}{
		"two interfaces: both networks in their order": {
			change: []func(*pcapi.VM){on("b"), on("a")}, caps: withInterfaces, network: "b",
			attached: []cloud.Attachment{{NetworkID: "b"}, {NetworkID: "a"}},
		},
		"one with a static address": {
			change: []func(*pcapi.VM){on("a", "10.0.0.5")}, caps: withInterfaces, network: "a",
			attached: []cloud.Attachment{{NetworkID: "a", Addresses: []string{"10.0.0.5"}}},
		},
		"one without an address: as networkRef, also on a cloud that has one interface": {
			change: []func(*pcapi.VM){on("a")}, caps: oneInterface, network: "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithNetworks(t, test.caps, "10.0.1.0/24", vmWith(test.change...))
			h.mustReconcile()
			h.wantCalls("check web", "create web")
			equal(t, "the server's network", test.network, h.cloud.Server("s1").NetworkID)
			equal(t, "interfaces", test.attached, h.cloud.Attachments("s1"))
		})
	}
}

func TestPlanCreateWithInterfacesThatTheCloudLacks(t *testing.T) {
	one := func(caps ...cloud.Capability) *observation {
		return obsWith(cloud.NewCapabilities(append(without(), caps...)...))
	}
	stalled := "stalled: Unsupported, again in 10m0s"
	runPlans(t, []planCase{
		{name: "no networks", vm: vmWith(on("a")), obs: one(), outcome: stalled, message: "cannot set network:"},
		{name: "one interface", vm: vmWith(on("a"), on("b")), obs: one(cloud.Networks), outcome: stalled, message: "cannot set a second interface in network.interfaces: remove it"},
		{name: "no static addresses", vm: vmWith(on("a", "10.0.0.5")), obs: one(cloud.Networks, cloud.WithInterfaces), outcome: stalled, message: "cannot set addresses in network.interfaces: remove it"},
	})
}

func TestAddressThatTheNetworkCannotGiveIsNotSent(t *testing.T) {
	h := harnessWithNetworks(t, withInterfaces, "10.0.1.0/24", vmWith(on("a"), on("b", "10.0.0.5")))
	h.mustReconcile()
	why := `spec.network.interfaces[on-b].addresses: 10.0.0.5 is not inside the range of Network "b", 10.0.1.0/24: choose another address inside 10.0.1.0/24`
	h.wantCondition(pcapi.ReadyCondition, "False "+pcapi.AddressInvalidReason, why)
	h.wantCondition(pcapi.StalledCondition, "True "+pcapi.AddressInvalidReason)
	h.wantCalls()
	h.wantClaim("")
	h.edit(func(vm *pcapi.VM) { vm.Spec.Network.Interfaces[1].Addresses = []pcapi.VMAddress{"10.0.1.5"} })
	h.mustReconcile()
	h.wantCondition(pcapi.ReadyCondition, "True "+pcapi.RunningReason)
	equal(t, "interfaces", []cloud.Attachment{{NetworkID: "a"}, {NetworkID: "b", Addresses: []string{"10.0.1.5"}}}, h.cloud.Attachments("s1"))
}

func TestAddressOfAnotherVM(t *testing.T) {
	asks := on("a", "10.0.0.5")
	other := func(change ...func(*pcapi.VM)) client.Object {
		return vmWith(append([]func(*pcapi.VM){func(vm *pcapi.VM) {
			vm.Name, vm.UID, vm.Spec.VMName = "db", "another-uid", "db"
			vm.CreationTimestamp = metav1.NewTime(vm.CreationTimestamp.Add(time.Hour))
		}}, change...)...)
	}
	first := func(vm *pcapi.VM) { vm.CreationTimestamp = metav1.NewTime(startTime.Add(-48 * time.Hour)) }
	made := func(vm *pcapi.VM) { vm.Status.VMID = "other" }
	claims := func(vm *pcapi.VM) { vm.Finalizers = []string{pcapi.VMFinalizer} }
	for name, test := range map[string]struct {
		other client.Object
		taken bool
	}{
		"it exists: it has the address":               {other(asks, made), true},
		"it may exist: it has the address":            {other(asks, claims), true},
		"it is older: it gets the address":            {other(asks, first), true},
		"it is younger: it waits":                     {other(asks), false},
		"another address":                             {other(on("a", "10.0.0.6"), made), false},
		"the same address of another Network":         {other(on("b", "10.0.0.5"), made), false},
		"the same address, in another namespace":      {other(asks, made, func(vm *pcapi.VM) { vm.Namespace = "other" }), false},
		"no static address, on the same Network":      {other(on("a"), made), false},
		"the Network is that of its networkRef":       {other(func(vm *pcapi.VM) { vm.Spec.NetworkRef = &pcapi.NetworkReference{Name: "a"} }, made), false},
		"its address is that of its second interface": {other(on("b"), asks, made), true},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithNetworks(t, withInterfaces, "10.0.0.0/24", vmWith(asks), test.other)
			result := h.mustReconcile()
			if !test.taken {
				h.wantCondition(pcapi.ReadyCondition, "True "+pcapi.RunningReason)
				return
			}
			h.wantCondition(pcapi.ReadyCondition, "False "+pcapi.AddressInUseReason, `spec.network.interfaces[on-a].addresses: 10.0.0.5 is that of VM "db" on Network "a": choose another address, or delete that VM`)
			h.wantCalls()
			if result.RequeueAfter > 2*external.RecheckSoon || result.RequeueAfter == 0 {
				t.Errorf("looked at again after %s", result.RequeueAfter)
			}
			if err := h.client.Delete(t.Context(), test.other); err != nil {
				t.Fatalf("Delete: %v", err)
			}
			if db := test.other.(*pcapi.VM); len(db.Finalizers) > 0 {
				return // it is not gone yet
			}
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "True "+pcapi.RunningReason)
		})
	}
}

// Of two VMs that were claimed at the same time, one must be able to go on.
func TestPrecedesIsAnOrder(t *testing.T) {
	t.Parallel()
	a, b := vmWith(), vmWith(func(vm *pcapi.VM) { vm.UID = "z" })
	b.Finalizers = []string{pcapi.VMFinalizer}
	a.Finalizers = b.Finalizers
	claimedObs := &observation{}
	claimedObs.Claimed = "web"
	if precedes(a, b, claimedObs) == precedes(b, a, claimedObs) {
		t.Error("of two VMs with claims, each or none comes first")
	}
}
