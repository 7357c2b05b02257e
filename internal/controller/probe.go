package controller

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// ProbeLacking returns the field of the spec that the cloud cannot have because it does not
// show what the probe needs, empty for none.
func ProbeLacking(probe *pcapi.VMReadinessProbe, caps cloud.Capabilities) string {
	switch {
	case probe == nil:
	case probe.GuestHeartbeat != nil && !caps.Has(cloud.GuestHeartbeat):
		return "readinessProbe.guestHeartbeat"
	case probe.Address != nil && !caps.Has(cloud.Addresses):
		return "readinessProbe.address"
	case probe.TCPSocket != nil && !caps.Has(cloud.Addresses):
		return "readinessProbe.tcpSocket"
	}
	return ""
}
