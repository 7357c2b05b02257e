package behaviour_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

func inZone(zone string) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.Zone = zone }
}

func apart(group string, policy pcapi.AntiAffinityPolicy) func(*pcapi.VM) {
	return func(vm *pcapi.VM) { vm.Spec.AntiAffinity = &pcapi.VMAntiAffinity{Group: group, Policy: policy} }
}

// twoHosts are hosts in one zone each.
var twoHosts = []mockcloud.Host{{Name: "h1", Zone: "z1"}, {Name: "h2", Zone: "z2"}}

func TestPlacement(t *testing.T) {
	cases{
		"a zone: the VM runs in it, and the status shows it": func(t *T) {
			f := newFixture(t, mockcloud.Options{Hosts: twoHosts})
			for name, zone := range map[string]string{"a": "z2", "b": "z2", "c": "z1"} {
				t.Expect(waitReady(t, f.createVM(name, inZone(zone))).Status).To(SatisfyAll(HaveField("Zone", zone), HaveField("Host", "h"+zone[1:])))
			}
		},
		"a zone that does not exist: the VM says so, and is created once it has another": func(t *T) {
			f := newFixture(t, mockcloud.Options{Hosts: twoHosts})
			vm := f.createVM("web", inZone("z3"))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Rejected", `there is no zone "z3"`))
			edit(t, vm, inZone("z1"))
			waitReady(t, vm)
			t.Expect(f.serversNamed("web")).To(HaveLen(1))
		},
		"a required anti-affinity, and no host is left: the VM says where the others run, and is created once one is gone": func(t *T) {
			f := newFixture(t, mockcloud.Options{Hosts: twoHosts})
			first := waitReady(t, f.createVM("db-0", apart("db", pcapi.AntiAffinityRequired)))
			second := waitReady(t, f.createVM("db-1", apart("db", pcapi.AntiAffinityRequired)))
			t.Expect(first.Status.Host).NotTo(Equal(second.Status.Host))

			third := f.createVM("db-2", apart("db", pcapi.AntiAffinityRequired))
			why := []string{"each of the 2 hosts has a server of the anti-affinity group", `group "db"`, "db-0 runs on " + first.Status.Host, "db-1 runs on " + second.Status.Host}
			for _, text := range why {
				t.Eventually(latest(third)).Should(SatisfyAll(
					testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unschedulable", text),
					testkit.HaveCondition("Created", metav1.ConditionFalse, "Unschedulable"),
				))
			}
			waitReady(t, f.createVM("other-0", apart("other", pcapi.AntiAffinityRequired)))
			waitReady(t, f.createVM("db-3", apart("db", pcapi.AntiAffinityPreferred)))

			t.Expect(env.Client.Delete(t.Context(), first)).To(Succeed())
			t.Eventually(func() []string { return f.serversNamed("db-0") }).Should(BeEmpty())
			requestReconcile(t, third)
			t.Expect(waitReady(t, third).Status.Host).To(Equal(first.Status.Host))
		},
		"VMs of two namespaces with one group: they do not keep each other away": func(t *T) {
			f := newFixture(t, mockcloud.Options{Hosts: twoHosts[:1]})
			waitReady(t, f.createVM("a", apart("db", pcapi.AntiAffinityRequired)))
			stranger := testkit.VM(newNamespace(t, nil), "b", func(vm *pcapi.VM) {
				vm.Spec.CloudRef = &pcapi.CloudReference{Name: f.object.Name}
				apart("db", pcapi.AntiAffinityRequired)(vm)
			})
			t.Expect(env.Client.Create(t.Context(), stranger)).To(Succeed())
			waitReady(t, stranger)
		},
		"a group whose members are apart: one each host, and those of a preferred one share hosts": func(t *T) {
			f := newFixture(t, mockcloud.Options{Hosts: twoHosts})
			spread := func(policy pcapi.AntiAffinityPolicy) func(*pcapi.VmGroup) {
				return func(g *pcapi.VmGroup) { g.Spec.AntiAffinity = &pcapi.VmGroupAntiAffinity{Policy: policy} }
			}
			_, members := f.readyGroup("pool", 2, spread(pcapi.AntiAffinityRequired))
			t.Expect(hostsOf(members)).To(Equal([]string{"h1", "h2"}))
			_, members = f.readyGroup("crowd", 3, spread(pcapi.AntiAffinityPreferred))
			t.Expect(slices.Compact(hostsOf(members))).To(Equal([]string{"h1", "h2"}))
		},
		"a group with more members than hosts: it says why, and grows once there is another host": func(t *T) {
			f := newFixture(t, mockcloud.Options{Hosts: twoHosts})
			g := f.createGroup("pool", 3, func(g *pcapi.VmGroup) {
				g.Spec.AntiAffinity = &pcapi.VmGroupAntiAffinity{Policy: pcapi.AntiAffinityRequired}
			})
			t.Eventually(latest(g)).Should(HaveField("Status.ReadyReplicas", int32(2)))
			t.Eventually(membersOf(g)).Should(ContainElement(WithTransform(pointer, testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unschedulable"))))
			t.Expect(f.PutHost(mockcloud.Host{Name: "h3", Zone: "z2"})).To(Succeed())
			members, err := membersOf(g)(t.Context())
			t.Expect(err).NotTo(HaveOccurred())
			for i := range members {
				requestReconcile(t, &members[i])
			}
			t.Eventually(latest(g)).Should(testkit.BeReady())
			t.Expect(f.createCalls()).To(BeNumerically(">=", 4))
		},
		"the zone of a group changes: members are replaced, and run there": func(t *T) {
			f := newFixture(t, mockcloud.Options{Hosts: twoHosts})
			zone := func(name string) func(*pcapi.VmGroup) { return func(g *pcapi.VmGroup) { g.Spec.Zone = name } }
			g, _ := f.readyGroup("pool", 2, zone("z1"))
			edit(t, g, zone("z2"))
			t.Eventually(membersOf(g)).Should(And(HaveLen(2), HaveEach(WithTransform(pointer, And(testkit.BeReady(), HaveField("Status.Zone", "z2"))))))
		},
		"the cloud lacks the capabilities: Unsupported, and nothing is sent": func(t *T) {
			f := newFixture(t, mockcloud.Options{Capabilities: map[mockcloud.Capability]bool{mockcloud.Zones: false, mockcloud.WithAntiAffinity: false}})
			vm := f.createVM("web", inZone("z1"), apart("db", pcapi.AntiAffinityRequired))
			t.Eventually(latest(vm)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unsupported", "zone, antiAffinity"))
			t.Expect(f.createCalls()).To(BeZero())
		},
	}.run(t)
}

func pointer(vm pcapi.VM) *pcapi.VM { return new(vm) }

// hostsOf returns the hosts of VMs, sorted.
func hostsOf(vms []pcapi.VM) []string {
	hosts := make([]string, 0, len(vms))
	for i := range vms {
		hosts = append(hosts, vms[i].Status.Host)
	}
	slices.Sort(hosts)
	return hosts
}
