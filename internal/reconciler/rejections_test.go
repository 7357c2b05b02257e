package reconciler

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// TestRejectionsOfDeletedObjectsAreForgotten is about objects that are deleted
// while the API server refuses their status: nothing else forgets them.
func TestRejectionsOfDeletedObjectsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rejections
		for i := range 10 {
			r.add(&pcapi.VM{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprintf("uid-%d", i))}})
			if len(r.of) != 1 {
				t.Errorf("%d rejections are remembered, want 1", len(r.of))
			}
			<-time.After(10 * time.Minute)
		}
	})
}
