package behaviour_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
)

// gpuHosts is a cloud with two hosts with a GPU, a and b, each available for so many hours.
func gpuHosts(a, b int) mockcloud.Options {
	return mockcloud.Options{Hosts: []mockcloud.Host{
		{Name: "a", GPU: true, AvailableHours: a}, {Name: "b", GPU: true, AvailableHours: b}, {Name: "plain", AvailableHours: 1000},
	}}
}

// createNode creates a Node that is Ready, and its server on a host. The server
// uses so many percent of its one core.
func (f *fixture) createNode(name, host string, percent int) *corev1.Node {
	f.t.Helper()
	server, err := f.PutServer(mockcloud.Server{Name: name, Host: host})
	f.t.Expect(err).NotTo(HaveOccurred())
	f.t.Expect(f.SetUtilisation(server.ID, percent)).To(Succeed())
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	f.t.Expect(env.Client.Create(f.t.Context(), n)).To(Succeed())
	f.t.cleanup(func(ctx context.Context) { f.t.wipe(ctx, n) })
	setNodeReady(f.t, n, corev1.ConditionTrue)
	f.waitForPolls(2)
	return n
}

func setNodeReady(t *T, n *corev1.Node, ready corev1.ConditionStatus) {
	t.Helper()
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: ready, Reason: "Test", LastHeartbeatTime: metav1.Now(),
	}}
	t.Expect(env.Client.Status().Update(t.Context(), n)).To(Succeed())
}

// createNodes creates a Node on host a and one on host b. The one on a uses less.
func (f *fixture) createNodes() (onA, onB *corev1.Node) {
	f.t.Helper()
	return f.createNode(f.namespace+"-a", "a", 10), f.createNode(f.namespace+"-b", "b", 60)
}

// setHostHours changes for how many hours a host with a GPU is available.
func (f *fixture) setHostHours(name string, hours int) {
	f.t.Helper()
	f.t.Expect(f.PutHost(mockcloud.Host{Name: name, GPU: true, AvailableHours: hours})).To(Succeed())
}

// gpuInfo returns a GPUInfo that requests a GPU on the fixture's cloud for so many hours.
func (f *fixture) gpuInfo(name string, hours int64, change ...func(*pcapi.GPUInfo)) *pcapi.GPUInfo {
	gpu := &pcapi.GPUInfo{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec:       pcapi.GPUInfoSpec{DesAccTime: hours, GPURequired: true, CloudRef: &pcapi.CloudReference{Name: f.object.Name}},
	}
	for _, apply := range change {
		apply(gpu)
	}
	return gpu
}

// createGPUInfo creates what gpuInfo returns.
func (f *fixture) createGPUInfo(name string, hours int64, change ...func(*pcapi.GPUInfo)) *pcapi.GPUInfo {
	f.t.Helper()
	gpu := f.gpuInfo(name, hours, change...)
	f.t.Expect(env.Client.Create(f.t.Context(), gpu)).To(Succeed())
	return gpu
}

// waitPlaced waits until a GPUInfo has a node and a host, and returns it.
func waitPlaced(t *T, gpu *pcapi.GPUInfo, node *corev1.Node, host string) *pcapi.GPUInfo {
	t.Helper()
	t.Eventually(latest(gpu)).Should(SatisfyAll(
		testkit.BeReady(), testkit.HaveCondition("Placed", metav1.ConditionTrue, "Placed"),
		HaveField("Status.SuitableNodeName", node.Name), HaveField("Status.SuitableHostName", host),
	))
	return get(t, gpu)
}

func waitUnplaced(t *T, gpu *pcapi.GPUInfo) *pcapi.GPUInfo {
	t.Helper()
	t.Eventually(latest(gpu)).Should(SatisfyAll(
		testkit.HaveCondition("Placed", metav1.ConditionFalse, "NoneAvailable"),
		testkit.HaveCondition("Ready", metav1.ConditionFalse, "NoneAvailable"),
		testkit.HaveCondition("Reconciling", metav1.ConditionTrue, ""),
		HaveField("Status.SuitableNodeName", "None available"), HaveField("Status.SuitableHostName", "None available"),
		HaveField("Status.Reservation", BeNil()),
	))
	return get(t, gpu)
}

// reasonsFor returns what a GPUInfo reports of the fixture's nodes; nodes of other cases are left out.
func (f *fixture) reasonsFor(gpu *pcapi.GPUInfo) []string {
	var reasons []string
	for _, c := range gpu.Status.Candidates {
		if short, ours := strings.CutPrefix(c.NodeName, f.namespace+"-"); ours {
			reasons = append(reasons, fmt.Sprintf("%s on %q: %s", short, c.HostName, c.Message))
		}
	}
	return reasons
}

// placedAmong waits until each of the GPUInfos has a Placed condition, and returns
// those that have a node.
func placedAmong(t *T, gpus []*pcapi.GPUInfo) []*pcapi.GPUInfo {
	t.Helper()
	var placed []*pcapi.GPUInfo
	for _, gpu := range gpus {
		t.Eventually(latest(gpu)).Should(testkit.HaveCondition("Placed", "", ""))
		if fresh := get(t, gpu); fresh.Status.Reservation != nil {
			placed = append(placed, fresh)
		}
	}
	return placed
}

const (
	chosen = "chosen, and kept as long as it suits"
	suits  = "suits; another was chosen"
)

func TestGPUInfo(t *testing.T) { gpuInfoCases.run(t) }

var gpuInfoCases = cases{
	"several nodes suit: the one whose server uses the least CPU is chosen and the others get a reason": func(t *T) {
		f := newFixture(t, gpuHosts(100, 200))
		onA, _ := f.createNodes()
		f.createNode(f.namespace+"-p", "plain", 0)
		cordoned := f.createNode(f.namespace+"-c", "b", 0)
		edit(t, cordoned, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		gpu := waitPlaced(t, f.createGPUInfo("job", 100), onA, "a")

		t.Expect(gpu.Status.AvailableAcceleratorTime).To(BeEquivalentTo(100))
		t.Expect(gpu.Status.NodeCPUUsage).To(BeEquivalentTo(260))
		t.Expect(gpu.Status.NodeMemoryUsage).To(BeEquivalentTo(563))
		held := gpu.Status.Reservation
		t.Expect(held.Until.Sub(held.Since.Time)).To(Equal(100 * time.Hour))
		t.Expect(f.reasonsFor(gpu)).To(Equal([]string{
			`a on "a": ` + chosen, `b on "b": ` + suits, `c on "b": the node is cordoned`, `p on "plain": the host has no GPU`,
		}))
		t.Eventually(eventReasons(gpu)).Should(Equal([]string{"Placed"}))

		plain := f.createGPUInfo("plain", 100, func(gpu *pcapi.GPUInfo) { gpu.Spec.GPURequired = false })
		t.Eventually(latest(plain)).Should(HaveField("Status.SuitableHostName", "plain"))
	},

	"another node becomes less used: the chosen node is kept": func(t *T) {
		f := newFixture(t, gpuHosts(100, 100))
		onA, onB := f.createNodes()
		gpu := waitPlaced(t, f.createGPUInfo("job", 10), onA, "a")

		t.Expect(f.SetUtilisation(f.serversNamed(onB.Name)[0], 1)).To(Succeed())
		t.Expect(f.SetUtilisation(f.serversNamed(onA.Name)[0], 99)).To(Succeed())
		t.Eventually(latest(gpu)).Should(HaveField("Status.NodeCPUUsage", BeEquivalentTo(2600*99/100)))
		kept := get(t, gpu)
		t.Expect(kept.Status.SuitableNodeName).To(Equal(onA.Name))
		t.Expect(kept.Status.Reservation).To(Equal(gpu.Status.Reservation))
	},

	"the node is cordoned, the host's hours shrink, the server moves or is deleted: another node is chosen": func(t *T) {
		f := newFixture(t, gpuHosts(100, 100))
		onA, onB := f.createNodes()
		gpu := waitPlaced(t, f.createGPUInfo("job", 50), onA, "a")

		edit(t, onA, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		waitPlaced(t, gpu, onB, "b")
		edit(t, onA, func(n *corev1.Node) { n.Spec.Unschedulable = false })
		f.setHostHours("b", 48)
		waitPlaced(t, gpu, onA, "a")
		f.setHostHours("b", 100)
		server, _ := f.Server(f.serversNamed(onA.Name)[0])
		server.Host = "plain"
		_, err := f.PutServer(server)
		t.Expect(err).NotTo(HaveOccurred())
		waitPlaced(t, gpu, onB, "b")
		t.Expect(f.DeleteServer(f.serversNamed(onB.Name)[0])).To(Succeed())
		f.waitForPolls(2)
		waitPlaced(t, gpu, onB, "b") // the Node is Ready, so that the listing is not trusted
		setNodeReady(t, get(t, onB), corev1.ConditionFalse)
		waitUnplaced(t, gpu)
		setNodeReady(t, get(t, onB), corev1.ConditionTrue)
		t.Eventually(func() []string { return f.reasonsFor(get(t, gpu)) }).Should(Equal([]string{
			`a on "plain": the host has no GPU`, `b on "": the cloud has no server of this name that belongs to no VM object`,
		}))
	},

	"no node suits: NoneAvailable is reported and a node is chosen as soon as one suits": func(t *T) {
		f := newFixture(t, gpuHosts(9, 0))
		gpu := f.createGPUInfo("job", 10)
		waitUnplaced(t, gpu)
		onA := f.createNode(f.namespace+"-a", "a", 10)
		t.Eventually(func() []string { return f.reasonsFor(get(t, gpu)) }).
			Should(Equal([]string{`a on "a": the host is available for 9 hours, and 10 are needed`}))
		f.setHostHours("a", 10)
		waitPlaced(t, gpu, onA, "a")

		setNodeReady(t, get(t, onA), corev1.ConditionUnknown)
		t.Expect(f.reasonsFor(waitUnplaced(t, gpu))).To(Equal([]string{`a on "a": the node is not Ready`}))
		setNodeReady(t, get(t, onA), corev1.ConditionTrue)
		waitPlaced(t, gpu, onA, "a")
		deleteObject(t, onA)
		t.Expect(f.reasonsFor(waitUnplaced(t, gpu))).To(BeEmpty())
	},

	"two request the last hours of a host: one gets them until it is deleted": func(t *T) {
		f := newFixture(t, gpuHosts(15, 0))
		onA := f.createNode(f.namespace+"-a", "a", 10)
		both := []*pcapi.GPUInfo{f.createGPUInfo("one", 10), f.createGPUInfo("two", 10)}
		won := placedAmong(t, both)
		t.Expect(won).To(HaveLen(1), "two requested the last hours of a host")
		loser := both[0]
		if loser.Name == won[0].Name {
			loser = both[1]
		}
		t.Expect(f.reasonsFor(waitUnplaced(t, loser))).To(Equal([]string{
			`a on "a": the host is available for 15 hours, others have reserved too many of them, and 10 are needed`,
		}))
		small := f.createGPUInfo("small", 5)
		waitPlaced(t, small, onA, "a")
		t.Eventually(eventReasons(loser)).Should(Equal([]string{"NoneAvailable"}), "it never had a reservation")

		deleteObject(t, won[0])
		waitPlaced(t, loser, onA, "a")
	},

	"ten request hours at the same time: as many are placed as the hosts have hours for": func(t *T) {
		f := newFixture(t, gpuHosts(35, 25))
		f.createNodes()
		gpus := make([]*pcapi.GPUInfo, 10)
		var created errgroup.Group
		for n := range gpus {
			gpus[n] = f.gpuInfo(fmt.Sprintf("job-%d", n), 10)
			created.Go(func() error { return env.Client.Create(t.Context(), gpus[n]) })
		}
		t.Expect(created.Wait()).To(Succeed())
		on := map[string]int{}
		for _, gpu := range placedAmong(t, gpus) {
			on[gpu.Status.SuitableHostName]++
		}
		t.Expect(on).To(Equal(map[string]int{"a": 3, "b": 2}))
		recorded := map[string]int{}
		for _, gpu := range gpus {
			t.Eventually(eventReasons(gpu)).Should(HaveLen(1), "no reservation was given and then lost to another")
			reasons, err := eventReasons(gpu)(t.Context())
			t.Expect(err).NotTo(HaveOccurred())
			recorded[reasons[0]]++
		}
		t.Expect(recorded).To(Equal(map[string]int{"Placed": 5, "NoneAvailable": 5}))
		f.waitForPolls(3)
		t.Expect(placedAmong(t, gpus)).To(HaveLen(5), "the placements stay")
	},

	"another manager reserved the same hours earlier: the later reservation is moved": func(t *T) {
		f := newFixture(t, gpuHosts(15, 15))
		onA, onB := f.createNodes()
		later := waitPlaced(t, f.createGPUInfo("later", 10), onA, "a")
		earlier := waitPlaced(t, f.createGPUInfo("earlier", 10), onB, "b")

		patchStatus(t, earlier, func(status *pcapi.GPUInfoStatus) {
			status.SuitableNodeName, status.SuitableHostName, status.Reservation.Host = onA.Name, "a", "a"
			status.Reservation.Since = metav1.NewTime(later.Status.Reservation.Since.Add(-time.Minute))
			status.Reservation.Until = metav1.NewTime(later.Status.Reservation.Until.Add(-time.Minute))
		})
		waitPlaced(t, later, onB, "b")
		waitPlaced(t, earlier, onA, "a")
	},

	"the spec is edited: a node is chosen again": func(t *T) {
		f := newFixture(t, gpuHosts(20, 100))
		onA, onB := f.createNodes()
		gpu := waitPlaced(t, f.createGPUInfo("job", 10), onA, "a")
		edit(t, gpu, func(gpu *pcapi.GPUInfo) { gpu.Spec.DesAccTime = 21 })
		moved := waitPlaced(t, gpu, onB, "b")
		t.Expect(moved.Status.Reservation.Generation).To(Equal(moved.Generation))
		t.Expect(moved.Status.Reservation.Until.Sub(moved.Status.Reservation.Since.Time)).To(Equal(21 * time.Hour))
	},

	"the reserved hours are over: the reservation expires until a reconcile is requested or the spec edited": func(t *T) {
		f := newFixture(t, gpuHosts(10, 0))
		onA := f.createNode(f.namespace+"-a", "a", 10)
		gpu := waitPlaced(t, f.createGPUInfo("job", 10), onA, "a")
		next := f.createGPUInfo("next", 10)
		waitUnplaced(t, next)

		patchStatus(t, gpu, func(status *pcapi.GPUInfoStatus) {
			status.Reservation.Until = metav1.NewTime(time.Now().Add(-time.Minute))
		})
		over := SatisfyAll(
			testkit.HaveCondition("Placed", metav1.ConditionFalse, "Expired", "the 10 hours that were reserved are over", "reconcile-requested-at"),
			testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Expired"),
			HaveField("Status.SuitableNodeName", "None available"), HaveField("Status.SuitableHostName", "None available"),
			HaveField("Status.Reservation", BeNil()), HaveField("Status.Candidates", BeEmpty()),
		)
		t.Eventually(latest(gpu)).Should(over)
		waitPlaced(t, next, onA, "a")
		deleteObject(t, next)
		f.waitForPolls(3)
		t.Expect(get(t, gpu)).To(over, "no node is chosen before a request")

		requestReconcile(t, gpu)
		again := waitPlaced(t, gpu, onA, "a")
		t.Expect(again.Status.LastHandledReconcileAt).To(Equal(again.Annotations[pcapi.ReconcileRequestedAtAnnotation]))
		t.Eventually(eventReasons(gpu)).Should(Equal([]string{"Placed", "Expired", "Placed"}))

		patchStatus(t, again, func(status *pcapi.GPUInfoStatus) {
			status.Reservation.Until = metav1.NewTime(time.Now().Add(-time.Minute))
		})
		t.Eventually(latest(gpu)).Should(over, "a handled request is not handled again")
		edit(t, gpu, func(gpu *pcapi.GPUInfo) { gpu.Spec.DesAccTime = 9 })
		waitPlaced(t, gpu, onA, "a")
	},

	"the namespace may not use the Cloud: nothing about the cloud is reported": func(t *T) {
		f := newFixture(t, gpuHosts(10, 0), func(c *pcapi.Cloud) {
			c.Spec.AllowedNamespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "yes"}}
		})
		label := func(value string) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
			edit(t, namespace, func(ns *corev1.Namespace) { ns.Labels["cloud"] = value })
		}
		onA := f.createNode(f.namespace+"-a", "a", 10)
		denied := SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", `Cloud "`+f.object.Name+`" does not exist, or namespace "`+f.namespace+`" may not use it`),
			Not(testkit.HaveCondition("Placed", "", "")),
			HaveField("Status.SuitableNodeName", ""), HaveField("Status.SuitableHostName", ""), HaveField("Status.NodeCPUUsage", BeZero()),
			HaveField("Status.NodeMemoryUsage", BeZero()), HaveField("Status.AvailableAcceleratorTime", BeZero()),
			HaveField("Status.Reservation", BeNil()), HaveField("Status.Candidates", BeEmpty()),
		)
		gpu := f.createGPUInfo("job", 10)
		t.Eventually(latest(gpu)).Should(denied)
		label("yes")
		waitPlaced(t, gpu, onA, "a")
		label("no")
		t.Eventually(latest(gpu)).Should(denied, "the earlier placement is removed")
	},

	"the namespace has the default Cloud label: that Cloud is used": func(t *T) {
		f := newFixture(t, gpuHosts(10, 0))
		onA := f.createNode(f.namespace+"-a", "a", 10)
		f.namespace = newNamespace(t, map[string]string{pcapi.DefaultCloudLabel: f.object.Name})
		gpu := f.createGPUInfo("job", 10, func(gpu *pcapi.GPUInfo) { gpu.Spec.CloudRef = nil })
		t.Expect(waitPlaced(t, gpu, onA, "a").Status.Reservation.Cloud).To(Equal(f.object.Name))
	},

	"the cloud is unreachable: the node is kept and new GPUInfos wait": func(t *T) {
		f := newFixture(t, gpuHosts(100, 100))
		onA, onB := f.createNodes()
		gpu := waitPlaced(t, f.createGPUInfo("job", 10), onA, "a")
		f.Disconnect()
		t.Eventually(latest(f.object)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "Unreachable"))

		edit(t, onA, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		late := f.createGPUInfo("late", 10)
		t.Eventually(latest(late)).Should(SatisfyAll(
			testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "waiting for Cloud"),
			HaveField("Status.SuitableNodeName", ""),
		))
		requestReconcile(t, gpu)
		t.Consistently(latest(gpu), "500ms").Should(SatisfyAll(
			testkit.BeReady(), HaveField("Status.SuitableNodeName", onA.Name), HaveField("Status.Reservation", gpu.Status.Reservation),
		))

		f.reconnect()
		touch(t, f.object)
		waitPlaced(t, gpu, onB, "b")
		waitPlaced(t, late, onB, "b")
	},

	"the hosts cannot be listed: the node is kept and the hosts are listed once an interval": func(t *T) {
		f := newFixture(t, gpuHosts(100, 100))
		onA, _ := f.createNodes()
		gpu := waitPlaced(t, f.createGPUInfo("job", 10), onA, "a")
		fault := f.addFault(mockcloud.Fault{Match: mockcloud.Match{Path: "/hosts"}, Status: 403, Body: `{"code":"invalid","detail":"not now"}`})
		f.waitForPolls(2)
		var late []*pcapi.GPUInfo
		for n := range 5 {
			late = append(late, f.createGPUInfo(fmt.Sprintf("late-%d", n), 10))
		}
		for _, gpu := range late {
			t.Eventually(latest(gpu)).Should(testkit.HaveCondition("Ready", metav1.ConditionFalse, "CloudUnavailable", "list hosts: not now"))
		}
		f.ResetCalls()
		f.waitForPolls(3)
		t.Expect(f.CountCalls("GET", "/hosts")).To(BeNumerically("<=", 4), "once an interval, whatever the number that waits")
		t.Expect(get(t, gpu)).To(SatisfyAll(testkit.BeReady(), HaveField("Status.Reservation", gpu.Status.Reservation)))
		t.Expect(f.RemoveFault(fault)).To(Succeed())
		for _, gpu := range late {
			waitPlaced(t, gpu, onA, "a")
		}
	},

	"the Cloud does not exist or is deleted: nothing about the cloud is reported": func(t *T) {
		f := newFixture(t, gpuHosts(100, 100))
		onA := f.createNode(f.namespace+"-a", "a", 10)
		name := f.object.Name + "-later"
		gpu := f.createGPUInfo("job", 10, func(gpu *pcapi.GPUInfo) { gpu.Spec.CloudRef.Name = name })
		t.Eventually(latest(gpu)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "CloudUnavailable", `Cloud "`+name+`" does not exist, or namespace "`+f.namespace+`" may not use it`))
		object := testkit.Cloud(name, f.URL)
		t.Expect(env.Client.Create(t.Context(), object)).To(Succeed())
		waitPlaced(t, gpu, onA, "a")
		deleteObject(t, object)
		t.Eventually(latest(gpu)).Should(SatisfyAll(
			testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "CloudUnavailable", `Cloud "`+name+`" does not exist, or namespace "`+f.namespace+`" may not use it`),
			Not(testkit.HaveCondition("Placed", "", "")), HaveField("Status.SuitableNodeName", ""), HaveField("Status.Reservation", BeNil()),
		))
	},

	"the cloud does not list its hosts: the GPUInfo stalls": func(t *T) {
		f := newFixture(t, mockcloud.Options{Profile: mockcloud.Core})
		gpu := f.createGPUInfo("job", 10)
		t.Eventually(latest(gpu)).Should(testkit.HaveCondition("Stalled", metav1.ConditionTrue, "Unsupported", "does not list its hosts"))
		t.Expect(f.CountCalls("GET", "/hosts")).To(BeZero())
	},

	"the GPUInfo is paused: it is not moved and its hours stay reserved": func(t *T) {
		f := newFixture(t, gpuHosts(15, 100))
		onA, onB := f.createNodes()
		gpu := waitPlaced(t, f.createGPUInfo("job", 10), onA, "a")
		annotate(t, gpu, pcapi.PausedAnnotation, "true")
		t.Eventually(latest(gpu)).Should(testkit.HaveCondition("Reconciling", metav1.ConditionTrue, "Paused"))
		waitPlaced(t, f.createGPUInfo("other", 10), onB, "b")
		edit(t, onA, func(n *corev1.Node) { n.Spec.Unschedulable = true })
		f.waitForPolls(2)
		t.Expect(get(t, gpu).Status.SuitableNodeName).To(Equal(onA.Name))
		annotate(t, gpu, pcapi.PausedAnnotation, "")
		waitPlaced(t, gpu, onB, "b")
	},
}

// patchStatus writes a status as another manager would, or as if time had passed.
func patchStatus(t *T, gpu *pcapi.GPUInfo, change func(*pcapi.GPUInfoStatus)) {
	t.Helper()
	fresh := get(t, gpu)
	base := fresh.DeepCopy()
	change(&fresh.Status)
	t.Expect(env.Client.Status().Patch(t.Context(), fresh, client.MergeFrom(base))).To(Succeed())
}

func TestGPUInfoDocumentedManifest(tt *testing.T) {
	t := newT(tt)
	const (
		worker = "tkg-cluster-1-18-5-workers-7n2q2-548d48669d-l9fgw"
		host   = "esxi-dell-h.rainpole.com"
	)
	f := newFixture(t, mockcloud.Options{Hosts: []mockcloud.Host{{Name: host, GPU: true, AvailableHours: 399}}})
	f.createNode(worker, host, 10)
	namespace := newNamespace(t, map[string]string{pcapi.DefaultCloudLabel: f.object.Name})
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
	kubectl(t, seed, "apply", "--namespace", namespace, "-f", "-")
	gpu := &pcapi.GPUInfo{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gpuinfo-sample"}}
	t.Eventually(latest(gpu)).Should(testkit.BeReady())
	want := [][]string{
		{"NAME", "DESIRED ACCESS TIME (HRS)", "GPU REQUIRED", "NODE", "HOST", "READY", "AGE"},
		{"gpuinfo-sample", "100", "true", worker, host, "True", "<age>"},
	}
	for _, name := range []string{"gpu", "gpuinfo", "gpuinfos"} {
		got := table(t, kubectl(t, "", "get", name, "--namespace", namespace))
		t.Expect(cmp.Diff(want, got)).To(BeEmpty(), "kubectl get %s (-want +got)", name)
	}
	output := kubectl(t, "", "get", "gpu", "gpuinfo-sample", "--namespace", namespace, "-o", "yaml")
	for _, line := range []string{
		"availableAcceleratorTime: 399", "nodeCPUUsage: 260", "nodeMemoryUsage: 563", "suitableHostName: " + host, "suitableNodeName: " + worker,
	} {
		t.Expect(output).To(ContainSubstring("\n  " + line + "\n"))
	}
}

func TestIdleGPUInfosCostOneCallAnIntervalAndNoWrite(tt *testing.T) {
	t := newT(tt)
	f := newFixture(t, gpuHosts(100, 10))
	onA, onB := f.createNodes()
	for n := range 5 {
		waitPlaced(t, f.createGPUInfo(fmt.Sprintf("job-%d", n), 10), onA, "a")
	}
	waitUnplaced(t, f.createGPUInfo("none", 1000))
	f.waitForPolls(2)
	written := len(f.writes())
	f.ResetCalls()

	for round := range 4 {
		t.Expect(f.SetUtilisation(f.serversNamed(onA.Name)[0], 10+round%2)).To(Succeed())
		t.Expect(f.SetUtilisation(f.serversNamed(onB.Name)[0], 5*round)).To(Succeed())
		setNodeReady(t, get(t, onA), corev1.ConditionTrue)
		f.waitForPolls(1)
	}
	t.Expect(f.writes()[written:]).To(BeEmpty())
	t.Expect(f.CountCalls("GET", "/hosts")).To(BeNumerically("<=", f.CountCalls("GET", "/servers")+1))
	t.Expect(f.CountCalls("", "")).To(Equal(f.CountCalls("GET", "/hosts") + f.CountCalls("GET", "/servers")))
}
