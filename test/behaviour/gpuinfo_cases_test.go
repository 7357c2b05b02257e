package behaviour_test

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/testkit"
	"github.com/privatecloud/operator/mockcloud"
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
