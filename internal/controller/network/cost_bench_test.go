package network

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/testkit/cached"
)

// noQueue drops what is queued.
type noQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (noQueue) Add(reconcile.Request)                     {}
func (noQueue) AddAfter(reconcile.Request, time.Duration) {}

// BenchmarkCostOfVMThatLeaves has one of n VMs leave a Network that is being deleted.
func BenchmarkCostOfVMThatLeaves(b *testing.B) {
	cached.Sizes(b, func(b *testing.B, n int) {
		objects := []client.Object{onRecord(deleted, func(net *pcapi.Network) { net.Status.AttachedVMs = int32(n) })}
		for i := range n {
			objects = append(objects, vmOn("net", func(vm *pcapi.VM) { vm.Name = fmt.Sprintf("vm-%05d", i) }))
		}
		on := attachments(cached.Client(b, func(ctx context.Context, indexer client.FieldIndexer) error {
			return indexer.IndexField(ctx, &pcapi.VM{}, controller.VMNetworkIndex, func(o client.Object) []string {
				return controller.NetworksOf(o.(*pcapi.VM))
			})
		}, objects...))
		last := vmOn("net")
		for b.Loop() {
			on.Delete(b.Context(), event.DeleteEvent{Object: last}, noQueue{})
		}
	})
}
