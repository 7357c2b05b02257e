// Package controller holds what the controllers of all kinds have in common.
package controller

import (
	"time"

	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/inventory"
)

// VMNetworkIndex is the cache index that finds the VMs of a namespace by the
// name of the Network that they refer to.
const VMNetworkIndex = "network"

// Options are what a controller needs beside a manager.
type Options struct {
	// Directory holds the clouds.
	Directory *inventory.Directory
	// Clients are the connections to the clouds.
	Clients *clouds.Clients
	// Cluster identifies this cluster on the clouds' resources: the UID of its
	// kube-system namespace.
	Cluster string
	// Workers is how many VMs are reconciled at a time, at least 1.
	Workers int
	// Clock returns the time.
	Clock func() time.Time
}
