package vmgroup

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// delays records after which delays groups are queued.
type delays struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	queued []string
}

func (d *delays) AddAfter(r reconcile.Request, after time.Duration) {
	d.queued = append(d.queued, r.String()+" after "+after.String())
}

func TestEventsOfMembersAreCollectedForLongerInLargeGroups(t *testing.T) {
	g := groupOfSize(1)
	member := vm("a", func(vm *pcapi.VM) {
		vm.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(g, pcapi.GroupVersion.WithKind(kindName))}
	})
	k := kind{}
	for _, step := range []struct {
		members int
		want    string
	}{{0, "200ms"}, {2_000, "200ms"}, {10_000, "1s"}, {50_000, "5s"}, {10, "200ms"}} {
		k.memory.setSize(g.UID, step.members)
		q := &delays{}
		enqueueGroup{&k.memory}.Delete(t.Context(), event.DeleteEvent{Object: member}, q)
		if want := "ns/web after " + step.want; len(q.queued) != 1 || q.queued[0] != want {
			t.Errorf("with %d members: queued %v, want %s", step.members, q.queued, want)
		}
	}
}
