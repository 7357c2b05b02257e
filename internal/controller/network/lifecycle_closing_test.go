package network

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

func TestCloudThatIsBeingDeletedTakesNoNewNetwork(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		net      *pcapi.Network
		existing []cloud.Network
		want     string
	}{
		"a new Network: not created":             {netWith(), nil, "False CloudUnavailable"},
		"a Network that is on it: stays in sync": {onRecord(), []cloud.Network{networkWith()}, "True InSync"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, everything, tc.existing, tc.net)
			var c pcapi.Cloud
			if err := h.client.Get(t.Context(), client.ObjectKey{Name: "default"}, &c); err != nil {
				t.Fatal(err)
			}
			c.Finalizers = []string{pcapi.CloudFinalizer}
			if err := h.client.Update(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
			if err := h.client.Delete(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				h.advance(pollInterval)
				h.reconcile()
			}
			h.wantCondition("Ready", tc.want)
			for _, verb := range h.takeVerbs() {
				if verb != "list" {
					t.Errorf("a call to %s", verb)
				}
			}
		})
	}
}
