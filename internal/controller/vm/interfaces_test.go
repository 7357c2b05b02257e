package vm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func TestStatusShowsTheAddressesThatTheCloudReports(t *testing.T) {
	h := harnessWithServer(t, everything, onRecord(), serverWith())
	report := func(interfaces cloud.Interfaces) *pcapi.VMNetworkStatus {
		t.Helper()
		h.cloud.ModifyServer("s1", func(s *cloud.Server) { s.Interfaces = interfaces })
		h.later(pollInterval)
		h.mustReconcile()
		return h.vm().Status.Network
	}
	for _, test := range []struct {
		interfaces cloud.Interfaces
		want       *pcapi.VMNetworkStatus
	}{
		{"fa:16:3e:00:00:01", &pcapi.VMNetworkStatus{Interfaces: []pcapi.VMInterfaceStatus{{MACAddress: "fa:16:3e:00:00:01"}}}},
		{",fd00::5,10.0.0.5 fa:16:3e:00:00:02,10.0.1.5,fd01::5", &pcapi.VMNetworkStatus{
			PrimaryIP4: "10.0.0.5", PrimaryIP6: "fd00::5",
			Interfaces: []pcapi.VMInterfaceStatus{
				{Addresses: []string{"fd00::5", "10.0.0.5"}}, {MACAddress: "fa:16:3e:00:00:02", Addresses: []string{"10.0.1.5", "fd01::5"}},
			},
		}},
		{"", nil},
	} {
		if diff := cmp.Diff(test.want, report(test.interfaces)); diff != "" {
			t.Errorf("status.network with interfaces %q (-want +got):\n%s", test.interfaces, diff)
		}
	}
}

func TestLostVMShowsNoAddresses(t *testing.T) {
	vm := vmWith(recorded)
	vm.Status.Network = &pcapi.VMNetworkStatus{PrimaryIP4: "10.0.0.5"}
	pure.Report(vm, obsWith(everything, gone), nil)
	if vm.Status.Network != nil {
		t.Errorf("status.network %+v of a server that is gone, want none", vm.Status.Network)
	}
}
