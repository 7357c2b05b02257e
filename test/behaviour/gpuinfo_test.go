package behaviour_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

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
