package behaviour_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func TestReadinessProbe(t *testing.T) {
	cases{
		"the address of a member goes and comes back: its guest is not ready meanwhile, and neither is its group": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			g, members := f.readyGroup("pool", 1, func(g *pcapi.VmGroup) {
				g.Spec.ReadinessProbe = &pcapi.VMReadinessProbe{Address: &pcapi.VMAddressProbe{}}
			})
			vm := &members[0]
			server, err := f.serverOf(vm)()
			t.Expect(err).NotTo(HaveOccurred())
			had := server.Interfaces
			server.Interfaces = []mockcloud.Interface{}
			_, err = f.PutServer(server)
			t.Expect(err).NotTo(HaveOccurred())
			t.Eventually(latest(vm)).Should(SatisfyAll(testkit.BeReady(), testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionFalse, pcapi.NoAddressReason, "no address")))
			t.Eventually(latest(g)).Should(testkit.HaveCondition(pcapi.ReadyCondition, metav1.ConditionFalse, pcapi.MembersNotReadyReason, "0 of 1 members are Ready"))

			server.Interfaces = had
			_, err = f.PutServer(server)
			t.Expect(err).NotTo(HaveOccurred())
			t.Eventually(latest(g)).Should(testkit.BeReady())
			t.Expect(f.createCalls()).To(Equal(1))
		},

		"the heartbeat of a guest is lost and comes back: it is not ready meanwhile": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.readyVM("web", func(vm *pcapi.VM) {
				vm.Spec.ReadinessProbe = &pcapi.VMReadinessProbe{GuestHeartbeat: &pcapi.VMGuestHeartbeatProbe{}}
			})
			guest := func(heartbeat string) {
				server, err := f.serverOf(vm)()
				t.Expect(err).NotTo(HaveOccurred())
				server.GuestHeartbeat = heartbeat
				_, err = f.PutServer(server)
				t.Expect(err).NotTo(HaveOccurred())
			}
			t.Eventually(latest(vm)).Should(testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionTrue, pcapi.HeartbeatReason))
			guest(mockcloud.HeartbeatLost)
			t.Eventually(latest(vm)).Should(SatisfyAll(testkit.BeReady(), testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionFalse, pcapi.HeartbeatLostReason)))
			guest(mockcloud.HeartbeatOK)
			t.Eventually(latest(vm)).Should(testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionTrue, pcapi.HeartbeatReason))
			t.Expect(f.createCalls()).To(Equal(1))
		},
	}.run(t)
}
