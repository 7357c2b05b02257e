package behaviour_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// group makes a VmGroup on the site's cloud.
func (s *site) group(ctx SpecContext, name string, replicas int32, change ...func(*v1alpha1.VmGroup)) *v1alpha1.VmGroup {
	GinkgoHelper()
	g := &v1alpha1.VmGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: v1alpha1.VmGroupSpec{
			CPU: ptr.To[int32](2), Memory: ptr.To[int32](1), Template: "debian-13", Replicas: &replicas,
			CloudRef: &v1alpha1.CloudReference{Name: s.object.Name},
		},
	}
	for _, apply := range change {
		apply(g)
	}
	Expect(env.Client.Create(ctx, g)).To(Succeed())
	return g
}

// members returns the VMs of a group that are not being deleted, by name.
func members(g *v1alpha1.VmGroup) func(context.Context) ([]v1alpha1.VM, error) {
	return func(ctx context.Context) ([]v1alpha1.VM, error) {
		var list v1alpha1.VMList
		if err := env.Client.List(ctx, &list, client.InNamespace(g.Namespace)); err != nil {
			return nil, err
		}
		var alive []v1alpha1.VM
		for _, vm := range list.Items {
			if vm.DeletionTimestamp.IsZero() && metav1.IsControlledBy(&vm, g) {
				alive = append(alive, vm)
			}
		}
		return alive, nil
	}
}

// settled is a group that is as asked for, and its members.
func (s *site) settled(ctx SpecContext, name string, replicas int32, change ...func(*v1alpha1.VmGroup)) (*v1alpha1.VmGroup, []v1alpha1.VM) {
	GinkgoHelper()
	g := s.group(ctx, name, replicas, change...)
	Eventually(ctx, now(g)).Should(testkit.BeReady())
	vms, err := members(g)(ctx)
	Expect(err).NotTo(HaveOccurred())
	return read(ctx, g), vms
}

func namesOf(vms []v1alpha1.VM) []string {
	names := make([]string, 0, len(vms))
	for i := range vms {
		names = append(names, vms[i].Name)
	}
	return names
}

// made counts the servers ever made.
func (s *site) made() int {
	n := 0
	for _, entry := range s.Ledger() {
		if entry.Op == mockcloud.OpCreate {
			n++
		}
	}
	return n
}

var vmGroups = theme{"a group", cases{
	"has as many VMs as asked for, each made once, in a folder of its own": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		g, vms := s.settled(ctx, "web", 3)
		Expect(g.Status).To(SatisfyAll(
			HaveField("Phase", v1alpha1.VmGroupRunning), HaveField("Replicas", int32(3)), HaveField("ReadyReplicas", int32(3)),
			HaveField("UpdatedReplicas", int32(3)), HaveField("CPUUtilization", HaveValue(Equal(int32(50)))),
			HaveField("Selector", "samplecontroller.k8s.io/group=web"),
		))
		Expect(s.made()).To(Equal(3))
		for _, server := range s.Servers() {
			Expect(server).To(SatisfyAll(
				HaveField("Name", MatchRegexp("^web-replica-[a-z]{8}$")), HaveField("Folder", s.namespace+"-web"),
				HaveField("CPU", 2), HaveField("Memory", 1), HaveField("Template", "debian-13"),
			))
		}
		for _, vm := range vms {
			Expect(vm.OwnerReferences).To(ConsistOf(SatisfyAll(HaveField("UID", g.UID), HaveField("BlockOwnerDeletion", HaveValue(BeTrue())))))
		}
		Expect(story(g)(ctx)).To(ContainElement("Reconciled"))
	},

	"does what its first users did: the same manifest, the same table, kubectl scale": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		useOf(ctx, s, s.object.Name)
		kubectl(ctx, `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: VmGroup
metadata:
  name: vmgroup-sample
spec:
  cpu: 2
  memory: 1
  replicas: 3
  template: vm-operator-template
`, "create", "--namespace", s.namespace, "-f", "-")
		look := func() [][]string { return table(kubectl(ctx, "", "get", "vmgroups", "--namespace", s.namespace)) }
		header := []string{"NAME", "PHASE", "CURRENT", "DESIRED", "CPU", "MEMORY", "TEMPLATE", "LAST_MESSAGE", "READY", "AGE"}
		Eventually(ctx, look).Should(Equal([][]string{header,
			{"vmgroup-sample", "RUNNING", "3", "3", "2", "1", "vm-operator-template", "successfully reconciled VmGroup", "True", "<age>"}}))
		Expect(kubectl(ctx, "", "scale", "--replicas=5", "vmgroup", "vmgroup-sample", "--namespace", s.namespace)).
			To(Equal("vmgroup.samplecontroller.k8s.io/vmgroup-sample scaled\n"))
		Eventually(ctx, look).Should(Equal([][]string{header,
			{"vmgroup-sample", "RUNNING", "5", "5", "2", "1", "vm-operator-template", "successfully reconciled VmGroup", "True", "<age>"}}))
		Expect(s.made()).To(Equal(5))
	},

	"stalls over a wrong template, and recovers when it is patched": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{ProhibitedTemplates: []string{"no-such-template"}}})
		g := s.group(ctx, "vg-2", 2, func(g *v1alpha1.VmGroup) { g.Spec.Template = "no-such-template" })
		Eventually(ctx, now(g)).Should(SatisfyAll(
			HaveField("Status.Phase", v1alpha1.VmGroupError), HaveField("Status.Replicas", int32(0)),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "MembersStalled", "VM vg-2-replica-", "no-such-template"),
		))
		kubectl(ctx, "", "patch", "vg", "vg-2", "--namespace", s.namespace, "--type", "merge", "-p", `{"spec":{"template":"vm-operator-template"}}`)
		Eventually(ctx, now(g)).Should(testkit.BeReady())
		Expect(s.made()).To(Equal(2), "no create of the wrong template took effect, and none of the right one twice")
	},

	"replaces a member that is lost, and no other": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		g, vms := s.settled(ctx, "web", 4)
		Expect(s.DeleteServer(vms[0].Status.VMID)).To(Succeed())
		Eventually(ctx, s.made).Should(Equal(5))
		Eventually(ctx, now(g)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.ReadyReplicas", int32(4))))
		after, err := members(g)(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(namesOf(after)).To(ContainElements(namesOf(vms[1:])))
		Expect(after).NotTo(ContainElement(HaveField("UID", vms[0].UID)))
		Expect(s.Servers()).To(HaveLen(4))
	},

	"replaces a member that the cloud reports in error": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		g, vms := s.settled(ctx, "web", 2)
		Expect(s.SetServerState(vms[0].Status.VMID, mockcloud.StateError)).To(Succeed())
		Eventually(ctx, s.made).Should(Equal(3))
		Eventually(ctx, now(g)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.ReadyReplicas", int32(2))))
		Expect(s.Servers()).To(HaveLen(2))
	},

	"puts a member on again, whoever switched it off": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		_, vms := s.settled(ctx, "web", 2)
		server, _ := s.Server(vms[0].Status.VMID)
		server.State, server.PowerState = mockcloud.StateStopped, mockcloud.PowerOff
		_, err := s.PutServer(server)
		Expect(err).NotTo(HaveOccurred())
		edit(ctx, &vms[1], func(vm *v1alpha1.VM) { vm.Spec.PowerState = v1alpha1.PowerOff })
		for i := range vms {
			Eventually(ctx, now(&vms[i])).Should(SatisfyAll(HaveField("Spec.PowerState", v1alpha1.PowerOn), HaveField("Status.State", v1alpha1.VMStateRunning), testkit.BeReady()))
			Eventually(ctx, s.serverOf(&vms[i])).Should(HaveField("State", mockcloud.StateActive))
		}
		Expect(s.made()).To(Equal(2))
	},

	"makes a member again that somebody deleted, once its server is gone": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{DeleteTime: mockcloud.Duration(2 * time.Second)}})
		g, vms := s.settled(ctx, "web", 2)
		remove(ctx, &vms[0])
		Eventually(ctx, s.made).Should(Equal(3))
		Expect(s.effects()).To(Equal([]mockcloud.Op{mockcloud.OpCreate, mockcloud.OpCreate, mockcloud.OpDelete, mockcloud.OpGone, mockcloud.OpCreate}))
		Eventually(ctx, now(g)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.ReadyReplicas", int32(2))))
	},

	"shrinks by its policy, and takes those first that bear the annotation": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		g, vms := s.settled(ctx, "web", 4, func(g *v1alpha1.VmGroup) { g.Spec.ScaleDown.Policy = v1alpha1.ScaleDownLeastUtilised })
		for i := range vms {
			Expect(s.SetUtilisation(vms[i].Status.VMID, 20*(i+1))).To(Succeed())
			Eventually(ctx, now(&vms[i])).Should(HaveField("Status.CPUUtilization", HaveValue(Equal(int32(20*(i+1))))))
		}
		annotate(ctx, &vms[3], v1alpha1.DeleteFirstAnnotation, "yes")
		edit(ctx, g, func(g *v1alpha1.VmGroup) { g.Spec.Replicas = ptr.To[int32](2) })
		Eventually(ctx, members(g)).Should(WithTransform(namesOf, ConsistOf(vms[1].Name, vms[2].Name)))
		Eventually(ctx, now(g)).Should(testkit.BeReady())
		Expect(s.Servers()).To(HaveLen(2))
	},

	"is resized in place where the cloud can": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		g, vms := s.settled(ctx, "web", 3)
		edited := edit(ctx, g, func(g *v1alpha1.VmGroup) { g.Spec.CPU = ptr.To[int32](4) })
		for i := range vms {
			Eventually(ctx, s.serverOf(&vms[i])).Should(HaveField("CPU", 4))
		}
		Eventually(ctx, now(g)).Should(beUpdated(edited))
		Expect(s.made()).To(Equal(3))
	},

	"is replaced, a few at a time, where the cloud cannot resize, and never too small": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{BuildTime: mockcloud.Duration(time.Second)}})
		Expect(s.SetCapability(mockcloud.Resize, false)).To(Succeed())
		poke(ctx, s.object)
		Eventually(ctx, now(s.object)).Should(HaveField("Status.Capabilities", Not(ContainElement("resize"))))
		g, _ := s.settled(ctx, "web", 3, rolling(0, 1))
		s.neverFewer(3, func() {
			edited := edit(ctx, g, func(g *v1alpha1.VmGroup) { g.Spec.Memory = ptr.To[int32](8) })
			Eventually(ctx, now(g)).Should(beUpdated(edited))
		})
		Expect(s.made()).To(Equal(6))
		Expect(s.Servers()).To(And(HaveLen(3), HaveEach(HaveField("Memory", 8))))
	},

	"rolls to a new template with no more servers than surge allows": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{BuildTime: mockcloud.Duration(500 * time.Millisecond), DeleteTime: mockcloud.Duration(500 * time.Millisecond)}})
		g, _ := s.settled(ctx, "web", 4, rolling(1, 1))
		most := s.mostServers(func() {
			edited := edit(ctx, g, func(g *v1alpha1.VmGroup) { g.Spec.Template = "debian-14" })
			Eventually(ctx, now(g)).Should(beUpdated(edited))
		})
		Expect(most).To(BeNumerically("<=", 5))
		Expect(s.Servers()).To(And(HaveLen(4), HaveEach(HaveField("Template", "debian-14"))))
		Expect(s.made()).To(Equal(8))
	},

	"stops rolling at a template that is wrong, with all that served before": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{ProhibitedTemplates: []string{"no-such-template"}}})
		g, vms := s.settled(ctx, "web", 3)
		edit(ctx, g, func(g *v1alpha1.VmGroup) { g.Spec.Template = "no-such-template" })
		Eventually(ctx, now(g)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "MembersStalled"))
		s.polls(ctx, 2)
		Expect(s.Servers()).To(HaveLen(3))
		edited := edit(ctx, g, func(g *v1alpha1.VmGroup) { g.Spec.Template = "debian-13" })
		Eventually(ctx, now(g)).Should(beUpdated(edited))
		Eventually(ctx, members(g)).Should(WithTransform(namesOf, ConsistOf(namesOf(vms))))
		Expect(s.made()).To(Equal(3))
	},

	"leaves members of an older revision to whom asked for OnDelete": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		g, vms := s.settled(ctx, "web", 2, func(g *v1alpha1.VmGroup) { g.Spec.Strategy.Type = v1alpha1.StrategyOnDelete })
		edit(ctx, g, func(g *v1alpha1.VmGroup) { g.Spec.Template = "debian-14" })
		Eventually(ctx, now(g)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Outdated", "2 of 2 members"))
		Expect(s.made()).To(Equal(2))
		remove(ctx, &vms[0])
		Eventually(ctx, now(g)).Should(testkit.HaveCondition("Ready", metav1.ConditionTrue, "Outdated", "1 of 2 members"))
		Expect(s.made()).To(Equal(3))
	},

	"has its members deleted when it is deleted, and is gone first": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{DeleteTime: mockcloud.Duration(2 * time.Second)}})
		g, _ := s.settled(ctx, "web", 3)
		remove(ctx, g)
		Eventually(ctx, gone(g)).Should(BeTrue())
		Expect(s.Servers()).NotTo(BeEmpty())
		Eventually(ctx, s.Servers).Should(BeEmpty())
		Eventually(ctx, members(g)).Should(BeEmpty())
	},

	"is gone after its members when it is deleted in the foreground": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Behaviour: mockcloud.Behaviour{DeleteTime: mockcloud.Duration(2 * time.Second)}})
		g, _ := s.settled(ctx, "web", 2)
		Expect(env.Client.Delete(ctx, g, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		Eventually(ctx, now(g)).Should(SatisfyAll(HaveField("Status.Phase", v1alpha1.VmGroupDeleting), testkit.HaveCondition("Deleting", metav1.ConditionTrue, "Requested")))
		Eventually(ctx, func(ctx context.Context) ([]string, error) {
			fresh, err := now(g)(ctx)
			if len(s.Servers()) > 0 {
				Expect(fresh.Finalizers).To(ContainElement("samplecontroller.k8s.io/vmgroup"))
			}
			return fresh.Finalizers, err
		}).Should(Equal([]string{metav1.FinalizerDeleteDependents}), "the rest is the garbage collector's, which this API server has not")
		Expect(s.Servers()).To(BeEmpty())
	},

	"leaves its members to whom orphans them": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		g, vms := s.settled(ctx, "web", 2)
		Expect(env.Client.Delete(ctx, g, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(ctx, now(g)).Should(HaveField("Finalizers", Equal([]string{metav1.FinalizerOrphanDependents})))
		s.polls(ctx, 2)
		for i := range vms {
			Expect(read(ctx, &vms[i])).To(And(HaveField("DeletionTimestamp", BeNil()), HaveField("OwnerReferences", BeEmpty())))
		}
	},

	"touches no VM but its own, whatever its name or labels": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		g, vms := s.settled(ctx, "web", 2)
		stranger := s.ready(ctx, "stranger", func(vm *v1alpha1.VM) { vm.Labels = vms[0].Labels })
		edit(ctx, g, func(g *v1alpha1.VmGroup) { g.Spec.Replicas = ptr.To[int32](0) })
		Eventually(ctx, members(g)).Should(BeEmpty())
		Eventually(ctx, s.Servers).Should(HaveLen(1))
		name := vms[0].Name
		usurper := s.ready(ctx, name)
		edit(ctx, g, func(g *v1alpha1.VmGroup) { g.Spec.Replicas = ptr.To[int32](2) })
		Eventually(ctx, now(g)).Should(SatisfyAll(testkit.BeReady(), HaveField("Status.ReadyReplicas", int32(2))))
		Expect(read(ctx, stranger)).To(HaveField("Generation", stranger.Generation))
		Expect(read(ctx, usurper)).To(And(HaveField("Generation", usurper.Generation), HaveField("OwnerReferences", BeEmpty())))
	},

	"whose name is long has members whose names fit": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		_, vms := s.settled(ctx, "a"+strings.Repeat("-very-long.name", 12), 1)
		Expect(len(vms[0].Name)).To(BeNumerically("<=", 63))
		Expect(vms[0].Name).To(MatchRegexp("^a-very-long.+-[0-9a-f]{8}-replica-[a-z]{8}$"))
	},

	"on a core cloud has no folder, and no size": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core})
		g := s.group(ctx, "web", 2, func(g *v1alpha1.VmGroup) { g.Spec.CPU, g.Spec.Memory, g.Spec.Template = nil, nil, "" })
		Eventually(ctx, now(g)).Should(testkit.BeReady())
		Expect(s.Servers()).To(HaveLen(2))
	},

	"that may not use its Cloud makes nothing, and makes up for it once it may": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{}, func(c *v1alpha1.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
		})
		g := s.group(ctx, "web", 1)
		Eventually(ctx, now(g)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "CloudUnavailable", "may not use Cloud"))
		Expect(members(g)(ctx)).To(BeEmpty())
		edit(ctx, namespaceOf(ctx, s), func(ns *corev1.Namespace) { ns.Labels["cloud"] = "yes" })
		Eventually(ctx, now(g)).Should(testkit.BeReady())
	},

	"is left alone while it is paused": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		g, _ := s.settled(ctx, "web", 1)
		annotate(ctx, g, v1alpha1.PausedAnnotation, "true")
		Eventually(ctx, now(g)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		edit(ctx, g, func(g *v1alpha1.VmGroup) { g.Spec.Replicas = ptr.To[int32](2) })
		s.polls(ctx, 2)
		Expect(s.made()).To(Equal(1))
		annotate(ctx, g, v1alpha1.PausedAnnotation, "")
		Eventually(ctx, s.made).Should(Equal(2))
	},

	"refuses what makes no sense, and says why": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{})
		for says, change := range map[string]func(*v1alpha1.VmGroup){
			"maxUnavailable and maxSurge must not both be 0": rolling(0, 0),
			"maxSurge must be a number, 0-10000, or a percentage": func(g *v1alpha1.VmGroup) {
				g.Spec.Strategy = v1alpha1.VmGroupStrategy{MaxSurge: new(intstr.FromString("150%"))}
			},
			"spec.replicas": func(g *v1alpha1.VmGroup) { g.Spec.Replicas = ptr.To[int32](-1) },
		} {
			g := &v1alpha1.VmGroup{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "bad"}}
			change(g)
			Expect(env.Client.Create(ctx, g)).To(MatchError(ContainSubstring(says)))
		}
	},
}}

// beUpdated matches a group that is as its edited spec says.
func beUpdated(edited *v1alpha1.VmGroup) types.GomegaMatcher {
	return SatisfyAll(HaveField("Status.ObservedGeneration", edited.Generation), testkit.BeReady(), HaveField("Status.UpdatedReplicas", *edited.Spec.Replicas))
}

func rolling(unavailable, surge int32) func(*v1alpha1.VmGroup) {
	return func(g *v1alpha1.VmGroup) {
		g.Spec.Strategy = v1alpha1.VmGroupStrategy{
			Type: v1alpha1.StrategyRollingUpdate, MaxUnavailable: new(intstr.FromInt32(unavailable)), MaxSurge: new(intstr.FromInt32(surge)),
		}
	}
}

// neverFewer fails if fewer than n servers run at any time while something happens.
func (s *site) neverFewer(n int, happens func()) {
	GinkgoHelper()
	fewest := n
	s.watchServers(func(servers []mockcloud.Server) {
		running := 0
		for _, server := range servers {
			if server.State == mockcloud.StateActive {
				running++
			}
		}
		fewest = min(fewest, running)
	}, happens)
	Expect(fewest).To(Equal(n), "servers that ran at the worst moment")
}

// mostServers is how many servers there were at most while something happened.
func (s *site) mostServers(happens func()) int {
	most := 0
	s.watchServers(func(servers []mockcloud.Server) { most = max(most, len(servers)) }, happens)
	return most
}

// watchServers looks at the cloud's servers all the time while something happens.
func (s *site) watchServers(look func([]mockcloud.Server), happens func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(glance):
				look(s.Servers())
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	happens()
}

func namespaceOf(ctx SpecContext, s *site) *corev1.Namespace {
	GinkgoHelper()
	return read(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
}
