package gpuinfo

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
)

// shelf answers List with GPUInfos, and remembers what it was asked.
type shelf struct {
	client.Client
	items []v1alpha1.GPUInfo
	asked client.ListOptions
}

func (s *shelf) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	s.asked.ApplyOptions(opts)
	list.(*v1alpha1.GPUInfoList).Items = s.items
	return nil
}

func TestClaimsAreThoseOfOthersAsTheLastPassLeftThem(t *testing.T) {
	other := asking(holding("n1", time.Hour))
	other.UID = "o"
	s := &shelf{items: []v1alpha1.GPUInfo{*asking(holding("n1", 0)), *other}}
	seen := world(1)
	if err := (&kind{client: s}).observeClaims(t.Context(), asking(), seen); err != nil {
		t.Fatal(err)
	}
	want := []claim{{uid: "o", host: "h1", since: noon.Add(-time.Hour), until: noon.Add(9 * time.Hour)}}
	if diff := cmp.Diff(want, seen.claims, cmp.AllowUnexported(claim{})); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if s.asked.DisableReadYourWritesConsistency {
		t.Error("what an earlier pass reserved may be missing: the read does not wait for the client's own writes")
	}
	if got := s.asked.FieldSelector.String(); got != reservedIndex+"=default" {
		t.Errorf("claims are looked for under %q, want those on the Cloud", got)
	}
}
