package vm

import (
	"strings"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// networkStatus returns what the status shows of the network interfaces; nil if there are none.
func networkStatus(interfaces cloud.Interfaces) *pcapi.VMNetworkStatus {
	if interfaces == "" {
		return nil
	}
	var status pcapi.VMNetworkStatus
	for _, i := range interfaces.List() {
		status.Interfaces = append(status.Interfaces, pcapi.VMInterfaceStatus{MACAddress: i.MAC, Addresses: i.Addresses})
		for _, address := range i.Addresses {
			primary := &status.PrimaryIP4
			if strings.Contains(address, ":") {
				primary = &status.PrimaryIP6
			}
			if *primary == "" {
				*primary = address
			}
		}
	}
	return &status
}
