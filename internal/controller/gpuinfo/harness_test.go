package gpuinfo

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/reconciler"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// asking returns a GPUInfo that needs a GPU for ten hours.
func asking(change ...func(*pcapi.GPUInfo)) *pcapi.GPUInfo {
	gpu := &pcapi.GPUInfo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "mine", UID: "m", Generation: 1},
		Spec:       pcapi.GPUInfoSpec{DesAccTime: 10, GPURequired: true},
	}
	for _, f := range change {
		f(gpu)
	}
	return gpu
}

// holding reserves a node on h1 for ten hours, of which some are over.
func holding(node string, over time.Duration) func(*pcapi.GPUInfo) {
	return func(gpu *pcapi.GPUInfo) {
		since := noon.Add(-over)
		gpu.Status.SuitableNodeName, gpu.Status.SuitableHostName = node, "h1"
		gpu.Status.Reservation = &pcapi.GPUReservation{
			Host: "h1", Cloud: "default", Generation: 1, Since: metav1.NewTime(since), Until: metav1.NewTime(since.Add(10 * time.Hour)),
		}
	}
}

func edited(gpu *pcapi.GPUInfo) { gpu.Generation = 2 }

func hoursOver(gpu *pcapi.GPUInfo) { gpu.Status.ExpiredGeneration = 1 }

// world returns the observation of nodes n1, n2 … on hosts h1, h2 … with a GPU
// for a hundred hours each; n1 uses the most CPU.
func world(nodes int, change ...func(*observation)) *observation {
	s := &observation{now: noon, cloud: "default", interval: time.Minute, servers: map[string][]cloud.Server{}, hosts: map[string]cloud.Host{}, taken: map[string]int64{}}
	for i := 1; i <= nodes; i++ {
		name, host := fmt.Sprintf("n%d", i), fmt.Sprintf("h%d", i)
		s.nodes = append(s.nodes, node{name: name, ready: true})
		s.servers[name] = []cloud.Server{{ID: "s" + name, Name: name, State: cloud.StateActive, Host: host, CPUUsageMHz: 1000 - 100*i, MemoryUsageMB: 10 * i}}
		s.hosts[host] = cloud.Host{Name: host, GPU: true, AvailableHours: 100}
	}
	for _, f := range change {
		f(s)
	}
	return s
}

func nodeIs(at int, f func(*node)) func(*observation) {
	return func(s *observation) { f(&s.nodes[at-1]) }
}

func serverIs(name string, f func(*cloud.Server)) func(*observation) {
	return func(s *observation) { f(&s.servers[name][0]) }
}

func hostIs(name string, gpu bool, hours int) func(*observation) {
	return func(s *observation) { s.hosts[name] = cloud.Host{Name: name, GPU: gpu, AvailableHours: hours} }
}

// claimed adds a reservation of another GPUInfo on h1, made so long ago.
func claimed(uid string, hours int, ago time.Duration) func(*observation) {
	return claimedFor(uid, time.Duration(hours)*time.Hour, ago)
}

// claimedFor adds a reservation for this time from now on.
func claimedFor(uid string, left, ago time.Duration) func(*observation) {
	return func(s *observation) {
		s.claim(claim{uid: types.UID(uid), host: "h1", since: noon.Add(-ago), until: noon.Add(left)})
	}
}

// claim adds reservations of others.
func (o *observation) claim(claims ...claim) {
	o.taken, o.claims = maps.Clone(o.taken), slices.Concat(o.claims, claims)
	for _, c := range claims {
		o.taken[c.host] += c.left(o.now)
	}
}

var errAway = reconciler.Blocked("Cloud/default", pcapi.CloudUnavailableReason, "waiting for the cloud")

func away(s *observation) { s.unknown = errAway }

// reconcileOnce plans, runs the steps and reports, as the engine does.
func reconcileOnce(t testing.TB, gpu *pcapi.GPUInfo, obs *observation) reconciler.Summary {
	t.Helper()
	k := &kind{}
	p := k.Plan(gpu, obs)
	for _, s := range p.Steps {
		if err := s.Run(t.Context(), gpu, obs); err != nil {
			t.Fatalf("step %s: %v", s.Name, err)
		}
	}
	return k.Report(gpu, obs, p.Outcome)
}

func requested(value string) func(*observation) { return func(s *observation) { s.request = value } }
