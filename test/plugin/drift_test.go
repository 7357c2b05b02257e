package plugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/plugin"
	"github.com/privatecloud/operator/internal/plugin/drift"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// drifted returns what the command drift prints of the namespace: the differences and the
// reason of each object.
func (f *fixture) drifted() map[string]string {
	f.Helper()
	printed := plugintest.Setup{Kubeconfig: env.Kubeconfig()}.Run(f.Context(), "drift", "-n", f.namespace, "-o", "json")
	var found struct {
		Objects []drift.Row `json:"objects"`
	}
	f.Expect(json.Unmarshal([]byte(printed.Out), &found)).To(Succeed(), printed.Err)
	want := 0
	if len(found.Objects) > 0 {
		want = plugin.ExitChanges
	}
	f.Expect(printed.Code).To(Equal(want))
	rows := map[string]string{}
	for _, row := range found.Objects {
		rows[row.Name] = fmt.Sprint(row.Differences, " ", row.Because)
	}
	return rows
}

// TestDrift changes servers by hand that the operator does not correct, on a cloud that
// resizes stopped servers only.
func TestDrift(t *testing.T) {
	t.Parallel()
	stranger := mockcloud.Server{ID: "11111111-0000-4000-8000-000000000000", Name: "observed", CPU: 2, Memory: 1}
	f := newFixtureOn(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{ResizeStopped: true}}, "drift",
		func(cloud *testkit.CloudServer) { strangers(t, cloud, stranger) },
		func(c *pcapi.Cloud) { c.Spec.Imports = pcapi.ImportPolicyAny })
	vm := func(name string, change ...func(*pcapi.VM)) *pcapi.VM {
		vm := &pcapi.VM{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
		vm.Spec.VMName, vm.Spec.CPU, vm.Spec.Memory, vm.Spec.PowerState = name, pcapi.Cores(2), pcapi.GiB(1), pcapi.PowerOn
		for _, apply := range change {
			apply(vm)
		}
		f.Expect(env.Client.Create(t.Context(), vm)).To(Succeed())
		f.Eventually(func(ctx context.Context) (*pcapi.VM, error) {
			return vm, env.Client.Get(ctx, client.ObjectKeyFromObject(vm), vm)
		}).Should(testkit.BeReady())
		return vm
	}
	vm("observed", func(vm *pcapi.VM) {
		vm.Spec.ManagementPolicy, vm.Spec.Import = pcapi.ManagementPolicyObserveOnly, &pcapi.VMImport{VMID: stranger.ID}
	})
	running, renamed := vm("running"), vm("renamed")
	paused := vm("paused")
	vm("in-sync")
	f.Expect(f.drifted()).To(BeEmpty())

	stranger.CPU, stranger.PowerState, stranger.State = 4, mockcloud.PowerOff, mockcloud.StateStopped
	strangers(t, f.cloud, stranger)
	f.Expect(f.cloud.RenameServer(renamed.Status.VMID, "by-hand")).To(Succeed())
	byHand, found := f.cloud.Server(running.Status.VMID)
	f.Expect(found).To(BeTrue())
	byHand.CPU = 1
	strangers(t, f.cloud, byHand)
	paused.Annotations = map[string]string{pcapi.PausedAnnotation: "true"}
	paused.Spec.PowerState = pcapi.PowerOff
	f.Expect(env.Client.Update(t.Context(), paused)).To(Succeed())

	f.Eventually(f.drifted).Should(And(
		HaveLen(4),
		HaveKeyWithValue("observed", "[cpu 4 to 2 PowerOn] spec.managementPolicy is ObserveOnly"),
		HaveKeyWithValue("running", HavePrefix("[cpu 1 to 2] NeedsRestart: ")),
		HaveKeyWithValue("renamed", HavePrefix("[Drift] Drift: ")),
		HaveKeyWithValue("paused", "[PowerOff] the object is paused"),
	))
}
