package gpuinfo

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/controller"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/tenancy"
	"github.com/privatecloud/operator/internal/testkit/cached"
)

// manyHosts is the number of nodes, each on a host of its own, that the GPUInfos of a
// benchmark share.
const manyHosts = 100

// ignoring is a queue that drops what is added.
type ignoring struct{ queue }

func (ignoring) Add(reconcile.Request)                     {}
func (ignoring) AddAfter(reconcile.Request, time.Duration) {}

// manyGPUInfos returns the controller of a Cloud with a hundred hosts, and n GPUInfos that
// have reserved hours there.
func manyGPUInfos(b *testing.B, n int) (*kind, []*pcapi.GPUInfo) {
	b.Helper()
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "jobs"}},
		&pcapi.Cloud{ObjectMeta: metav1.ObjectMeta{Name: "home"}, Spec: pcapi.CloudSpec{
			Endpoint: "https://cloud.internal", CredentialsSecretRef: &pcapi.SecretReference{Name: "login"},
		}},
	}
	c := cloudfake.New(cloudfake.Options{Capabilities: cloud.NewCapabilities(cloud.Hosts)})
	hosts := make([]cloud.Host, manyHosts)
	for i := range hosts {
		name := fmt.Sprintf("n%03d", i)
		hosts[i] = cloud.Host{Name: "h" + name, GPU: true, AvailableHours: 80_000}
		c.AddServers(cloud.Server{ID: "s" + name, Name: name, State: cloud.StateActive, Host: "h" + name, CPUUsageMHz: i})
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		}})
	}
	c.SetHosts(hosts...)
	gpus := make([]*pcapi.GPUInfo, n)
	for i := range gpus {
		gpus[i] = on(i, noon.Add(-time.Duration(i)*time.Second/10))
		objects = append(objects, gpus[i])
	}
	clock := func() time.Time { return noon }
	directory := inventory.New(clock, "cluster")
	inv := directory.Cloud("home")
	inv.Configure(inventory.Settings{PollInterval: time.Hour})
	inv.Connect(c, cloud.NewCapabilities(cloud.Hosts))
	snap, err := inventory.List(b.Context(), c, clock)
	if err != nil {
		b.Fatal(err)
	}
	inv.Publish(snap)
	k := newKind(cached.Client(b, addIndexes, objects...), controller.Options{
		Directory: directory, Clock: clock, Elapsed: func() time.Duration { return 0 },
	})
	events := k.followReservations(tenancy.NewFinder(k.client, &pcapi.GPUInfoList{}))
	for _, gpu := range gpus {
		events.Create(b.Context(), event.CreateEvent{Object: gpu}, ignoring{})
	}
	return k, gpus
}

// on returns the ith GPUInfo, which has reserved ten hours since then.
func on(i int, since time.Time) *pcapi.GPUInfo {
	return asking(func(gpu *pcapi.GPUInfo) {
		gpu.Name = fmt.Sprintf("gpu-%05d", i)
		gpu.UID, gpu.Spec.CloudRef = types.UID(gpu.Name), &pcapi.CloudReference{Name: "home"}
		holding(fmt.Sprintf("n%03d", i%manyHosts), 0)(gpu)
		held := gpu.Status.Reservation
		gpu.Status.SuitableHostName = "h" + gpu.Status.SuitableNodeName
		held.Host, held.Cloud = gpu.Status.SuitableHostName, "home"
		held.Since, held.Until = metav1.NewTime(since), metav1.NewTime(since.Add(10*time.Hour))
	})
}

// decided reconciles a GPUInfo as the engine does, and returns its copy with the report.
func (k *kind) decided(b *testing.B, gpu *pcapi.GPUInfo) *pcapi.GPUInfo {
	b.Helper()
	obs, err := k.Observe(b.Context(), gpu)
	if err != nil || obs.unknown != nil || obs.refused != nil {
		b.Fatal(err, obs.unknown, obs.refused)
	}
	is, p := gpu.DeepCopy(), k.Plan(gpu, obs)
	for _, s := range p.Steps {
		if err := s.Run(b.Context(), gpu, obs); err != nil {
			b.Fatal(err)
		}
	}
	k.Report(is, obs, p.Outcome)
	return is
}

// BenchmarkCostOfChoice chooses a node beside n reservations. It must not depend on n.
func BenchmarkCostOfChoice(b *testing.B) {
	cached.Sizes(b, func(b *testing.B, n int) {
		k, _ := manyGPUInfos(b, n)
		fresh := asking(func(gpu *pcapi.GPUInfo) { gpu.Spec.CloudRef = &pcapi.CloudReference{Name: "home"} })
		for b.Loop() {
			if is := k.decided(b, fresh); is.Status.SuitableNodeName != "n000" {
				b.Fatalf("chose %q", is.Status.SuitableNodeName)
			}
		}
	})
}

// BenchmarkCostOfKeep keeps a choice beside n - 1 others, as after each listing. It must not
// depend on n.
func BenchmarkCostOfKeep(b *testing.B) {
	cached.Sizes(b, func(b *testing.B, n int) {
		k, gpus := manyGPUInfos(b, n)
		for b.Loop() {
			if is := k.decided(b, gpus[n/2]); is.Status.Reservation == nil || !is.Status.Reservation.Since.Equal(&gpus[n/2].Status.Reservation.Since) {
				b.Fatalf("reserved %+v", is.Status.Reservation)
			}
		}
	})
}

// BenchmarkCostOfReservation handles the event of a reservation that is made, and of one
// that ends, beside n. It must not depend on n.
func BenchmarkCostOfReservation(b *testing.B) {
	cached.Sizes(b, func(b *testing.B, n int) {
		k, gpus := manyGPUInfos(b, n)
		k.decided(b, gpus[0])
		events := k.followReservations(tenancy.NewFinder(k.client, &pcapi.GPUInfoList{}))
		with, without := gpus[n/2], gpus[n/2].DeepCopy()
		without.Status.Reservation = nil
		for b.Loop() {
			events.Update(b.Context(), event.UpdateEvent{ObjectOld: without, ObjectNew: with}, ignoring{})
			events.Update(b.Context(), event.UpdateEvent{ObjectOld: with, ObjectNew: without}, ignoring{})
		}
	})
}
