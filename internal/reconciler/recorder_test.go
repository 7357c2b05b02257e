package reconciler_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/reconciler"
)

// countingRecorder counts the events of each namespace.
type countingRecorder map[string]int

func (r countingRecorder) Eventf(regarding, _ runtime.Object, _, _, _, _ string, _ ...any) {
	r[regarding.(*pcapi.VM).Namespace]++
}

func TestLimitEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorded := countingRecorder{}
		recorder := reconciler.LimitEventsAlone(recorded)
		record := func(namespace, level string, objects, each int) int {
			before := recorded[namespace]
			for i := range objects {
				vm := example(func(vm *pcapi.VM) {
					vm.Namespace, vm.UID = namespace, types.UID(fmt.Sprintf("uid-%s-%s-%d", namespace, level, i))
				})
				for range each {
					recorder.Eventf(vm, nil, level, "Reason", "Act", "note")
				}
			}
			return recorded[namespace] - before
		}
		normal, warning := corev1.EventTypeNormal, corev1.EventTypeWarning
		equal(t, "events of one object", 25, record("loop", warning, 1, 1000))
		equal(t, "events of another object of the namespace", 25, record("loop", warning, 2, 25))
		equal(t, "events of one namespace", 2_600, record("many", normal, 400, 20))
		equal(t, "warnings of that namespace", 10, record("many", warning, 10, 1))
		for _, namespace := range []string{"a", "b", "c", "d"} {
			record(namespace, normal, 400, 20)
		}
		equal(t, "events of another namespace when all together have too many", 100, record("other", normal, 10, 20))
		<-time.After(10 * time.Minute)
		equal(t, "events of the object after ten minutes", 2, record("loop", warning, 1, 1000))
		equal(t, "events of the namespace after ten minutes", 400, record("many", normal, 400, 1))
	})
}
