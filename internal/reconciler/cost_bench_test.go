package reconciler

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit/cached"
)

// BenchmarkCostOfRejection records that the API server refused the status of one of n
// objects, as it did with all others.
func BenchmarkCostOfRejection(b *testing.B) {
	cached.Sizes(b, func(b *testing.B, n int) {
		objects := make([]*pcapi.VM, n)
		for i := range objects {
			objects[i] = &pcapi.VM{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint("uid-", i)), ResourceVersion: "1"}}
		}
		var r rejections
		for _, o := range objects {
			r.add(o)
		}
		for i := 0; b.Loop(); i++ {
			r.add(objects[i%n])
		}
	})
}
