package behaviour_test

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// racks are hosts with a GPU, a and b, for so many hours each.
func racks(a, b int) mockcloud.Options {
	return mockcloud.Options{Hosts: []mockcloud.Host{
		{Name: "a", GPU: true, AvailableHours: a}, {Name: "b", GPU: true, AvailableHours: b}, {Name: "plain", AvailableHours: 1000},
	}}
}

// node makes a Node that is Ready, and its server on a host, which uses so many
// percent of its one core.
func (s *site) node(ctx SpecContext, name, host string, percent int) *corev1.Node {
	GinkgoHelper()
	server, err := s.PutServer(mockcloud.Server{Name: name, Host: host})
	Expect(err).NotTo(HaveOccurred())
	Expect(s.SetUtilisation(server.ID, percent)).To(Succeed())
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(env.Client.Create(ctx, n)).To(Succeed())
	heartbeat(ctx, n, corev1.ConditionTrue)
	s.polls(ctx, 2)
	return n
}

func heartbeat(ctx SpecContext, n *corev1.Node, ready corev1.ConditionStatus) {
	GinkgoHelper()
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: ready, Reason: "Test", LastHeartbeatTime: metav1.Now(),
	}}
	Expect(env.Client.Status().Update(ctx, n)).To(Succeed())
}

// nodes makes one on host a and one on b; a's uses less.
func (s *site) nodes(ctx SpecContext) (onA, onB *corev1.Node) {
	GinkgoHelper()
	return s.node(ctx, s.namespace+"-a", "a", 10), s.node(ctx, s.namespace+"-b", "b", 60)
}

// put changes a host.
func (s *site) put(name string, hours int) {
	GinkgoHelper()
	Expect(s.PutHost(mockcloud.Host{Name: name, GPU: true, AvailableHours: hours})).To(Succeed())
}

// ask makes a GPUInfo that wants a GPU on the site's cloud for so many hours.
func (s *site) ask(ctx SpecContext, name string, hours int64, change ...func(*v1alpha1.GPUInfo)) *v1alpha1.GPUInfo {
	GinkgoHelper()
	gpu := &v1alpha1.GPUInfo{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       v1alpha1.GPUInfoSpec{DesAccTime: hours, GPURequired: true, CloudRef: &v1alpha1.CloudReference{Name: s.object.Name}},
	}
	for _, apply := range change {
		apply(gpu)
	}
	Expect(env.Client.Create(ctx, gpu)).To(Succeed())
	return gpu
}

// placedOn waits until a GPUInfo has a node, and returns it.
func placedOn(ctx SpecContext, gpu *v1alpha1.GPUInfo, node *corev1.Node, host string) *v1alpha1.GPUInfo {
	GinkgoHelper()
	Eventually(ctx, now(gpu)).Should(SatisfyAll(
		testkit.BeReady(), testkit.HaveCondition("Placed", metav1.ConditionTrue, "Placed"),
		HaveField("Status.SuitableNodeName", node.Name), HaveField("Status.SuitableHostName", host),
	))
	return read(ctx, gpu)
}

func unplaced(ctx SpecContext, gpu *v1alpha1.GPUInfo) *v1alpha1.GPUInfo {
	GinkgoHelper()
	Eventually(ctx, now(gpu)).Should(SatisfyAll(
		testkit.HaveCondition("Placed", metav1.ConditionFalse, "NoneAvailable"),
		testkit.HaveCondition("Ready", metav1.ConditionFalse, "NoneAvailable"),
		testkit.HaveCondition("Reconciling", metav1.ConditionTrue, ""),
		HaveField("Status.SuitableNodeName", "None available"), HaveField("Status.SuitableHostName", "None available"),
		HaveField("Status.Reservation", BeNil()),
	))
	return read(ctx, gpu)
}

// messagesOn are what a GPUInfo says of the site's nodes, the others' left out.
func (s *site) messagesOn(gpu *v1alpha1.GPUInfo) []string {
	var messages []string
	for _, c := range gpu.Status.Candidates {
		if short, ours := strings.CutPrefix(c.NodeName, s.namespace+"-"); ours {
			messages = append(messages, fmt.Sprintf("%s on %q: %s", short, c.HostName, c.Message))
		}
	}
	return messages
}

// winners waits until each of the GPUInfos was answered, and returns those that
// have a node.
func winners(ctx SpecContext, gpus []*v1alpha1.GPUInfo) []*v1alpha1.GPUInfo {
	GinkgoHelper()
	var won []*v1alpha1.GPUInfo
	for _, gpu := range gpus {
		Eventually(ctx, now(gpu)).Should(testkit.HaveCondition("Placed", "", ""))
		if fresh := read(ctx, gpu); fresh.Status.Reservation != nil {
			won = append(won, fresh)
		}
	}
	return won
}

const (
	chosen = "chosen, and kept as long as it suits"
	suits  = "suits; another was chosen"
)

var gpuInfos = theme{"a GPUInfo", cases{
	"is given the node whose server uses the least CPU, with what it uses and why not the others": func(ctx SpecContext) {
		s := newSite(ctx, racks(100, 200))
		onA, _ := s.nodes(ctx)
		s.node(ctx, s.namespace+"-p", "plain", 0)
		cordoned := s.node(ctx, s.namespace+"-c", "b", 0)
		edit(ctx, cordoned, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		gpu := placedOn(ctx, s.ask(ctx, "job", 100), onA, "a")

		Expect(gpu.Status.AvailableAcceleratorTime).To(BeEquivalentTo(100))
		Expect(gpu.Status.NodeCPUUsage).To(BeEquivalentTo(260))
		Expect(gpu.Status.NodeMemoryUsage).To(BeEquivalentTo(563))
		held := gpu.Status.Reservation
		Expect(held.Until.Sub(held.Since.Time)).To(Equal(100 * time.Hour))
		Expect(s.messagesOn(gpu)).To(Equal([]string{
			`a on "a": ` + chosen, `b on "b": ` + suits, `c on "b": the node is cordoned`, `p on "plain": the host has no GPU`,
		}))
		Expect(story(gpu)(ctx)).To(Equal([]string{"Placed"}))

		plain := s.ask(ctx, "plain", 100, func(gpu *v1alpha1.GPUInfo) { gpu.Spec.GPURequired = false })
		Eventually(ctx, now(plain)).Should(HaveField("Status.SuitableHostName", "plain"))
	},

	"keeps its node while another becomes less used": func(ctx SpecContext) {
		s := newSite(ctx, racks(100, 100))
		onA, onB := s.nodes(ctx)
		gpu := placedOn(ctx, s.ask(ctx, "job", 10), onA, "a")

		Expect(s.SetUtilisation(s.named(onB.Name)[0], 1)).To(Succeed())
		Expect(s.SetUtilisation(s.named(onA.Name)[0], 99)).To(Succeed())
		Eventually(ctx, now(gpu)).Should(HaveField("Status.NodeCPUUsage", BeEquivalentTo(2600*99/100)))
		kept := read(ctx, gpu)
		Expect(kept.Status.SuitableNodeName).To(Equal(onA.Name))
		Expect(kept.Status.Reservation).To(Equal(gpu.Status.Reservation))
	},

	"is moved when its node is cordoned, its host can be had for less time, or its server moves": func(ctx SpecContext) {
		s := newSite(ctx, racks(100, 100))
		onA, onB := s.nodes(ctx)
		gpu := placedOn(ctx, s.ask(ctx, "job", 50), onA, "a")

		edit(ctx, onA, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		placedOn(ctx, gpu, onB, "b")
		edit(ctx, onA, func(n *corev1.Node) { n.Spec.Unschedulable = false })
		s.put("b", 48)
		placedOn(ctx, gpu, onA, "a")
		s.put("b", 100)
		server, _ := s.Server(s.named(onA.Name)[0])
		server.Host = "plain"
		_, err := s.PutServer(server)
		Expect(err).NotTo(HaveOccurred())
		placedOn(ctx, gpu, onB, "b")
		Expect(s.DeleteServer(s.named(onB.Name)[0])).To(Succeed())
		Expect(s.messagesOn(unplaced(ctx, gpu))).To(Equal([]string{
			`a on "plain": the host has no GPU`, `b on "": the cloud has no server of this name`,
		}))
	},

	"is told that there is no node, and given one as soon as there is": func(ctx SpecContext) {
		s := newSite(ctx, racks(9, 0))
		gpu := s.ask(ctx, "job", 10)
		unplaced(ctx, gpu)
		onA := s.node(ctx, s.namespace+"-a", "a", 10)
		Eventually(ctx, func(ctx SpecContext) []string { return s.messagesOn(read(ctx, gpu)) }).WithContext(ctx).
			Should(Equal([]string{`a on "a": the host is available for 9 hours, and 10 are needed`}))
		s.put("a", 10)
		placedOn(ctx, gpu, onA, "a")

		heartbeat(ctx, read(ctx, onA), corev1.ConditionUnknown)
		Expect(s.messagesOn(unplaced(ctx, gpu))).To(Equal([]string{`a on "a": the node is not Ready`}))
		heartbeat(ctx, read(ctx, onA), corev1.ConditionTrue)
		placedOn(ctx, gpu, onA, "a")
		remove(ctx, onA)
		Expect(s.messagesOn(unplaced(ctx, gpu))).To(BeEmpty())
	},

	"has hours that no other can have, until it is deleted": func(ctx SpecContext) {
		s := newSite(ctx, racks(15, 0))
		onA := s.node(ctx, s.namespace+"-a", "a", 10)
		both := []*v1alpha1.GPUInfo{s.ask(ctx, "one", 10), s.ask(ctx, "two", 10)}
		won := winners(ctx, both)
		Expect(won).To(HaveLen(1), "two asked at once for the last window of a host")
		loser := both[0]
		if loser.Name == won[0].Name {
			loser = both[1]
		}
		Expect(s.messagesOn(unplaced(ctx, loser))).To(Equal([]string{
			`a on "a": the host is available for 15 hours, others have reserved too many of them, and 10 are needed`,
		}))
		small := s.ask(ctx, "small", 5)
		placedOn(ctx, small, onA, "a")
		Eventually(ctx, story(loser)).Should(Equal([]string{"NoneAvailable"}), "it never had what it did not get")

		remove(ctx, won[0])
		placedOn(ctx, loser, onA, "a")
	},

	"is one of those for whom a host's hours suffice, when many ask at once": func(ctx SpecContext) {
		s := newSite(ctx, racks(35, 25))
		s.nodes(ctx)
		gpus := make([]*v1alpha1.GPUInfo, 10)
		var running sync.WaitGroup
		for n := range gpus {
			running.Go(func() {
				defer GinkgoRecover()
				gpus[n] = s.ask(ctx, fmt.Sprintf("job-%d", n), 10)
			})
		}
		running.Wait()
		on := map[string]int{}
		for _, gpu := range winners(ctx, gpus) {
			on[gpu.Status.SuitableHostName]++
		}
		Expect(on).To(Equal(map[string]int{"a": 3, "b": 2}))
		told := map[string]int{}
		for _, gpu := range gpus {
			Eventually(ctx, story(gpu)).Should(HaveLen(1), "nobody was given what another had, and lost it again")
			reasons, err := story(gpu)(ctx)
			Expect(err).NotTo(HaveOccurred())
			told[reasons[0]]++
		}
		Expect(told).To(Equal(map[string]int{"Placed": 5, "NoneAvailable": 5}))
		s.polls(ctx, 3)
		Expect(winners(ctx, gpus)).To(HaveLen(5), "and it remains so")
	},

	"yields what another manager gave to an earlier one at the same time": func(ctx SpecContext) {
		s := newSite(ctx, racks(15, 15))
		onA, onB := s.nodes(ctx)
		later := placedOn(ctx, s.ask(ctx, "later", 10), onA, "a")
		earlier := placedOn(ctx, s.ask(ctx, "earlier", 10), onB, "b")

		stamp(ctx, earlier, func(status *v1alpha1.GPUInfoStatus) {
			status.SuitableNodeName, status.SuitableHostName, status.Reservation.Host = onA.Name, "a", "a"
			status.Reservation.Since = metav1.NewTime(later.Status.Reservation.Since.Add(-time.Minute))
			status.Reservation.Until = metav1.NewTime(later.Status.Reservation.Until.Add(-time.Minute))
		})
		placedOn(ctx, later, onB, "b")
		placedOn(ctx, earlier, onA, "a")
	},

	"is chosen for anew when its spec is edited": func(ctx SpecContext) {
		s := newSite(ctx, racks(20, 100))
		onA, onB := s.nodes(ctx)
		gpu := placedOn(ctx, s.ask(ctx, "job", 10), onA, "a")
		edit(ctx, gpu, func(gpu *v1alpha1.GPUInfo) { gpu.Spec.DesAccTime = 21 })
		moved := placedOn(ctx, gpu, onB, "b")
		Expect(moved.Status.Reservation.Generation).To(Equal(moved.Generation))
		Expect(moved.Status.Reservation.Until.Sub(moved.Status.Reservation.Since.Time)).To(Equal(21 * time.Hour))
	},

	"loses its node when its hours are over, and is given one again when asked for": func(ctx SpecContext) {
		s := newSite(ctx, racks(10, 0))
		onA := s.node(ctx, s.namespace+"-a", "a", 10)
		gpu := placedOn(ctx, s.ask(ctx, "job", 10), onA, "a")
		next := s.ask(ctx, "next", 10)
		unplaced(ctx, next)

		stamp(ctx, gpu, func(status *v1alpha1.GPUInfoStatus) {
			status.Reservation.Until = metav1.NewTime(time.Now().Add(-time.Minute))
		})
		over := SatisfyAll(
			testkit.HaveCondition("Placed", metav1.ConditionFalse, "Expired", "the 10 hours that were reserved are over", "reconcile-requested-at"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Expired"),
			HaveField("Status.SuitableNodeName", "None available"), HaveField("Status.SuitableHostName", "None available"),
			HaveField("Status.Reservation", BeNil()), HaveField("Status.Candidates", BeEmpty()),
		)
		Eventually(ctx, now(gpu)).Should(over)
		placedOn(ctx, next, onA, "a")
		remove(ctx, next)
		s.polls(ctx, 3)
		Expect(read(ctx, gpu)).To(over, "nothing is chosen before somebody asks")

		poke(ctx, gpu)
		again := placedOn(ctx, gpu, onA, "a")
		Expect(again.Status.LastHandledReconcileAt).To(Equal(again.Annotations[v1alpha1.ReconcileRequestedAtAnnotation]))
		Expect(story(gpu)(ctx)).To(Equal([]string{"Placed", "Expired", "Placed"}))

		stamp(ctx, again, func(status *v1alpha1.GPUInfoStatus) {
			status.Reservation.Until = metav1.NewTime(time.Now().Add(-time.Minute))
		})
		Eventually(ctx, now(gpu)).Should(over, "the request that was answered is no request any more")
		edit(ctx, gpu, func(gpu *v1alpha1.GPUInfo) { gpu.Spec.DesAccTime = 9 })
		placedOn(ctx, gpu, onA, "a")
	},

	"says nothing of a cloud that its namespace may not use": func(ctx SpecContext) {
		s := newSite(ctx, racks(10, 0), func(c *v1alpha1.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
		})
		label := func(value string) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
			edit(ctx, namespace, func(ns *corev1.Namespace) { ns.Labels["cloud"] = value })
		}
		onA := s.node(ctx, s.namespace+"-a", "a", 10)
		denied := SatisfyAll(
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "CloudUnavailable", `namespace "`+s.namespace+`" may not use Cloud "`+s.object.Name+`"`),
			Not(testkit.HaveCondition("Placed", "", "")),
			HaveField("Status.SuitableNodeName", ""), HaveField("Status.SuitableHostName", ""), HaveField("Status.NodeCPUUsage", BeZero()),
			HaveField("Status.NodeMemoryUsage", BeZero()), HaveField("Status.AvailableAcceleratorTime", BeZero()),
			HaveField("Status.Reservation", BeNil()), HaveField("Status.Candidates", BeEmpty()),
		)
		gpu := s.ask(ctx, "job", 10)
		Eventually(ctx, now(gpu)).Should(denied)
		label("yes")
		placedOn(ctx, gpu, onA, "a")
		label("no")
		Eventually(ctx, now(gpu)).Should(denied, "what was known is forgotten")
	},

	"uses the Cloud that its namespace's label names": func(ctx SpecContext) {
		s := newSite(ctx, racks(10, 0))
		onA := s.node(ctx, s.namespace+"-a", "a", 10)
		s.namespace = newNamespace(ctx, map[string]string{v1alpha1.DefaultCloudLabel: s.object.Name})
		gpu := s.ask(ctx, "job", 10, func(gpu *v1alpha1.GPUInfo) { gpu.Spec.CloudRef = nil })
		Expect(placedOn(ctx, gpu, onA, "a").Status.Reservation.Cloud).To(Equal(s.object.Name))
	},

	"keeps its node while the cloud is away, and others wait": func(ctx SpecContext) {
		s := newSite(ctx, racks(100, 100))
		onA, onB := s.nodes(ctx)
		gpu := placedOn(ctx, s.ask(ctx, "job", 10), onA, "a")
		address := s.unplug()
		Eventually(ctx, now(s.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))

		edit(ctx, onA, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		late := s.ask(ctx, "late", 10)
		Eventually(ctx, now(late)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "waiting for Cloud"),
			HaveField("Status.SuitableNodeName", ""),
		))
		poke(ctx, gpu)
		Consistently(ctx, now(gpu), "500ms").Should(SatisfyAll(
			testkit.BeReady(), HaveField("Status.SuitableNodeName", onA.Name), HaveField("Status.Reservation", gpu.Status.Reservation),
		))

		s.plug(address)
		nudge(ctx, s.object)
		placedOn(ctx, gpu, onB, "b")
		placedOn(ctx, late, onB, "b")
	},

	"keeps its node while the cloud does not list its hosts, and is not the cause of a storm": func(ctx SpecContext) {
		s := newSite(ctx, racks(100, 100))
		onA, _ := s.nodes(ctx)
		gpu := placedOn(ctx, s.ask(ctx, "job", 10), onA, "a")
		fault := s.fault(mockcloud.Fault{Match: mockcloud.Match{Path: "/hosts"}, Status: 403, Body: `{"code":"invalid","detail":"not now"}`})
		s.polls(ctx, 2)
		var late []*v1alpha1.GPUInfo
		for n := range 5 {
			late = append(late, s.ask(ctx, fmt.Sprintf("late-%d", n), 10))
		}
		for _, gpu := range late {
			Eventually(ctx, now(gpu)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "list hosts: not now"))
		}
		s.ResetCalls()
		s.polls(ctx, 3)
		Expect(s.CountCalls("GET", "/hosts")).To(BeNumerically("<=", 4), "once an interval, however many wait")
		Expect(read(ctx, gpu)).To(SatisfyAll(testkit.BeReady(), HaveField("Status.Reservation", gpu.Status.Reservation)))
		Expect(s.RemoveFault(fault)).To(Succeed())
		for _, gpu := range late {
			placedOn(ctx, gpu, onA, "a")
		}
	},

	"waits for a Cloud that does not exist yet, or not any more": func(ctx SpecContext) {
		s := newSite(ctx, racks(100, 100))
		onA := s.node(ctx, s.namespace+"-a", "a", 10)
		name := s.object.Name + "-later"
		gpu := s.ask(ctx, "job", 10, func(gpu *v1alpha1.GPUInfo) { gpu.Spec.CloudRef.Name = name })
		Eventually(ctx, now(gpu)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "CloudUnavailable", `Cloud "`+name+`" does not exist`))
		object := testkit.Cloud(name, s.server.URL)
		Expect(env.Client.Create(ctx, object)).To(Succeed())
		placedOn(ctx, gpu, onA, "a")
		remove(ctx, object)
		Eventually(ctx, now(gpu)).Should(SatisfyAll(
			testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "CloudUnavailable", `Cloud "`+name+`" does not exist`),
			HaveField("Status.SuitableNodeName", onA.Name),
		))
	},

	"stalls on a cloud that knows no hosts": func(ctx SpecContext) {
		s := newSite(ctx, mockcloud.Options{Profile: mockcloud.Core})
		gpu := s.ask(ctx, "job", 10)
		Eventually(ctx, now(gpu)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "does not list its hosts"))
		Expect(s.CountCalls("GET", "/hosts")).To(BeZero())
	},

	"is left alone while it is paused, and its hours count": func(ctx SpecContext) {
		s := newSite(ctx, racks(15, 100))
		onA, onB := s.nodes(ctx)
		gpu := placedOn(ctx, s.ask(ctx, "job", 10), onA, "a")
		annotate(ctx, gpu, v1alpha1.PausedAnnotation, "true")
		Eventually(ctx, now(gpu)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		placedOn(ctx, s.ask(ctx, "other", 10), onB, "b")
		edit(ctx, onA, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		s.polls(ctx, 2)
		Expect(read(ctx, gpu).Status.SuitableNodeName).To(Equal(onA.Name))
		annotate(ctx, gpu, v1alpha1.PausedAnnotation, "")
		placedOn(ctx, gpu, onB, "b")
	},
}}

// stamp writes a status as another manager would, or as time does.
func stamp(ctx SpecContext, gpu *v1alpha1.GPUInfo, change func(*v1alpha1.GPUInfoStatus)) {
	GinkgoHelper()
	fresh := read(ctx, gpu)
	base := fresh.DeepCopy()
	change(&fresh.Status)
	Expect(env.Client.Status().Patch(ctx, fresh, client.MergeFrom(base))).To(Succeed())
}

var _ = Describe("GPUInfos, with nobody else about", func() {
	It("apply as the seed has them, and print as they do there", func(ctx SpecContext) {
		const (
			worker = "tkg-cluster-1-18-5-workers-7n2q2-548d48669d-l9fgw"
			host   = "esxi-dell-h.rainpole.com"
		)
		s := newSite(ctx, mockcloud.Options{Hosts: []mockcloud.Host{{Name: host, GPU: true, AvailableHours: 399}}})
		s.node(ctx, worker, host, 10)
		namespace := newNamespace(ctx, map[string]string{v1alpha1.DefaultCloudLabel: s.object.Name})
		const seed = `
apiVersion: samplecontroller.k8s.io/v1alpha1
kind: GPUInfo
metadata:
  name: gpuinfo-sample
spec:
  # Add fields here
  desAccTime: 100
  gpuRequired: True
`
		kubectl(ctx, seed, "apply", "--namespace", namespace, "-f", "-")
		gpu := &v1alpha1.GPUInfo{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gpuinfo-sample"}}
		Eventually(ctx, now(gpu)).Should(testkit.BeReady())
		want := [][]string{
			{"NAME", "DESIRED ACCESS TIME (HRS)", "GPU REQUIRED", "NODE", "HOST", "AGE"},
			{"gpuinfo-sample", "100", "true", worker, host, "<age>"},
		}
		for _, name := range []string{"gpu", "gpuinfo", "gpuinfos"} {
			got := table(kubectl(ctx, "", "get", name, "--namespace", namespace))
			Expect(cmp.Diff(want, got)).To(BeEmpty(), "kubectl get %s (-want +got)", name)
		}
		output := kubectl(ctx, "", "get", "gpu", "gpuinfo-sample", "--namespace", namespace, "-o", "yaml")
		for _, line := range []string{
			"availableAcceleratorTime: 399", "nodeCPUUsage: 260", "nodeMemoryUsage: 563", "suitableHostName: " + host, "suitableNodeName: " + worker,
		} {
			Expect(output).To(ContainSubstring("\n  " + line + "\n"))
		}
	})

	It("cost one call an interval and no write while nothing that matters changes", func(ctx SpecContext) {
		s := newSite(ctx, racks(100, 10))
		onA, onB := s.nodes(ctx)
		for n := range 5 {
			placedOn(ctx, s.ask(ctx, fmt.Sprintf("job-%d", n), 10), onA, "a")
		}
		unplaced(ctx, s.ask(ctx, "none", 1000))
		s.polls(ctx, 2)
		written := len(s.writes())
		s.ResetCalls()

		for round := range 4 {
			Expect(s.SetUtilisation(s.named(onA.Name)[0], 10+round%2)).To(Succeed())
			Expect(s.SetUtilisation(s.named(onB.Name)[0], 5*round)).To(Succeed())
			heartbeat(ctx, read(ctx, onA), corev1.ConditionTrue)
			s.polls(ctx, 1)
		}
		Expect(s.writes()[written:]).To(BeEmpty())
		Expect(s.CountCalls("GET", "/hosts")).To(BeNumerically("<=", s.CountCalls("GET", "/servers")+1))
		Expect(s.CountCalls("", "")).To(Equal(s.CountCalls("GET", "/hosts") + s.CountCalls("GET", "/servers")))
	})
})
