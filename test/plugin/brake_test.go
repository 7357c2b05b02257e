package plugin_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/plugin/plugintest"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// TestBrakeIsReleased lets the servers of four VMs vanish, and releases the brake with the
// rights that the help of the command names.
func TestBrakeIsReleased(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "braked", nil)
	user := grant(t, "brakes", "", rule(pcapi.GroupVersion.Group, []string{"clouds"}, "get", "list", "patch"))
	var vms []*pcapi.VM
	for i := range 4 {
		vm := testkit.VM(f.namespace, fmt.Sprintf("vm-%d", i))
		f.Expect(env.Client.Create(t.Context(), vm)).To(Succeed())
		vms = append(vms, vm)
	}
	for _, vm := range vms {
		f.Eventually(func(ctx context.Context) (*pcapi.VM, error) {
			return vm, env.Client.Get(ctx, client.ObjectKeyFromObject(vm), vm)
		}).Should(testkit.BeReady())
	}
	s := plugintest.Setup{Kubeconfig: env.Kubeconfig()}
	off := s.Run(t.Context(), "brake", "acknowledge", "braked", "--as="+user)
	f.Expect(off.Out).To(Equal("The brake of Cloud braked is off: nothing was changed.\n"))

	// The next listing counts all of them, and no listing shows a part of them.
	counted := inventory.Settings{SettleTime: testkit.SettleTime}
	for _, vm := range vms {
		f.Eventually(time.Now).Should(BeTemporally(">", counted.ShownFrom(vm.Status.CreatedTime.Time)))
	}
	held, err := f.cloud.AddFault(mockcloud.Fault{Match: mockcloud.Match{Method: "GET", Path: "/servers"}, Hold: true})
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.cloud.WaitHeld(t.Context(), held, 1)).To(Succeed())
	for _, vm := range vms {
		f.Expect(f.cloud.DeleteServer(vm.Status.VMID)).To(Succeed())
	}
	f.Expect(f.cloud.RemoveFault(held)).To(Succeed())
	var snapshot string
	f.Eventually(func(ctx context.Context) (string, error) {
		var c pcapi.Cloud
		err := env.Client.Get(ctx, client.ObjectKey{Name: f.name}, &c)
		snapshot = c.Status.BrakedSnapshot
		return snapshot, err
	}).ShouldNot(BeEmpty())
	shown := s.Run(t.Context(), "brake", "braked", "--as="+user)
	f.Expect(shown.Out).To(And(ContainSubstring("lacks 4 servers"), ContainSubstring("--snapshot="+snapshot)))
	wrong := s.Run(t.Context(), "brake", "acknowledge", "braked", "--snapshot=2000-01-01T00:00:00Z", "--as="+user)
	f.Expect(wrong.Code).To(Equal(1), wrong.String())
	released := s.Run(t.Context(), "brake", "acknowledge", "braked", "--snapshot="+snapshot, "--as="+user)
	f.Expect(released.Code).To(BeZero(), released.String())
	f.Expect(released.Out).To(Equal("The brake of Cloud braked is released.\n"))
	var c pcapi.Cloud
	f.Expect(env.Client.Get(t.Context(), client.ObjectKey{Name: f.name}, &c)).To(Succeed())
	f.Expect(c.Status.BrakedSnapshot).To(BeEmpty())
}

// rule is the right to verbs on resources.
func rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}
