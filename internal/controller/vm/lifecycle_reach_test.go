package vm

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/controller"
)

// withReach is a cloud with security groups, allowed and public addresses.
var withReach = cloud.NewCapabilities(append(without(), cloud.WithSecurityGroups, cloud.WithAllowedAddresses, cloud.PublicAddresses)...)

func guarded(groups ...pcapi.SecurityGroupName) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.SecurityGroups = groups }
}

func public(vm *pcapi.VM) {
	vm.Spec.PublicAddress = &pcapi.VMPublicAddress{Network: cloudfake.ExternalNetwork}
}

// publicAddress is the first address of the external network.
const publicAddress = "203.0.113.1"

func hasPublic(vm *pcapi.VM) { vm.Status.PublicAddress = publicAddress }

func reached(groups cloud.SecurityGroups, address string) func(*cloud.Server) {
	return func(s *cloud.Server) { s.SecurityGroups, s.PublicAddress = groups, address }
}

func TestSecurityGroupsOfAServer(t *testing.T) {
	for name, test := range map[string]struct {
		groups []pcapi.SecurityGroupName
		has    cloud.SecurityGroups
		calls  []string
		want   cloud.SecurityGroups
	}{
		"none in the spec: the server keeps its own":    {has: "default", want: "default"},
		"it has them in another order: nothing is sent": {groups: []pcapi.SecurityGroupName{"web", "ssh"}, has: "ssh\nweb", want: "ssh\nweb"},
		"one was added in the cloud: removed":           {groups: []pcapi.SecurityGroupName{"web"}, has: "open\nweb", calls: []string{"update s1"}, want: "web"},
		"one was removed in the cloud: added":           {groups: []pcapi.SecurityGroupName{"web", "ssh"}, has: "web", calls: []string{"update s1"}, want: "ssh\nweb"},
		"the cloud shows none: set":                     {groups: []pcapi.SecurityGroupName{"web"}, calls: []string{"update s1"}, want: "web"},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, withReach, onRecord(guarded(test.groups...)), serverWith(reached(test.has, "")))
			h.mustReconcile()
			h.wantCalls(test.calls...)
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			equal(t, "groups", test.want, h.cloud.Server("s1").SecurityGroups)
			h.later(pollInterval)
			h.mustReconcile()
			h.wantCalls()
			equal(t, "status", test.want.List(), h.vm().Status.SecurityGroups)
		})
	}
}

func TestPublicAddressOfAServer(t *testing.T) {
	const address = publicAddress
	for name, test := range map[string]struct {
		vm     *pcapi.VM
		has    string
		calls  []string
		want   string
		status string
	}{
		"asked for: given":                             {vm: onRecord(public), calls: []string{"update s1"}, want: address, status: address},
		"it has one: nothing is sent":                  {vm: onRecord(public, hasPublic), has: address, want: address, status: address},
		"removed in the cloud: given again":            {vm: onRecord(public, hasPublic), calls: []string{"update s1"}, want: address, status: address},
		"removed from the spec: deleted":               {vm: onRecord(hasPublic), has: address, calls: []string{"update s1"}},
		"removed from the spec, and in the cloud":      {vm: onRecord(hasPublic)},
		"of an import that came with it: it is kept":   {vm: onRecord(importing), has: address, want: address},
		"of an import, given and never shown: deleted": {vm: onRecord(importing), has: cloud.AddressPending, calls: []string{"update s1"}},
		"it is pending: asked for again":               {vm: onRecord(public), has: cloud.AddressPending, calls: []string{"update s1"}, want: address, status: address},
		"it was given and never shown: deleted":        {vm: onRecord(), has: cloud.AddressPending, calls: []string{"update s1"}},
		"of a server that came with it and asked for":  {vm: onRecord(public), has: address, want: address, status: address},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, withReach, test.vm, serverWith(reached("", test.has)))
			h.mustReconcile()
			h.wantCalls(test.calls...)
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			h.later(pollInterval)
			h.mustReconcile()
			h.wantCalls()
			equal(t, "address", test.want, h.cloud.Server("s1").PublicAddress)
			equal(t, "status", test.status, h.vm().Status.PublicAddress)
		})
	}
}

// allowed lets a VM use addresses beside its own.
func allowed(addresses ...pcapi.AllowedAddress) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.AllowedAddresses = addresses }
}

func TestAllowedAddressesOfAServer(t *testing.T) {
	had := func(addresses ...string) func(*pcapi.VM) {
		return func(vm *pcapi.VM) { vm.Status.AllowedAddresses = addresses }
	}
	update := []string{"update s1"}
	for name, test := range map[string]struct {
		vm    *pcapi.VM
		has   cloud.AllowedAddresses
		calls []string
		want  cloud.AllowedAddresses
		// hidden: the status has none, whatever the server has.
		hidden bool
	}{
		"asked for: set": {vm: onRecord(allowed("10.0.0.9", "10.0.0.16/28")), calls: update, want: "10.0.0.16/28\n10.0.0.9"},
		"it has them in another order: nothing is sent": {vm: onRecord(allowed("10.0.0.9", "10.0.0.16/28")), has: "10.0.0.16/28\n10.0.0.9", want: "10.0.0.16/28\n10.0.0.9"},
		"changed in the cloud: changed back":            {vm: onRecord(allowed("10.0.0.9"), had("10.0.0.9")), has: "0.0.0.0/0", calls: update, want: "10.0.0.9"},
		"removed in the cloud: set again":               {vm: onRecord(allowed("10.0.0.9"), had("10.0.0.9")), calls: update, want: "10.0.0.9"},
		"removed from the spec: removed":                {vm: onRecord(had("10.0.0.9")), has: "10.0.0.9", calls: update},
		"set by others, never in the spec: kept":        {vm: onRecord(), has: "10.0.0.9", want: "10.0.0.9", hidden: true},
		"of an import that came with them: kept":        {vm: onRecord(importing), has: "10.0.0.9", want: "10.0.0.9", hidden: true},
		"of an import, of the spec before: removed":     {vm: onRecord(importing, had("10.0.0.9")), has: "10.0.0.9", calls: update},
		"of an import, changed halfway: removed":        {vm: onRecord(importing), has: cloud.AddressPending, calls: update},
		"changed halfway: set again":                    {vm: onRecord(allowed("10.0.0.9"), had("10.0.0.8")), has: cloud.AddressPending, calls: update, want: "10.0.0.9"},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, withReach, test.vm, serverWith(func(s *cloud.Server) { s.AllowedAddresses = test.has }))
			h.mustReconcile()
			h.wantCalls(test.calls...)
			h.wantCondition(pcapi.ReadyCondition, "True Running")
			h.later(pollInterval)
			h.mustReconcile()
			h.wantCalls()
			equal(t, "addresses", test.want, h.cloud.Server("s1").AllowedAddresses)
			shown := test.want.List()
			if test.hidden {
				shown = nil
			}
			equal(t, "status", shown, h.vm().Status.AllowedAddresses)
		})
	}
}

// A VM is created with its groups, and has its allowed and public addresses before it is Ready.
func TestReachOfANewVM(t *testing.T) {
	h := newHarness(t, withReach, vmWith(guarded("web", "ssh"), allowed("10.0.0.9"), public))
	for range 4 {
		h.mustReconcile()
		h.advance(time.Second)
	}
	h.wantCalls("check web", "create web", "update s1", "update s1")
	h.wantCondition(pcapi.ReadyCondition, "True Running")
	s := h.cloud.Server("s1")
	equal(t, "groups", cloud.SecurityGroups("ssh\nweb"), s.SecurityGroups)
	equal(t, "allowed addresses", cloud.AllowedAddresses("10.0.0.9"), s.AllowedAddresses)
	equal(t, "address", publicAddress, s.PublicAddress)
}

// What the cloud refuses of one part does not keep the others from being changed.
func TestReachIsChangedAlone(t *testing.T) {
	refused := map[string]struct {
		vm   func(*pcapi.VM)
		want string
	}{
		"a group that does not exist":    {guarded(cloudfake.NoGroup), `there is no security group "nowhere"`},
		"an address that is not allowed": {allowed(cloudfake.NotAllowed), "no server may use 127.0.0.1"},
		"a network that does not exist": {
			func(vm *pcapi.VM) { vm.Spec.PublicAddress = &pcapi.VMPublicAddress{Network: "none"} }, `no external network is named "none"`,
		},
	}
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, withReach, onRecord(test.vm, poweredOff), serverWith(withCores(1)))
			for range 4 {
				h.mustReconcile()
				h.advance(time.Second)
			}
			equal(t, "state", cloud.StateStopped, h.cloud.Server("s1").State)
			equal(t, "cores", 2, h.cloud.Server("s1").CPU)
			h.wantCondition(pcapi.ReadyCondition, "False Rejected", test.want)
			h.wantCalls("update s1", "update s1") // the part that is refused, and the others
			h.later(pollInterval)
			h.mustReconcile()
			h.wantCalls()
			h.later(controller.RecheckRefused)
			h.mustReconcile()
			h.wantCondition(pcapi.ReadyCondition, "False Rejected", test.want)
		})
	}
	t.Run("groups are set though no address is free", func(t *testing.T) {
		h := harnessWithServer(t, withReach, onRecord(guarded("web"), public), serverWith())
		h.mustReconcile()
		h.advance(time.Second)
		h.cloud.Fail(cloudfake.UpdateServer, &cloud.Error{Kind: cloud.Quota, Op: "update server s1", Detail: "no address is free"}, false)
		h.mustReconcile()
		equal(t, "groups", cloud.SecurityGroups("web"), h.cloud.Server("s1").SecurityGroups)
		h.wantCondition(pcapi.ReadyCondition, "False QuotaExceeded", "no capacity left")
	})
}

// keepsAddresses is a cloud whose public addresses outlive their servers.
type keepsAddresses struct {
	*cloudfake.Cloud
	fails []error
	// deleted are the servers whose address was to be deleted, and early those that existed then.
	deleted, early []string
}

func (k *keepsAddresses) DeletePublicAddresses(_ context.Context, serverID string) error {
	k.deleted = append(k.deleted, serverID)
	if slices.Contains(k.ServerIDs(), serverID) {
		k.early = append(k.early, serverID)
	}
	if len(k.fails) == 0 {
		return nil
	}
	err := k.fails[0]
	k.fails = k.fails[1:]
	return err
}

func TestPublicAddressesThatOutliveTheirServerAreDeletedAfterIt(t *testing.T) {
	away := &cloud.Error{Kind: cloud.Unavailable, Op: "delete the public address of server s1", Detail: "503 of http://neutron.example:9696"}
	lost := func(vm *pcapi.VM) {
		meta.SetStatusCondition(&vm.Status.Conditions, metav1.Condition{Type: pcapi.CreatedCondition, Status: metav1.ConditionFalse, Reason: pcapi.LostReason})
	}
	for name, test := range map[string]struct {
		vm    *pcapi.VM
		gone  bool
		fails []error
		want  []string
	}{
		"the server is deleted":                  {vm: onRecord(deleted), want: []string{"s1"}},
		"an earlier manager has deleted it":      {vm: onRecord(deleted), gone: true, want: []string{"s1"}},
		"somebody else has deleted the server":   {vm: onRecord(public, deleted, lost), gone: true, want: []string{"s1"}},
		"and it never had an address":            {vm: onRecord(deleted, lost), gone: true},
		"the address cannot be deleted at once":  {vm: onRecord(deleted), fails: []error{away}, want: []string{"s1", "s1"}},
		"the server stays":                       {vm: onRecord(deleted, orphaning)},
		"the VM is only observed and is deleted": {vm: onRecord(deleted, observing), gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, withReach, test.vm)
			if !test.gone {
				h.cloud.AddServers(serverWith())
			}
			c := &keepsAddresses{Cloud: h.cloud, fails: test.fails}
			h.inv.Connect(c, h.cloud.Can())
			h.poll()
			for range 5 {
				h.mustReconcile()
				if vm, there := h.find(); there && len(test.fails) > 0 && len(c.deleted) == 1 && !slices.Contains(vm.Finalizers, pcapi.VMFinalizer) {
					t.Error("the VM is released before its address is deleted")
				}
				h.later(settleTime)
				if _, there := h.find(); !there {
					break
				}
			}
			if _, there := h.find(); there {
				t.Error("the VM is still there")
			}
			equal(t, "servers whose address is deleted", test.want, c.deleted)
			equal(t, "servers that existed then", []string(nil), c.early)
		})
	}
}
