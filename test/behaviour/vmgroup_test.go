package behaviour_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// createGroup creates a VmGroup on the cloud of the fixture.
func (f *fixture) createGroup(name string, replicas int32, change ...func(*pcapi.VmGroup)) *pcapi.VmGroup {
	f.t.Helper()
	g := &pcapi.VmGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: pcapi.VmGroupSpec{
			CPU: pcapi.Cores(2), Memory: pcapi.GiB(1), Template: "debian-13", Replicas: &replicas,
			CloudRef: &pcapi.CloudReference{Name: f.object.Name},
		},
	}
	for _, apply := range change {
		apply(g)
	}
	f.t.Expect(env.Client.Create(f.t.Context(), g)).To(Succeed())
	return g
}

// membersOf returns a function that lists the VMs of a group that are not being deleted, by name.
func membersOf(g *pcapi.VmGroup) func(context.Context) ([]pcapi.VM, error) {
	return func(ctx context.Context) ([]pcapi.VM, error) {
		var list pcapi.VMList
		if err := env.Client.List(ctx, &list, client.InNamespace(g.Namespace)); err != nil {
			return nil, err
		}
		var alive []pcapi.VM
		for _, vm := range list.Items {
			if vm.DeletionTimestamp.IsZero() && metav1.IsControlledBy(&vm, g) {
				alive = append(alive, vm)
			}
		}
		return alive, nil
	}
}

// readyGroup creates a VmGroup and returns it and its members once it is ready.
func (f *fixture) readyGroup(name string, replicas int32, change ...func(*pcapi.VmGroup)) (*pcapi.VmGroup, []pcapi.VM) {
	f.t.Helper()
	g := f.createGroup(name, replicas, change...)
	f.t.Eventually(latest(g)).Should(testkit.BeReady())
	vms, err := membersOf(g)(f.t.Context())
	f.t.Expect(err).NotTo(HaveOccurred())
	return get(f.t, g), vms
}

func namesOf(vms []pcapi.VM) []string {
	names := make([]string, 0, len(vms))
	for i := range vms {
		names = append(names, vms[i].Name)
	}
	return names
}

// createdServers counts the servers that were ever created.
func (f *fixture) createdServers() int {
	n := 0
	for _, entry := range f.Ledger() {
		if entry.Op == mockcloud.OpCreate {
			n++
		}
	}
	return n
}

func TestVmGroup(t *testing.T) { vmGroupCases.run(t) }

var vmGroupCases = cases{
	"three replicas are requested: three members are created once each, in the group's folder": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, vms := f.readyGroup("web", 3)
		t.Expect(g.Status).To(SatisfyAll(
			HaveField("Phase", pcapi.VmGroupRunning), HaveField("Replicas", int32(3)), HaveField("ReadyReplicas", int32(3)),
			HaveField("UpdatedReplicas", int32(3)), HaveField("CPUUtilization", HaveValue(Equal(int32(50)))),
			HaveField("Selector", "samplecontroller.k8s.io/group=web"),
		))
		t.Expect(f.createdServers()).To(Equal(3))
		for _, server := range f.Servers() {
			t.Expect(server).To(SatisfyAll(
				HaveField("Name", MatchRegexp("^web-replica-[a-z]{8}$")), HaveField("Folder", f.namespace+"-web"),
				HaveField("CPU", 2), HaveField("Memory", 1), HaveField("Template", "debian-13"),
			))
		}
		for _, vm := range vms {
			t.Expect(vm.OwnerReferences).To(ConsistOf(SatisfyAll(HaveField("UID", g.UID), HaveField("BlockOwnerDeletion", HaveValue(BeTrue())))))
		}
		t.Eventually(eventReasons(g)).Should(ContainElement("Reconciled"))
	},

	"the documented manifest is applied and scaled: kubectl prints the documented table": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		f.setDefaultCloud(f.object.Name)
		kubectl(t, `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VmGroup
metadata:
  name: vmgroup-sample
spec:
  cpu: 2
  memory: 1
  replicas: 3
  template: vm-operator-template
`, "create", "--namespace", f.namespace, "-f", "-")
		look := func() [][]string { return table(t, kubectl(t, "", "get", "vmgroups", "--namespace", f.namespace)) }
		header := []string{"NAME", "PHASE", "CURRENT", "DESIRED", "CPU", "MEMORY", "TEMPLATE", "READY", "AGE", "LAST_MESSAGE"}
		t.Eventually(look).Should(Equal([][]string{header,
			{"vmgroup-sample", "RUNNING", "3", "3", "2", "1", "vm-operator-template", "True", "<age>", "successfully reconciled VmGroup"}}))
		t.Expect(kubectl(t, "", "scale", "--replicas=5", "vmgroup", "vmgroup-sample", "--namespace", f.namespace)).
			To(Equal("vmgroup.samplecontroller.k8s.io/vmgroup-sample scaled\n"))
		t.Eventually(look).Should(Equal([][]string{header,
			{"vmgroup-sample", "RUNNING", "5", "5", "2", "1", "vm-operator-template", "True", "<age>", "successfully reconciled VmGroup"}}))
		t.Expect(f.createdServers()).To(Equal(5))
	},

	"the template is wrong: the group stalls until it is patched": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{ProhibitedTemplates: []string{"no-such-template"}}})
		g := f.createGroup("vg-2", 2, func(g *pcapi.VmGroup) { g.Spec.Template = "no-such-template" })
		t.Eventually(latest(g)).Should(SatisfyAll(
			HaveField("Status.Phase", pcapi.VmGroupError), HaveField("Status.Replicas", int32(0)),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "MembersStalled", "VM vg-2-replica-", "no-such-template"),
		))
		kubectl(t, "", "patch", "vg", "vg-2", "--namespace", f.namespace, "--type", "merge", "-p", `{"spec":{"template":"vm-operator-template"}}`)
		t.Eventually(latest(g)).Should(testkit.BeReady())
		t.Expect(f.createdServers()).To(Equal(2), "each member was created once")
	},

	"the quota suffices for one of three members: the group names one that waits, and why": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{Quota: 1, Utilisation: "fixed:50"}})
		g := f.createGroup("full", 3)
		t.Eventually(latest(g)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "MembersNotReady", "1 of 3 members are Ready; VM full-replica-", ": QuotaExceeded: "),
			Not(testkit.HaveCondition("Stalled", "", "")),
		))
		t.Expect(kubectl(t, "", "get", "vg", "full", "--namespace", f.namespace)).To(ContainSubstring(": QuotaExceeded: "), "LAST_MESSAGE")
		t.Expect(f.createdServers()).To(Equal(1))
	},

	"a member is lost: only that member is replaced": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, vms := f.readyGroup("web", 4)
		t.Expect(f.DeleteServer(vms[0].Status.VMID)).To(Succeed())
		t.Eventually(f.createdServers).Should(Equal(5))
		t.Eventually(latest(g)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.ReadyReplicas", int32(4))))
		after, err := membersOf(g)(t.Context())
		t.Expect(err).NotTo(HaveOccurred())
		t.Expect(namesOf(after)).To(ContainElements(namesOf(vms[1:])))
		t.Expect(after).NotTo(ContainElement(HaveField("UID", vms[0].UID)))
		t.Expect(f.Servers()).To(HaveLen(4))
	},

	"the cloud reports a member in error: it is replaced": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, vms := f.readyGroup("web", 2)
		t.Expect(f.SetServerState(vms[0].Status.VMID, mockcloud.StateError)).To(Succeed())
		t.Eventually(f.createdServers).Should(Equal(3))
		t.Eventually(latest(g)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.ReadyReplicas", int32(2))))
		t.Expect(f.Servers()).To(HaveLen(2))
	},

	"members are switched off in the cloud and in the spec: they are switched on again": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		_, vms := f.readyGroup("web", 2)
		server, _ := f.Server(vms[0].Status.VMID)
		server.State, server.PowerState = mockcloud.StateStopped, mockcloud.PowerOff
		_, err := f.PutServer(server)
		t.Expect(err).NotTo(HaveOccurred())
		edit(t, &vms[1], func(vm *pcapi.VM) { vm.Spec.PowerState = pcapi.PowerOff })
		for i := range vms {
			t.Eventually(latest(&vms[i])).Should(SatisfyAll(HaveField("Spec.PowerState", pcapi.PowerOn), HaveField("Status.State", pcapi.VMStateRunning), testkit.BeReady()))
			t.Eventually(f.serverOf(&vms[i])).Should(HaveField("State", mockcloud.StateActive))
		}
		t.Expect(f.createdServers()).To(Equal(2))
	},

	"a member is deleted: it is replaced once its server is gone": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{DeleteTime: mockcloud.Duration(2 * time.Second)}})
		g, vms := f.readyGroup("web", 2)
		deleteObject(t, &vms[0])
		t.Eventually(f.createdServers).Should(Equal(3))
		t.Expect(f.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpCreate, mockcloud.OpDelete, mockcloud.OpGone, mockcloud.OpCreate}))
		t.Eventually(latest(g)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.ReadyReplicas", int32(2))))
	},

	"the group shrinks: annotated members go first, then those that the policy names": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, vms := f.readyGroup("web", 4, func(g *pcapi.VmGroup) { g.Spec.ScaleDown.Policy = pcapi.ScaleDownLeastUtilised })
		for i := range vms {
			t.Expect(f.SetUtilisation(vms[i].Status.VMID, 20*(i+1))).To(Succeed())
			t.Eventually(latest(&vms[i])).Should(HaveField("Status.CPUUtilization", HaveValue(Equal(int32(20*(i+1))))))
		}
		annotate(t, &vms[3], pcapi.DeleteFirstAnnotation, "yes")
		edited := edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Replicas = ptr.To[int32](2) })
		t.Eventually(membersOf(g)).Should(WithTransform(namesOf, ConsistOf(vms[1].Name, vms[2].Name)))
		t.Eventually(latest(g)).Should(beUpdated(edited))
		t.Expect(f.Servers()).To(HaveLen(2))
	},

	"cpu changes: members are resized in place": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, vms := f.readyGroup("web", 3)
		edited := edit(t, g, func(g *pcapi.VmGroup) { g.Spec.CPU = pcapi.Cores(4) })
		for i := range vms {
			t.Eventually(f.serverOf(&vms[i])).Should(HaveField("CPU", 4))
		}
		t.Eventually(latest(g)).Should(beUpdated(edited))
		t.Expect(f.createdServers()).To(Equal(3))
	},

	"memory changes and the cloud cannot resize: members are replaced with never fewer running": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{BuildTime: mockcloud.Duration(time.Second)}})
		t.Expect(f.SetCapability(mockcloud.Resize, false)).To(Succeed())
		requestReconcile(t, f.object)
		t.Eventually(latest(f.object)).Should(HaveField("Status.Capabilities", Not(ContainElement("resize"))))
		g, _ := f.readyGroup("web", 3, rolling(0, 1))
		f.neverFewer(3, func() {
			edited := edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Memory = pcapi.GiB(8) })
			t.Eventually(latest(g)).Should(beUpdated(edited))
		})
		t.Expect(f.createdServers()).To(Equal(6))
		t.Expect(f.Servers()).To(And(HaveLen(3), HaveEach(HaveField("Memory", 8))))
	},

	"the template changes: the group rolls with no more servers than maxSurge allows": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{BuildTime: mockcloud.Duration(500 * time.Millisecond), DeleteTime: mockcloud.Duration(500 * time.Millisecond)}})
		g, _ := f.readyGroup("web", 4, rolling(1, 1))
		most := f.mostServers(func() {
			edited := edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Template = "debian-14" })
			t.Eventually(latest(g)).Should(beUpdated(edited))
		})
		t.Expect(most).To(BeNumerically("<=", 5))
		t.Expect(f.Servers()).To(And(HaveLen(4), HaveEach(HaveField("Template", "debian-14"))))
		t.Expect(f.createdServers()).To(Equal(8))
	},

	"the new template is wrong: the rollout stops with all earlier members running": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{ProhibitedTemplates: []string{"no-such-template"}}})
		g, vms := f.readyGroup("web", 3)
		edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Template = "no-such-template" })
		t.Eventually(latest(g)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "MembersStalled"))
		f.waitForPolls(2)
		t.Expect(f.Servers()).To(HaveLen(3))
		edited := edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Template = "debian-13" })
		t.Eventually(latest(g)).Should(beUpdated(edited))
		t.Eventually(membersOf(g)).Should(WithTransform(namesOf, ConsistOf(namesOf(vms))))
		t.Expect(f.createdServers()).To(Equal(3))
	},

	"the strategy is OnDelete: members are replaced only when they are deleted": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, vms := f.readyGroup("web", 2, func(g *pcapi.VmGroup) { g.Spec.Strategy.Type = pcapi.StrategyOnDelete })
		edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Template = "debian-14" })
		t.Eventually(latest(g)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Outdated", "2 of 2 members"))
		t.Expect(f.createdServers()).To(Equal(2))
		deleteObject(t, &vms[0])
		t.Eventually(latest(g)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Outdated", "1 of 2 members"))
		t.Expect(f.createdServers()).To(Equal(3))
	},

	"the group is deleted: it is gone first and then its members are deleted": func(t *T) {
		const takes = 15 * time.Second // longer than a busy machine needs to see that the group is gone
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{DeleteTime: mockcloud.Duration(takes)}})
		g, _ := f.readyGroup("web", 3)
		deleteObject(t, g)
		t.Eventually(isGone(g)).Should(BeTrue())
		t.Expect(f.Servers()).NotTo(BeEmpty())
		t.Eventually(f.Servers).WithTimeout(4 * takes).Should(BeEmpty())
		t.Eventually(membersOf(g)).Should(BeEmpty())
	},

	"the group is deleted in the foreground: it is gone after its members": func(t *T) {
		f := newFixture(t, mockcloud.Options{Behaviour: mockcloud.Behaviour{DeleteTime: mockcloud.Duration(2 * time.Second)}})
		g, _ := f.readyGroup("web", 2)
		t.Expect(env.Client.Delete(t.Context(), g, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		t.Eventually(latest(g)).Should(SatisfyAll(HaveField("Status.Phase", pcapi.VmGroupDeleting), testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Requested")))
		t.Eventually(func(ctx context.Context) ([]string, error) {
			fresh, err := latest(g)(ctx)
			if len(f.Servers()) > 0 {
				t.Expect(fresh.Finalizers).To(ContainElement("samplecontroller.k8s.io/vmgroup"))
			}
			return fresh.Finalizers, err
		}).Should(Equal([]string{metav1.FinalizerDeleteDependents}), "the garbage collector, which does not run here, removes the last finalizer")
		t.Expect(f.Servers()).To(BeEmpty())
	},

	"the group is deleted with orphan propagation: its members stay without an owner": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, vms := f.readyGroup("web", 2)
		t.Expect(env.Client.Delete(t.Context(), g, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		t.Eventually(latest(g)).Should(HaveField("Finalizers", Equal([]string{metav1.FinalizerOrphanDependents})))
		f.waitForPolls(2)
		for i := range vms {
			t.Expect(get(t, &vms[i])).To(And(HaveField("DeletionTimestamp", BeNil()), HaveField("OwnerReferences", BeEmpty())))
		}
	},

	"other VMs have the names or labels of members: they are not changed": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, vms := f.readyGroup("web", 2)
		foreign := f.readyVM("foreign", func(vm *pcapi.VM) { vm.Labels = vms[0].Labels })
		edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Replicas = ptr.To[int32](0) })
		t.Eventually(membersOf(g)).Should(BeEmpty())
		t.Eventually(f.Servers).Should(HaveLen(1))
		t.Eventually(isGone(&vms[0])).Should(BeTrue(), "its name is free once the object is gone, which is after its server")
		name := vms[0].Name
		namesake := f.readyVM(name)
		edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Replicas = ptr.To[int32](2) })
		t.Eventually(latest(g)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.ReadyReplicas", int32(2))))
		t.Expect(get(t, foreign)).To(HaveField("Generation", foreign.Generation))
		t.Expect(get(t, namesake)).To(And(HaveField("Generation", namesake.Generation), HaveField("OwnerReferences", BeEmpty())))
	},

	"the group's name is long: the names of its members have at most 63 characters": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		_, vms := f.readyGroup("a"+strings.Repeat("-very-long.name", 12), 1)
		t.Expect(len(vms[0].Name)).To(BeNumerically("<=", 63))
		t.Expect(vms[0].Name).To(MatchRegexp("^a-very-long.+-[0-9a-f]{8}-replica-[a-z]{8}$"))
	},

	"the cloud is a core cloud: members have no folder and no size": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core})
		g := f.createGroup("web", 2, func(g *pcapi.VmGroup) { g.Spec.CPU, g.Spec.Memory, g.Spec.Template = nil, nil, "" })
		t.Eventually(latest(g)).Should(testkit.BeReady())
		t.Expect(f.Servers()).To(HaveLen(2))
	},

	"the namespace may not use the Cloud: nothing is created until it may": func(t *T) {
		f := newFixture(t, mockcloud.Options{}, func(c *pcapi.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
		})
		g := f.createGroup("web", 1)
		t.Eventually(latest(g)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "may not use it"))
		t.Expect(membersOf(g)(t.Context())).To(BeEmpty())
		edit(t, f.namespaceObject(), func(ns *corev1.Namespace) { ns.Labels["cloud"] = "yes" })
		t.Eventually(latest(g)).Should(testkit.BeReady())
	},

	"the group is paused: it is not scaled until it is resumed": func(t *T) {
		f := newFixture(t, mockcloud.Options{})
		g, _ := f.readyGroup("web", 1)
		annotate(t, g, pcapi.PausedAnnotation, "true")
		t.Eventually(latest(g)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		edit(t, g, func(g *pcapi.VmGroup) { g.Spec.Replicas = ptr.To[int32](2) })
		f.waitForPolls(2)
		t.Expect(f.createdServers()).To(Equal(1))
		annotate(t, g, pcapi.PausedAnnotation, "")
		t.Eventually(f.createdServers).Should(Equal(2))
	},

	"maxUnavailable and maxSurge are both 0: the API server refuses it": refusedGroup("maxUnavailable and maxSurge must not both be 0", rolling(0, 0)),
	"maxSurge is above 100 percent: the API server refuses it": refusedGroup("maxSurge must be a number, 0-10000, or a percentage", func(g *pcapi.VmGroup) {
		g.Spec.Strategy = pcapi.VmGroupStrategy{MaxSurge: new(intstr.FromString("150%"))}
	}),
	"replicas is negative: the API server refuses it": refusedGroup("spec.replicas", func(g *pcapi.VmGroup) { g.Spec.Replicas = ptr.To[int32](-1) }),
}

func refusedGroup(sentence string, change func(*pcapi.VmGroup)) func(*T) {
	return func(t *T) {
		g := testkit.VmGroup(newNamespace(t, nil), "bad", change)
		t.Expect(env.Client.Create(t.Context(), g)).To(MatchError(ContainSubstring(sentence)))
	}
}

func (f *fixture) namespaceObject() *corev1.Namespace {
	f.t.Helper()
	return get(f.t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
}
