package gpuinfo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
)

// diary is a queue that writes down what is to be done later; nothing may be done at once.
type diary struct {
	queue
	entries map[string]time.Duration
}

func (d diary) AddAfter(request reconcile.Request, after time.Duration) {
	d.entries[request.Name] = after
}

func TestNewsThatConcernAllAreGathered(t *testing.T) {
	named := func(name, cloud string) v1alpha1.GPUInfo {
		gpu := asking(func(gpu *v1alpha1.GPUInfo) { gpu.Name = name })
		if cloud != "" {
			gpu.Spec.CloudRef = &v1alpha1.CloudReference{Name: cloud}
		}
		return *gpu
	}
	find := finder{reader: &shelf{items: []v1alpha1.GPUInfo{named("home", "home"), named("away", "away"), named("labelled", "")}}}
	all := map[string]time.Duration{"home": gather, "away": gather, "labelled": gather}
	nodes, n := find.choosers(), &corev1.Node{}
	for name, test := range map[string]struct {
		wake func(queue)
		want map[string]time.Duration
	}{
		"a listing":          {func(q queue) { find.news(q)(inventory.Event{Cloud: "home"}) }, map[string]time.Duration{"home": gather, "labelled": gather}},
		"a node that came":   {func(q queue) { nodes.Create(t.Context(), event.CreateEvent{Object: n}, q) }, all},
		"one that changed":   {func(q queue) { nodes.Update(t.Context(), event.UpdateEvent{ObjectOld: n, ObjectNew: n}, q) }, all},
		"one that went away": {func(q queue) { nodes.Delete(t.Context(), event.DeleteEvent{Object: n}, q) }, all},
	} {
		t.Run(name, func(t *testing.T) {
			d := diary{entries: map[string]time.Duration{}}
			test.wake(d)
			if diff := cmp.Diff(test.want, d.entries); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}
