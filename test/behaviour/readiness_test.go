package behaviour_test

import (
	"cmp"
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

		"the port of a guest opens, closes and opens again: it is ready meanwhile, and nothing else of the VM changes": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.ReadinessProbe = socketProbe() })
			t.Eventually(latest(vm)).Should(SatisfyAll(testkit.BeReady(), testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionFalse, pcapi.ConnectionRefusedReason, "refuses connections")))
			closePort := f.openPort(vm)
			t.Eventually(latest(vm)).Should(testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionTrue, pcapi.PortOpenReason))
			closePort()
			t.Eventually(latest(vm)).Should(SatisfyAll(testkit.BeReady(), testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionFalse, pcapi.ConnectionRefusedReason)))
			f.openPort(vm)
			t.Eventually(latest(vm)).Should(testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionTrue, pcapi.PortOpenReason))
			t.Expect(f.createCalls()).To(Equal(1))
		},

		"a VM whose address is in no network of the operator is not probed, and says whom to ask": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.ReadinessProbe = socketProbe() })
			server, err := f.serverOf(vm)()
			t.Expect(err).NotTo(HaveOccurred())
			for _, address := range []string{"192.168.77.5", "127.0.0.1", "169.254.169.254"} {
				server.Interfaces = []mockcloud.Interface{{MACAddress: "fa:16:3e:00:00:01", Addresses: []string{address}}}
				_, err = f.PutServer(server)
				t.Expect(err).NotTo(HaveOccurred())
				guest := testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionUnknown, pcapi.ProbeNotAllowedReason, "ask its administrator")
				if address != "192.168.77.5" { // those of a host or a link are not shown
					guest = testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionFalse, pcapi.NoAddressReason)
				}
				t.Eventually(latest(vm)).Should(SatisfyAll(testkit.BeReady(), guest))
				t.Expect(guestPorts.wasDialled(address)).To(BeFalse(), "%s is not dialled", address)
			}
		},

		"a VM whose address is that of a Node or a Pod is not probed": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.ReadinessProbe = socketProbe() })
			f.openPort(vm)
			open := testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionTrue, pcapi.PortOpenReason)
			notAllowed := SatisfyAll(testkit.BeReady(), testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionUnknown, pcapi.ProbeNotAllowedReason, "ask its administrator"))
			t.Eventually(latest(vm)).Should(open)
			current, err := latest(vm)(t.Context())
			t.Expect(err).NotTo(HaveOccurred())
			address := current.Status.Network.PrimaryIP4

			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: f.namespace + "-n"}}
			t.Expect(env.Client.Create(t.Context(), node)).To(Succeed())
			t.cleanup(func(ctx context.Context) { t.wipe(ctx, node) })
			node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: node.Name}, {Type: corev1.NodeInternalIP, Address: address}}
			t.Expect(env.Client.Status().Update(t.Context(), node)).To(Succeed())
			t.Eventually(latest(vm)).Should(notAllowed)
			guestPorts.forget(address)
			t.Consistently(func() bool { return guestPorts.wasDialled(address) }, "6s").Should(BeFalse(), "the Node is not dialled for more than a period")
			node.Status.Addresses = node.Status.Addresses[:1]
			t.Expect(env.Client.Status().Update(t.Context(), node)).To(Succeed())
			t.Eventually(latest(vm)).Should(open)

			node.Spec.PodCIDR = address + "/32"
			node.Spec.PodCIDRs = []string{node.Spec.PodCIDR}
			t.Expect(env.Client.Update(t.Context(), node)).To(Succeed())
			t.Eventually(latest(vm)).Should(notAllowed)
			t.Expect(env.Client.Delete(t.Context(), node)).To(Succeed())
			t.Eventually(latest(vm)).Should(open)
			t.Expect(f.createCalls()).To(Equal(1))
		},

		"a VM whose address is that of a Service is not probed": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			vm := f.readyVM("web", func(vm *pcapi.VM) { vm.Spec.ReadinessProbe = socketProbe() })
			server, err := f.serverOf(vm)()
			t.Expect(err).NotTo(HaveOccurred())
			var service corev1.Service
			t.Expect(env.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &service)).To(Succeed())
			address := service.Spec.ClusterIP
			server.Interfaces = []mockcloud.Interface{{MACAddress: "fa:16:3e:00:00:01", Addresses: []string{address}}}
			_, err = f.PutServer(server)
			t.Expect(err).NotTo(HaveOccurred())
			t.Eventually(latest(vm)).Should(testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionUnknown, pcapi.ProbeNotAllowedReason))
			t.Expect(guestPorts.wasDialled(address)).To(BeFalse(), "%s is not dialled", address)
		},

		"a rolling update deletes an old member once the port of the new one is open": func(t *T) {
			f := newFixture(t, mockcloud.Options{})
			g, members := f.readyGroup("pool", 1, rolling(0, 1))
			old := &members[0]
			f.openPort(old)
			edit(t, g, func(g *pcapi.VmGroup) { g.Spec.ReadinessProbe = socketProbe() })
			t.Eventually(latest(old)).Should(testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionTrue, pcapi.PortOpenReason))
			edited := edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Template = "debian-14" })
			var fresh *pcapi.VM
			t.Eventually(func(ctx context.Context) (*pcapi.VM, error) {
				both, err := membersOf(g)(ctx)
				for i := range both {
					if both[i].Name != old.Name {
						fresh = &both[i]
						return fresh, err
					}
				}
				return nil, cmp.Or(err, errors.New("there is no new member yet"))
			}).Should(testkit.HaveCondition(pcapi.GuestReadyCondition, metav1.ConditionFalse, pcapi.ConnectionRefusedReason))
			f.waitForPolls(2)
			t.Expect(membersOf(g)(t.Context())).To(HaveLen(2), "the old member stays as long as the port of the new one is closed")
			f.openPort(fresh)
			t.Eventually(latest(g)).Should(beUpdated(edited))
			t.Expect(membersOf(g)(t.Context())).To(HaveExactElements(HaveField("Name", fresh.Name)))
		},
	}.run(t)
}

func TestReadinessProbeHasBounds(t *testing.T) {
	all := cases{
		"the largest values and all probes: accepted": func(t *T) {
			output, err := dryRun(t, "VM", `{vmname: web, readinessProbe: {address: {}, guestHeartbeat: {}, tcpSocket: {port: 65535}, periodSeconds: 3600, timeoutSeconds: 30, failureThreshold: 10}}`)
			t.Expect(err).NotTo(HaveOccurred(), output)
		},
		"the smallest values: accepted": func(t *T) {
			output, err := dryRun(t, "VM", `{vmname: web, readinessProbe: {tcpSocket: {port: 1}, periodSeconds: 5, timeoutSeconds: 1, failureThreshold: 1}}`)
			t.Expect(err).NotTo(HaveOccurred(), output)
		},
	}
	for probe, says := range map[string]string{
		`tcpSocket: {}`:                               "spec.readinessProbe.tcpSocket.port: Required value",
		`tcpSocket: {port: 0}`:                        "spec.readinessProbe.tcpSocket.port in body should be greater than or equal to 1",
		`tcpSocket: {port: 65536}`:                    "spec.readinessProbe.tcpSocket.port in body should be less than or equal to 65535",
		`tcpSocket: {port: ssh}`:                      `spec.readinessProbe.tcpSocket.port in body must be of type integer: "string"`,
		`tcpSocket: {port: 22}, periodSeconds: 4`:     "spec.readinessProbe.periodSeconds in body should be greater than or equal to 5",
		`tcpSocket: {port: 22}, periodSeconds: 3601`:  "spec.readinessProbe.periodSeconds in body should be less than or equal to 3600",
		`tcpSocket: {port: 22}, timeoutSeconds: 0`:    "spec.readinessProbe.timeoutSeconds in body should be greater than or equal to 1",
		`tcpSocket: {port: 22}, timeoutSeconds: 31`:   "spec.readinessProbe.timeoutSeconds in body should be less than or equal to 30",
		`tcpSocket: {port: 22}, failureThreshold: 11`: "spec.readinessProbe.failureThreshold in body should be less than or equal to 10",
	} {
		all[probe+": refused"] = func(t *T) {
			output, err := dryRun(t, "VM", `{vmname: web, readinessProbe: {`+probe+`}}`)
			t.Expect(err).To(HaveOccurred(), output)
			t.Expect(output).To(ContainSubstring(says))
		}
	}
	all.run(t)
}
