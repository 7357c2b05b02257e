package behaviour_test

import (
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

type tags = map[string]pcapi.TagValue

func withTags(of tags) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.Tags = of }
}

// labelsOf returns the labels of the server of a VM that are not those of its owner.
func (f *fixture) labelsOf(vm *pcapi.VM) func() (map[string]string, error) {
	return func() (map[string]string, error) {
		server, err := f.serverOf(vm)()
		for _, key := range []string{inventory.UIDLabel, inventory.ClusterLabel, inventory.NamespaceLabel, inventory.NameLabel} {
			delete(server.Labels, key)
		}
		return server.Labels, err
	}
}

// setLabels changes labels of the server of a VM behind the operator's back.
func (f *fixture) setLabels(vm *pcapi.VM, labels map[string]string) {
	server, err := f.serverOf(vm)()
	f.t.Expect(err).NotTo(HaveOccurred())
	maps.Copy(server.Labels, labels)
	_, err = f.PutServer(server)
	f.t.Expect(err).NotTo(HaveOccurred())
}

func TestTags(t *testing.T) {
	cases{
		"tags are created, changed, removed, and corrected when they drift; labels of others stay": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.readyVM("web", withTags(tags{"env": "prod", "team": "a"}))
			t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate}))
			t.Expect(f.labelsOf(vm)()).To(Equal(map[string]string{"env": "prod", "team": "a", inventory.TagsLabel: "env,team"}))

			f.setLabels(vm, map[string]string{"rack": "7", "env": "test"})
			t.Eventually(f.labelsOf(vm)).Should(Equal(map[string]string{"env": "prod", "team": "a", "rack": "7", inventory.TagsLabel: "env,team"}))
			edit(t, vm, withTags(tags{"env": "prod", "cost.center": tagOfMostCharacters}))
			t.Eventually(f.labelsOf(vm)).Should(Equal(map[string]string{"env": "prod", "cost.center": string(tagOfMostCharacters), "rack": "7", inventory.TagsLabel: "cost.center,env"}))
			edit(t, vm, withTags(nil))
			t.Eventually(f.labelsOf(vm)).Should(Equal(map[string]string{"rack": "7"}))
			waitReady(t, vm)
		},
		"an import gets tags, and its labels stay when it is released": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			f.allowImports(pcapi.ImportPolicyAny)
			server := f.putForeignServer("old", map[string]string{"rack": "7", "env": "test"})
			vm := waitReady(t, f.createVM("old", withTags(tags{"env": "prod"}), func(vm *pcapi.VM) {
				vm.Spec.Import, vm.Spec.DeletionPolicy = &pcapi.VMImport{VMID: server.ID}, pcapi.DeletionPolicyOrphan
			}))
			t.Eventually(f.labelsOf(vm)).Should(Equal(map[string]string{"env": "prod", "rack": "7", inventory.TagsLabel: "env"}))
			t.Expect(env.Client.Delete(t.Context(), vm)).To(Succeed())
			t.Eventually(func() map[string]string {
				server, _ := f.Server(server.ID)
				return server.Labels
			}).Should(Equal(map[string]string{"env": "prod", "rack": "7"}))
		},
		"a cloud without labels: the VM says so, and nothing is sent": func(t *T) {
			f := newFixture(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.Labels: false}})
			vm := f.createVM("web", withTags(tags{"env": "prod"}))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "this cloud cannot set tags: remove it from the spec"))
			t.Expect(f.createCalls()).To(BeZero())
			edit(t, vm, withTags(nil))
			waitReady(t, vm)
		},
		"a group: a change of tags is made on all members in place": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			group, members := f.readyGroup("pool", 2, func(g *pcapi.VmGroup) { g.Spec.Tags = tags{"env": "prod"} })
			edit(t, group, func(g *pcapi.VmGroup) { g.Spec.Tags = tags{"env": "test"} })
			for i := range members {
				t.Eventually(f.labelsOf(&members[i])).Should(HaveKeyWithValue("env", "test"))
			}
			t.Expect(f.createdServers()).To(Equal(2))
		},
		"the most and longest tags are valid": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			most := tags{"a": tagOfMostCharacters, "b": tagOfMostCharacters, "c": pcapi.TagValue(strings.Repeat("<", 255)), "d": pcapi.TagValue(strings.Repeat("x", 39))}
			for i := range 12 {
				most[string(rune('e'+i))+strings.Repeat("x", 17)] = ""
			}
			vm := f.readyVM("web", withTags(most))
			t.Expect(f.labelsOf(vm)()).To(HaveLen(17))
		},
	}.run(t)
}

// tagOfMostCharacters has as many bytes as the value of a tag may have.
var tagOfMostCharacters = pcapi.TagValue(strings.Repeat("🏷", 255))
