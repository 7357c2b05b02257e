// Package controller holds what the controllers of all kinds have in common:
// the options of their SetupWithManager, outcomes and the names of shared cache
// indexes.
package controller

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/clouds"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
	"github.com/privatecloud/operator/internal/tenancy"
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
	// Workers is how many VMs of one namespace are reconciled at a time on one Cloud, at least 1.
	Workers int
	// Clock returns the current time.
	Clock func() time.Time
	// Elapsed returns the time since a fixed moment by a clock that nobody can set.
	// GPUInfos need it.
	Elapsed func() time.Duration
	// Live reads from the API server; see reconciler.Reconciler.
	Live client.Reader
	// Leading reports whether this process may act; nil for always.
	Leading func() bool
	// Alone reports whether no other manager may act now: this process holds the
	// lease, and the lease has not expired. Nil for never, as without leader election.
	Alone func() bool
}

// AwaitNamespace returns the outcome of a reconcile that failed with err: a wait
// without a change of the status if the object was observed before its namespace,
// else err.
func AwaitNamespace(err error) error {
	if pending, ok := errors.AsType[*tenancy.NamespacePendingError](err); ok {
		return &reconciler.WaitError{After: tenancy.NamespaceDelay, Reason: pcapi.ProgressingReason, Message: pending.Error(), Quiet: true}
	}
	return err
}

// VMNetworkIndex is the cache index of VMs by the name of the Network that they
// refer to. The VM controller registers it.
const VMNetworkIndex = "network"
