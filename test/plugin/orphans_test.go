package plugin_test

import (
	"context"
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/internal/diagnostics/wire"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func TestOrphans(t *testing.T) {
	t.Parallel()
	cluster := clusterID(t)
	owned := func(cluster, name string) map[string]string {
		return map[string]string{
			inventory.ClusterLabel: cluster, inventory.UIDLabel: "0b6f3f0e-0000-4000-8000-000000000000",
			inventory.NamespaceLabel: "dev", inventory.NameLabel: name,
		}
	}
	f := newFixture(t, "orphans", func(cloud *testkit.CloudServer) {
		strangers(t, cloud,
			mockcloud.Server{Name: "left", Labels: owned(cluster, "left")},
			mockcloud.Server{Name: "elsewhere", Labels: owned("another-cluster", "elsewhere")},
			mockcloud.Server{Name: "stranger"})
	})

	table := f.run("orphans", "--cloud", f.name)
	f.Expect(table.Code).To(BeZero(), table.Err)
	f.Expect(table.Out).To(MatchRegexp(`(?s)^CLOUD +ID +NAME +STATE +OBJECT +CREATED *\norphans +[0-9a-f-]+ +left +ACTIVE +dev/left +20\d\d-`))
	f.Expect(table.Out).NotTo(Or(ContainSubstring("elsewhere"), ContainSubstring("stranger")))
	f.Expect(table.Err).To(And(ContainSubstring(`1 orphans on Cloud "orphans"`), ContainSubstring("kubectl patch cloud CLOUD")))

	listed := f.run("orphans", "--cloud", f.name, "-o", "json")
	f.Expect(listed.Code).To(BeZero(), listed.Err)
	var found []wire.Servers
	f.Expect(json.Unmarshal([]byte(listed.Out), &found)).To(Succeed())
	f.Expect(found).To(HaveLen(1))
	f.Expect(found[0].Counts).To(Equal(wire.Counts{Unmanaged: 1, Orphaned: 1, OtherClusters: 1}))
	f.Expect(found[0].Servers).To(HaveLen(1))
	f.Expect(found[0].Servers[0].Owner).To(Equal(&wire.Owner{Namespace: "dev", Name: "left", UID: "0b6f3f0e-0000-4000-8000-000000000000"}))
	// Clouds of other tests come and go, so that some may not have been listed.
	f.Expect(f.run("orphans").Out).To(MatchRegexp(`(?m)^orphans +[0-9a-f-]+ +left `))
}

func TestOrphansOfNoCloud(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "no-orphans", nil)
	none := f.run("orphans", "--cloud", f.name)
	f.Expect(none.Code).To(BeZero(), none.Err)
	f.Expect(none.Out).To(BeEmpty())
	f.Expect(none.Err).To(HavePrefix(`0 orphans on Cloud "no-orphans"`))
	f.Expect(f.run("orphans", "--cloud", "missing").Err).To(Equal("error: Cloud \"missing\" does not exist: see kubectl get clouds\n"))
}

// clusterID returns the id of this cluster in the labels of servers.
func clusterID(t *testing.T) string {
	t.Helper()
	var system corev1.Namespace
	if err := env.Client.Get(context.Background(), client.ObjectKey{Name: "kube-system"}, &system); err != nil {
		t.Fatal(err)
	}
	return string(system.UID)
}
