// Package controller holds what the controllers of all kinds have in common:
// the options of their SetupWithManager and the names of shared cache indexes.
package controller

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

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
	// Live reads from the API server; see reconciler.Reconciler.
	Live client.Reader
	// Leading reports whether this process may act; nil for always.
	Leading func() bool
	// Alone reports whether no other manager may act now: this process holds the
	// lease, and the lease has not expired. Nil for never, as without leader election.
	Alone func() bool
}

// VMNetworkIndex is the cache index of VMs by the name of the Network that they
// refer to. The VM controller registers it.
const VMNetworkIndex = "network"
