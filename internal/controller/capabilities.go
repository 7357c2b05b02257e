package controller

import (
	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// Capabilities returns the capabilities that a Cloud reports; nil if it reports none and has not been listed.
func Capabilities(c *pcapi.Cloud) cloud.Capabilities {
	if c.Status.Servers == nil && len(c.Status.Capabilities) == 0 {
		return nil
	}
	found := cloud.NewCapabilities()
	for _, name := range c.Status.Capabilities {
		found = append(found, cloud.Capability(name))
	}
	return found
}
