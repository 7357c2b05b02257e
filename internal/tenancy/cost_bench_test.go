package tenancy

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit/cached"
)

// BenchmarkCostSameCloud finds the Clouds that lead to the same cloud as one of n.
func BenchmarkCostSameCloud(b *testing.B) {
	cached.Sizes(b, func(b *testing.B, n int) {
		objects := make([]client.Object, n)
		for i := range objects {
			objects[i] = cloudWith(fmt.Sprintf("cloud-%05d", i), func(c *pcapi.Cloud) {
				c.Spec.Endpoint = fmt.Sprintf("https://cloud-%05d.example.com/api", i)
			})
		}
		c := cached.Client(b, IndexByIdentity, objects...)
		for i := 0; b.Loop(); i++ {
			name := fmt.Sprintf("cloud-%05d", i*7919%n)
			if names, err := SameCloud(b.Context(), c, name); err != nil || len(names) != 1 || names[0] != name {
				b.Fatalf("%s: %v, %v", name, names, err)
			}
		}
	})
}
