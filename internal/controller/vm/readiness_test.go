package vm

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
)

var withHeartbeats = cloud.NewCapabilities(append([]cloud.Capability{cloud.GuestHeartbeat}, everything...)...)

var withAddresses = cloud.NewCapabilities(append([]cloud.Capability{cloud.Addresses}, everything...)...)

func probed(vm *pcapi.VM) {
	vm.Spec.ReadinessProbe = &pcapi.VMReadinessProbe{Address: &pcapi.VMAddressProbe{}}
}

func heartbeatProbed(vm *pcapi.VM) {
	vm.Spec.ReadinessProbe = &pcapi.VMReadinessProbe{GuestHeartbeat: &pcapi.VMGuestHeartbeatProbe{}}
}

func beating(heartbeat cloud.Heartbeat) func(*cloud.Server) {
	return func(s *cloud.Server) { s.Heartbeat = heartbeat }
}

func addressed(addresses ...string) func(*cloud.Server) {
	return func(s *cloud.Server) {
		s.Interfaces, _ = cloud.NewInterfaces([]cloud.Interface{{MAC: "fa:16:3e:00:00:01", Addresses: addresses}})
	}
}

func TestGuestReady(t *testing.T) {
	for name, test := range map[string]struct {
		caps   cloud.Capabilities
		spec   func(*pcapi.VM)
		server func(*cloud.Server)
		want   string
		ready  string
	}{
		"an IPv4 address: ready":                {withAddresses, probed, addressed("10.0.0.5"), "True AddressKnown", "True Running"},
		"an IPv6 address: ready":                {withAddresses, probed, addressed("fd00::5"), "True AddressKnown", "True Running"},
		"a link-local address alone: not ready": {withAddresses, probed, addressed("fe80::5", "169.254.0.5"), "False NoAddress", "True Running"},
		"an interface without address":          {withAddresses, probed, addressed(), "False NoAddress", "True Running"},
		"no interface":                          {withAddresses, probed, func(*cloud.Server) {}, "False NoAddress", "True Running"},
		"it is off: not ready": {withAddresses, func(vm *pcapi.VM) { probed(vm); vm.Spec.PowerState = pcapi.PowerOff },
			func(s *cloud.Server) { addressed("10.0.0.5")(s); s.State = cloud.StateStopped }, "False NotRunning", "True Stopped"},
		"it is suspended: not ready": {withAddresses, func(vm *pcapi.VM) { probed(vm); vm.Spec.PowerState = pcapi.PowerSuspended },
			func(s *cloud.Server) { addressed("10.0.0.5")(s); s.State = cloud.StateSuspended }, "False NotRunning", "True Suspended"},
		"the cloud shows no addresses: unknown":           {everything, probed, func(*cloud.Server) {}, "Unknown Unsupported", "True Running"},
		"a heartbeat: ready":                              {withHeartbeats, heartbeatProbed, beating(cloud.HeartbeatOK), "True Heartbeat", "True Running"},
		"the heartbeat is lost: not ready":                {withHeartbeats, heartbeatProbed, beating(cloud.HeartbeatLost), "False HeartbeatLost", "True Running"},
		"no agent in the guest: not ready":                {withHeartbeats, heartbeatProbed, beating(cloud.HeartbeatNone), "False NoHeartbeat", "True Running"},
		"an address and no agent in the guest: not ready": {withHeartbeats, heartbeatProbed, func(s *cloud.Server) { addressed("10.0.0.5")(s); s.Heartbeat = cloud.HeartbeatNone }, "False NoHeartbeat", "True Running"},
		"it is off with a heartbeat of before: not ready": {withHeartbeats, func(vm *pcapi.VM) { heartbeatProbed(vm); vm.Spec.PowerState = pcapi.PowerOff },
			func(s *cloud.Server) { beating(cloud.HeartbeatOK)(s); s.State = cloud.StateStopped }, "False NotRunning", "True Stopped"},
		"the cloud shows addresses and no heartbeats: unknown": {withAddresses, heartbeatProbed, beating(cloud.HeartbeatOK), "Unknown Unsupported", "True Running"},
		"no probe: no condition":                               {withAddresses, func(*pcapi.VM) {}, addressed("10.0.0.5"), "", "True Running"},
	} {
		t.Run(name, func(t *testing.T) {
			h := harnessWithServer(t, test.caps, onRecord(test.spec), serverWith(test.server))
			h.mustReconcile()
			h.wantCalls()
			h.wantCondition(pcapi.ReadyCondition, test.ready)
			if test.want == "" {
				equal(t, "condition", (*metav1.Condition)(nil), meta.FindStatusCondition(h.vm().Status.Conditions, pcapi.GuestReadyCondition))
				return
			}
			h.wantCondition(pcapi.GuestReadyCondition, test.want)
		})
	}
}

func TestGuestReadyFollowsServerAndSpec(t *testing.T) {
	h := harnessWithServer(t, withAddresses, onRecord(probed), serverWith())
	h.mustReconcile()
	h.wantCondition(pcapi.GuestReadyCondition, "False NoAddress")
	h.cloud.ModifyServer("s1", addressed("10.0.0.5"))
	h.poll()
	h.mustReconcile()
	h.wantCondition(pcapi.GuestReadyCondition, "True AddressKnown")
	if !slices.Contains(h.events, "Normal AddressKnown") {
		t.Errorf("events %v, want one of the guest", h.events)
	}

	h.inv.MarkUnavailable("connection refused")
	h.mustReconcile()
	h.wantCondition(pcapi.GuestReadyCondition, "True AddressKnown")
	h.connect()
	h.edit(func(vm *pcapi.VM) { vm.Spec.ReadinessProbe = nil })
	h.mustReconcile()
	equal(t, "condition", (*metav1.Condition)(nil), meta.FindStatusCondition(h.vm().Status.Conditions, pcapi.GuestReadyCondition))
}

func TestProbeThatIsAddedWhileTheCloudIsUnavailableIsUnknown(t *testing.T) {
	h := harnessWithServer(t, withAddresses, onRecord(), serverWith(addressed("10.0.0.5")))
	h.mustReconcile()
	h.inv.MarkUnavailable("connection refused")
	h.edit(probed)
	h.mustReconcile()
	h.wantCondition(pcapi.GuestReadyCondition, "Unknown CloudUnavailable")
	h.connect()
	h.mustReconcile()
	h.wantCondition(pcapi.GuestReadyCondition, "True AddressKnown")
}

func TestGuestOfVMThatMayNotUseItsCloudIsUnknown(t *testing.T) {
	h := harnessWithServer(t, withAddresses, onRecord(probed), serverWith(addressed("10.0.0.5")))
	h.mustReconcile()
	h.wantCondition(pcapi.GuestReadyCondition, "True AddressKnown")
	h.denyCloud()
	h.mustReconcile()
	h.wantCondition(pcapi.GuestReadyCondition, "Unknown CloudUnavailable", "the condition Ready says why")
	h.wantCondition(pcapi.ReadyCondition, "False CloudUnavailable", "may not use it")
	h.writes = nil
	h.mustReconcile()
	equal(t, "writes", []string(nil), h.writes)
	h.editCloud(func(c *pcapi.Cloud) { c.Spec.AllowedNamespaces = nil })
	h.mustReconcile()
	h.wantCondition(pcapi.GuestReadyCondition, "True AddressKnown")
}

func TestEventOfGuestDoesNotTakeThePlaceOfThatOfReady(t *testing.T) {
	h := harnessWithServer(t, withAddresses, onRecord(probed), serverWith(addressed("10.0.0.5")))
	h.mustReconcile()
	h.events = nil
	h.setServerState(cloud.StateError)
	h.poll()
	h.mustReconcile()
	equal(t, "events", []string{"Warning ServerError", "Warning NotRunning"}, h.events)
}

func TestProbeThatTheCloudCannotMakeKeepsNewVMFromBeingCreated(t *testing.T) {
	h := newHarness(t, everything, vmWith(probed))
	h.mustReconcile()
	h.wantCalls()
	h.wantCondition(pcapi.ReadyCondition, "False Unsupported", "readinessProbe.address")
}

func TestGuestReadyFollowsHeartbeat(t *testing.T) {
	h := harnessWithServer(t, withHeartbeats, onRecord(heartbeatProbed), serverWith(beating(cloud.HeartbeatNone)))
	h.mustReconcile()
	h.wantCondition(pcapi.GuestReadyCondition, "False NoHeartbeat")
	h.cloud.ModifyServer("s1", beating(cloud.HeartbeatOK))
	h.poll()
	h.mustReconcile()
	h.wantCondition(pcapi.GuestReadyCondition, "True Heartbeat")
	h.cloud.ModifyServer("s1", beating(cloud.HeartbeatLost))
	h.poll()
	h.mustReconcile()
	h.wantCondition(pcapi.GuestReadyCondition, "False HeartbeatLost")
	h.wantCalls()
}

func TestHeartbeatOfServerThatIsNotShown(t *testing.T) {
	ofOther := func(s *cloud.Server) {
		s.Heartbeat, s.Labels = cloud.HeartbeatOK, map[string]string{inventory.UIDLabel: "uid-b"}
	}
	for name, test := range map[string]struct {
		obs  *observation
		want string
	}{
		"the listing does not have it for a moment": {obsWith(withHeartbeats), pcapi.HeartbeatReason},
		"it has the labels of another VM":           {obsWith(withHeartbeats, withServer(serverWith(ofOther)), func(obs *observation) { obs.Owned = false }), pcapi.NoHeartbeatReason},
	} {
		t.Run(name, func(t *testing.T) {
			vm := vmWith(recorded, heartbeatProbed)
			vm.Status.State = pcapi.VMStateRunning
			vm.Status.Conditions = []metav1.Condition{{Type: pcapi.GuestReadyCondition, Status: metav1.ConditionTrue, Reason: pcapi.HeartbeatReason}}
			reportGuest(vm, test.obs)
			equal(t, "reason", test.want, meta.FindStatusCondition(vm.Status.Conditions, pcapi.GuestReadyCondition).Reason)
		})
	}
}
