package plugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// many is how many servers of strangers are imported.
const many = 500

// manyStrangers returns servers that differ in all that a VM could change.
func manyStrangers() []mockcloud.Server {
	servers := make([]mockcloud.Server, 0, many)
	for i := range many {
		s := mockcloud.Server{
			Name: fmt.Sprintf("Legacy_%03d.corp", i/2*2), // two servers have each name
			CPU:  1 + i%8, Memory: 1 + i%16, Template: fmt.Sprintf("image-%d", i%3), Folder: fmt.Sprintf("folder-%d", i%4),
			Labels: map[string]string{"team": "erp"},
		}
		switch i % 5 {
		case 1:
			s.PowerState, s.State = mockcloud.PowerOff, mockcloud.StateStopped
		case 2:
			s.PowerState, s.State = mockcloud.PowerSuspended, mockcloud.StateSuspended
		}
		servers = append(servers, s)
	}
	return servers
}

func TestImportOfManyServersChangesNothingButLabels(t *testing.T) {
	t.Parallel()
	fast := func(c *pcapi.Cloud) {
		c.Spec.Limits.RequestsPerSecond, c.Spec.Limits.Burst = 200, 200
	}
	f := newFixture(t, "import-many", func(cloud *testkit.CloudServer) { strangers(t, cloud, manyStrangers()...) }, fast)
	before, ledger := serversByID(f.cloud), len(f.cloud.Ledger())

	manifests := f.run("import", "--cloud", f.name, "-n", f.namespace)
	f.Expect(manifests.Code).To(BeZero(), manifests.Err)
	f.Expect(manifests.Err).To(HavePrefix(fmt.Sprintf("%d servers of Cloud %q to import, 0 left out", many, f.name)))
	f.Expect(strings.Count(manifests.Out, "---\n")).To(Equal(many))
	f.Expect(manifests.Out).NotTo(ContainSubstring("cloudRef")) // the Cloud is the default of the namespace
	_, err := env.Kubectl(t.Context(), manifests.Out, "apply", "-f", "-")
	f.Expect(err).NotTo(HaveOccurred())
	f.Eventually(notReady).WithArguments(f.namespace, many).Should(BeEmpty())

	ignored := cmpopts.IgnoreFields(mockcloud.Server{}, "Labels", "UpdatedAt", "CPUUtilization", "CPUUsageMHz", "MemoryUsageMB")
	after := serversByID(f.cloud)
	f.Expect(cmp.Diff(before, after, ignored)).To(BeEmpty())
	for id, server := range after {
		f.Expect(server.Labels).To(HaveKeyWithValue("team", "erp"), id)
		f.Expect(server.Labels).To(HaveKey(inventory.UIDLabel), id)
	}
	for _, entry := range f.cloud.Ledger()[ledger:] {
		f.Expect(entry.Op).To(Equal(mockcloud.OpUpdate))
		f.Expect(entry.Fields).To(Equal([]string{"labels"}))
	}
	f.Expect(f.cloud.CountCalls("POST", "/servers") + f.cloud.CountCalls("DELETE", "/servers/{id}")).To(BeZero())

	again := f.run("import", "--cloud", f.name, "-n", f.namespace)
	f.Expect(again.Out).To(BeEmpty())
	f.Expect(again.Err).To(HavePrefix("0 servers"))
}

func TestImportLeavesOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "import-some", func(cloud *testkit.CloudServer) {
		strangers(t, cloud,
			mockcloud.Server{ID: "11111111-0000-4000-8000-000000000001", Name: "web"},
			mockcloud.Server{Name: "-odd-"},
			mockcloud.Server{Name: "broken", State: mockcloud.StateError},
			mockcloud.Server{Name: "other", Labels: map[string]string{inventory.ClusterLabel: "another", inventory.UIDLabel: "x"}},
			mockcloud.Server{Name: "left", Labels: map[string]string{inventory.ClusterLabel: clusterID(t), inventory.UIDLabel: "x"}},
			mockcloud.Server{Name: "db"})
	})
	owned := testkit.VM(f.namespace, "mine")
	f.Expect(env.Client.Create(t.Context(), owned)).To(Succeed())
	f.Eventually(notReady).WithArguments(f.namespace, 1).Should(BeEmpty())

	all := f.run("import", "--cloud", f.name, "-n", f.namespace)
	f.Expect(all.Code).To(BeZero(), all.Err)
	f.Expect(all.Err).To(And(
		MatchRegexp(`left out: server \S+ "-odd-": its name is not allowed in spec.vmname`),
		MatchRegexp(`left out: server \S+ "broken": it is in error`),
		ContainSubstring("2 servers of Cloud"), ContainSubstring("2 left out"),
		ContainSubstring("1 orphans are not among them"), ContainSubstring("1 servers of other clusters are not among them"),
	))
	matched := f.run("import", "--cloud", f.name, "-n", "default", "--match", "^w", "--deletion-policy", "Delete")
	f.Expect(matched.Out).To(Equal(`---
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VM
metadata:
  name: web
  namespace: default
spec:
  cloudRef:
    name: import-some
  deletionPolicy: Delete
  import:
    vmId: 11111111-0000-4000-8000-000000000001
  vmname: web
`))
	var list struct{ Items []pcapi.VM }
	f.Expect(json.Unmarshal([]byte(f.run("import", "--cloud", f.name, "-n", f.namespace, "-o", "json").Out), &list)).To(Succeed())
	f.Expect(list.Items).To(HaveLen(2))
}

func TestImportSaysWhatTheCloudMustAllow(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "import-listed", func(cloud *testkit.CloudServer) {
		strangers(t, cloud, mockcloud.Server{Name: "web"}, mockcloud.Server{Name: "db"})
	}, func(c *pcapi.Cloud) { c.Spec.Imports = pcapi.ImportPolicyNone })
	manifests := f.run("import", "--cloud", f.name, "-n", f.namespace)
	f.Expect(manifests.Code).To(BeZero(), manifests.Err)
	f.Expect(manifests.Err).To(And(ContainSubstring(`Cloud "import-listed" allows no imports.`), ContainSubstring("-o importable > allow.yaml")))

	patch := f.run("import", "--cloud", f.name, "-n", f.namespace, "-o", "importable")
	f.Expect(patch.Code).To(BeZero(), patch.Err)
	_, err := env.Kubectl(t.Context(), "", "patch", "cloud", f.name, "--type=merge", "-p", patch.Out)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.run("import", "--cloud", f.name, "-n", f.namespace).Err).NotTo(ContainSubstring("allow.yaml"))
	f.Expect(f.run("import", "--cloud", f.name, "-n", "default").Err).To(ContainSubstring("spec.importable of the Cloud gives it to namespace " + f.namespace))
	_, err = env.Kubectl(t.Context(), manifests.Out, "apply", "-f", "-")
	f.Expect(err).NotTo(HaveOccurred())
	f.Eventually(notReady).WithArguments(f.namespace, 2).Should(BeEmpty())
}

// notReady returns the VMs of a namespace that are not Ready, and one more if there are not
// as many as expected.
func notReady(ctx context.Context, namespace string, expected int) ([]string, error) {
	var vms pcapi.VMList
	if err := env.Client.List(ctx, &vms, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	var waiting []string
	for i := range vms.Items {
		if ready, err := testkit.BeReady().Match(&vms.Items[i]); err != nil || !ready {
			waiting = append(waiting, vms.Items[i].Name)
		}
	}
	if len(vms.Items) != expected {
		waiting = append(waiting, fmt.Sprintf("%d VMs instead of %d", len(vms.Items), expected))
	}
	return waiting[:min(len(waiting), 5)], nil
}

func serversByID(cloud *testkit.CloudServer) map[string]mockcloud.Server {
	return maps.Collect(func(yield func(string, mockcloud.Server) bool) {
		for _, s := range slices.Clone(cloud.Servers()) {
			if !yield(s.ID, s) {
				return
			}
		}
	})
}
