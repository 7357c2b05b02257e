package vsphere_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud/vsphere/vcsim"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
	"github.com/privatecloud/operator/internal/setup"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/test/specs"
)

// strangers is how many VMs of somebody else are imported.
const strangers = 500

// vmState is what an import must not change.
type vmState struct {
	ID, Name, Folder string
	CPU, MemoryMB    int32
	Power            types.VirtualMachinePowerState
}

func statesOf(v *vcsim.Server) map[string]vmState {
	states := map[string]vmState{}
	for _, vm := range v.VMs() {
		if !vm.Config.Template {
			states[vm.Self.Value] = vmState{
				ID: vm.Config.InstanceUuid, Name: vm.Name, Folder: vm.Parent.Value,
				CPU: vm.Config.Hardware.NumCPU, MemoryMB: vm.Config.Hardware.MemoryMB, Power: vm.Runtime.PowerState,
			}
		}
	}
	return states
}

func TestImportOfManyVMsChangesNothingButLabels(tt *testing.T) {
	tt.Parallel()
	t := testkit.NewT(tt, 3*time.Minute, 100*time.Millisecond)
	address, err := testkit.FreeAddress()
	t.Expect(err).NotTo(HaveOccurred())
	c := newCluster(t, func() (*cluster, error) {
		c, err := startServer()
		if err == nil {
			c.operator, err = testkit.StartManager(c.user, setup.Options{Namespace: specs.OperatorNamespace, Diagnostics: address.String()})
		}
		return c, err
	})
	v := newVCenter(t)
	for i := range strangers {
		makeStranger(t, v, i)
	}
	s := connect(t, c, v, "many", func(c *pcapi.Cloud) {
		c.Spec.Limits = pcapi.CloudLimits{RequestsPerSecond: 500, Burst: 500, MaxInFlight: 64}
	})
	s.ready(s.cloud())
	before := statesOf(v)
	t.Expect(before).To(HaveLen(strangers))
	v.Front.ForgetCalls()

	manifests := plugintest.Setup{Kubeconfig: c.env.Kubeconfig()}.Run(t.Context(), "import", "--cloud", s.name, "-n", s.name, "--operator-url", "http://"+address.String())
	t.Expect(manifests.Code).To(BeZero(), manifests.Err)
	t.Expect(strings.Count(manifests.Out, "---\n")).To(Equal(strangers))
	_, err = c.env.Kubectl(t.Context(), manifests.Out, "apply", "-f", "-")
	t.Expect(err).NotTo(HaveOccurred())
	t.Eventually(func(ctx context.Context) (int, error) {
		var vms pcapi.VMList
		ready := 0
		err := c.env.Client.List(ctx, &vms, client.InNamespace(s.name))
		for i := range vms.Items {
			if is, _ := testkit.BeReady().Match(&vms.Items[i]); is {
				ready++
			}
		}
		return ready, err
	}).Should(Equal(strangers))

	t.Expect(cmp.Diff(before, statesOf(v))).To(BeEmpty())
	for call, n := range v.Front.Calls() {
		for _, changes := range []string{"Clone", "Power", "Suspend", "Destroy", "Shutdown", "Rename", "Move"} {
			t.Expect(call).NotTo(ContainSubstring(changes), "%d calls", n)
		}
	}
	t.Expect(v.Front.Calls()["ReconfigVM_Task"]).To(Equal(strangers), "each VM is labelled once")
	for _, vm := range v.VMs() {
		if !vm.Config.Template {
			t.Expect(vcsim.Labels(vm)).NotTo(BeEmpty(), vm.Name)
		}
	}
}

// makeStranger makes a VM of somebody else, which runs, is stopped or is suspended.
func makeStranger(t *testkit.T, v *vcsim.Server, i int) {
	t.Helper()
	vm, err := v.MakeVM(t.Context(), fmt.Sprintf("Legacy %03d", i), nil)
	t.Expect(err).NotTo(HaveOccurred())
	v.Change(vm.Self, types.PropertyChange{Name: "config.hardware.numCPU", Val: int32(1 + i%8)})
	handle := object.NewVirtualMachine(v.Admin.Client, vm.Self)
	change := []func(context.Context) (*object.Task, error){handle.PowerOn, handle.Suspend}
	for _, start := range change[:i%3] {
		task, err := start(t.Context())
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(task.Wait(t.Context())).To(Succeed())
	}
}
