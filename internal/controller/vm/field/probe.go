package field

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// Probe is readinessProbe. A cloud lacks it if it does not show what the probe needs.
var Probe = Field{
	Lacking: func(vm *pcapi.VM, caps cloud.Capabilities) []string {
		probe := vm.Spec.ReadinessProbe
		switch {
		case probe == nil:
		case probe.GuestHeartbeat != nil && !caps.Has(cloud.GuestHeartbeat):
			return []string{"readinessProbe.guestHeartbeat"}
		case probe.Address != nil && !caps.Has(cloud.Addresses):
			return []string{"readinessProbe.address"}
		case probe.TCPSocket != nil && !caps.Has(cloud.Addresses):
			return []string{"readinessProbe.tcpSocket"}
		}
		return nil
	},
}
