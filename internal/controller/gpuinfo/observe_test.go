package gpuinfo

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
)

// reader answers List with GPUInfos or Nodes, and records the options.
type reader struct {
	client.Client
	items []pcapi.GPUInfo
	nodes []corev1.Node
	asked client.ListOptions
}

func (s *reader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	s.asked.ApplyOptions(opts)
	switch list := list.(type) {
	case *pcapi.GPUInfoList:
		list.Items = s.items
	case *corev1.NodeList:
		list.Items = s.nodes
	}
	return nil
}

func TestObserveClaimsReadsReservationsOfOthers(t *testing.T) {
	other := asking(holding("n1", time.Hour))
	other.UID = "o"
	s := &reader{items: []pcapi.GPUInfo{*asking(holding("n1", 0)), *other}}
	obs := world(1)
	if err := (&kind{client: s}).observeClaims(t.Context(), asking(), obs); err != nil {
		t.Fatal(err)
	}
	want := []claim{{uid: "o", host: "h1", since: noon.Add(-time.Hour), until: noon.Add(9 * time.Hour)}}
	if diff := cmp.Diff(want, obs.claims, cmp.AllowUnexported(claim{})); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if s.asked.DisableReadYourWritesConsistency {
		t.Error("what an earlier reconcile reserved may be missing: the read does not wait for the client's own writes")
	}
	if got := s.asked.FieldSelector.String(); got != reservedIndex+"=default" {
		t.Errorf("claims were listed with %q, want those on the Cloud", got)
	}
}

func TestObserveNodesLooksUpServersOncePerListing(t *testing.T) {
	begun := noon
	inv := inventory.New(func() time.Time { return begun }, "cluster").Cloud("default")
	publish := func(state cloud.State, names ...string) {
		t.Helper()
		c := cloudfake.New(cloudfake.Options{})
		for _, name := range names {
			c.AddServers(cloud.Server{ID: "s" + name, Name: name, State: state})
		}
		snap, err := inventory.List(t.Context(), c, func() time.Time { return begun })
		if err != nil {
			t.Fatal(err)
		}
		inv.Publish(snap)
	}
	s := &reader{}
	k := &kind{client: s, named: map[string]named{}}
	look := func(nodes ...string) map[string][]cloud.Server {
		t.Helper()
		s.nodes = nil
		for _, name := range nodes {
			s.nodes = append(s.nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		obs := &observation{cloud: "default"}
		if err := k.observeNodes(t.Context(), obs, inv, begun); err != nil {
			t.Fatal(err)
		}
		if len(obs.nodes) != len(nodes) {
			t.Errorf("got %d nodes, want %d", len(obs.nodes), len(nodes))
		}
		return obs.servers
	}

	publish(cloud.StateActive, "n1", "n2", "vm")
	first := &look("n1")["n1"][0]
	second := look("n1", "n2")
	if len(second["n1"]) != 1 || len(second["n2"]) != 1 || len(second["vm"]) != 0 {
		t.Fatalf("got %v, want the servers of both nodes", second)
	}
	if first != &second["n1"][0] {
		t.Error("n1 was looked up twice in one listing")
	}
	begun = noon.Add(time.Minute)
	publish(cloud.StateStopped, "n1")
	third := look("n1", "n2")
	if len(third["n1"]) != 1 || third["n1"][0].State != cloud.StateStopped || len(third["n2"]) != 0 {
		t.Errorf("got %v, want what the later listing says", third)
	}
}
