// Package controller holds what the controllers of all kinds have in common:
// the options of their SetupWithManager and the names of shared cache indexes.
package controller

import (
	"time"

	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/inventory"
)

// Options are the options of every controller's SetupWithManager. A controller
// ignores those that it does not need.
type Options struct {
	// Directory holds the inventories of all Clouds.
	Directory *inventory.Directory
	// Clients holds the clients of all Clouds.
	Clients *clouds.Clients
	// Cluster identifies this cluster in the labels of servers.
	Cluster string
	// Workers is the maximum number of VMs that are reconciled concurrently, at least 1.
	Workers int
	// Clock returns the current time.
	Clock func() time.Time
	// Alone reports whether this manager holds the lease, so that no other one
	// reconciles objects at the moment. Nil means that another one may.
	Alone func() bool
}

// VMNetworkIndex is the cache index of VMs by the name of the Network that they
// refer to. The VM controller registers it.
const VMNetworkIndex = "network"
