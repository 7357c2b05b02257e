package gpuinfo

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
)

// cluster is a cloud with its nodes, and the GPUInfos that use it.
type cluster struct {
	t    *testing.T
	rng  *rand.Rand
	obs  *observation
	gpus []*pcapi.GPUInfo
}

func newCluster(test *testing.T, seed uint64) *cluster {
	t := &cluster{t: test, rng: rand.New(rand.NewPCG(seed, 0)), obs: world(0)}
	for i := range 1 + t.rng.IntN(5) {
		name := fmt.Sprintf("n%d", i)
		t.obs.nodes = append(t.obs.nodes, node{name: name, ready: true})
		t.obs.servers[name] = []cloud.Server{{Name: name, State: cloud.StateActive, Host: t.host(), CPUUsageMHz: 100 * t.rng.IntN(3)}}
	}
	for i := range 3 {
		t.setHost(i)
	}
	for i := range 1 + t.rng.IntN(8) {
		t.gpus = append(t.gpus, asking(func(gpu *pcapi.GPUInfo) {
			gpu.UID = types.UID(fmt.Sprintf("uid-%d", i))
			gpu.Spec = pcapi.GPUInfoSpec{DesAccTime: int64(1 + t.rng.IntN(40)), GPURequired: t.rng.IntN(4) > 0}
		}))
	}
	return t
}

func (t *cluster) host() string { return fmt.Sprintf("h%d", t.rng.IntN(3)) }

func (t *cluster) setHost(i int) {
	name := fmt.Sprintf("h%d", i)
	t.obs.hosts[name] = cloud.Host{Name: name, GPU: t.rng.IntN(4) > 0, AvailableHours: t.rng.IntN(100)}
}

// reconcile reconciles one GPUInfo as the engine does, and reports whether its
// reservation changed.
func (t *cluster) reconcile(gpu *pcapi.GPUInfo) bool {
	obs := *t.obs
	for _, other := range t.gpus {
		if other != gpu && other.Status.Reservation != nil {
			obs.claim(claimOf(other))
		}
	}
	before := gpu.Status.Reservation
	reconcileOnce(t.t, gpu, &obs)
	return !cmp.Equal(before, gpu.Status.Reservation)
}

// disturb changes something that choices depend on.
func (t *cluster) disturb() {
	n := &t.obs.nodes[t.rng.IntN(len(t.obs.nodes))]
	switch t.rng.IntN(7) {
	case 0:
		t.setHost(t.rng.IntN(3))
	case 1:
		n.cordoned = !n.cordoned
	case 2:
		n.ready = !n.ready
	case 3:
		t.obs.servers[n.name][0].Host = t.host()
	case 4:
		gpu := t.gpus[t.rng.IntN(len(t.gpus))]
		gpu.Generation++
		gpu.Spec.DesAccTime = int64(1 + t.rng.IntN(40))
	case 5:
		t.obs.now = t.obs.now.Add(time.Duration(t.rng.IntN(600)) * time.Minute)
	case 6: // another manager gave hours away without looking
		gpu := t.gpus[t.rng.IntN(len(t.gpus))]
		since := t.obs.now.Add(-time.Duration(t.rng.IntN(3)) * time.Hour)
		gpu.Status.SuitableNodeName = n.name
		gpu.Status.Reservation = &pcapi.GPUReservation{
			Host: t.obs.servers[n.name][0].Host, Cloud: "default", Generation: gpu.Generation, Since: metav1.NewTime(since),
			Until: metav1.NewTime(since.Add(time.Duration(gpu.Spec.DesAccTime) * time.Hour)),
		}
	}
}

// overcommitted returns the hosts of which more hours are reserved than there
// are, an hour that has begun left out.
func (t *cluster) overcommitted() []string {
	seconds := map[string]int64{}
	for _, gpu := range t.gpus {
		if held := gpu.Status.Reservation; held != nil {
			seconds[held.Host] += claimOf(gpu).left(t.obs.now)
		}
	}
	var hosts []string
	for name, seconds := range seconds {
		if seconds/hour > int64(t.obs.hosts[name].AvailableHours) {
			hosts = append(hosts, fmt.Sprintf("%d seconds of %+v", seconds, t.obs.hosts[name]))
		}
	}
	return hosts
}

// TestChoicesConvergeWithoutOvercommittingAHost disturbs nodes, hosts, time and
// reservations. After a few rounds of reconciles in any order, nothing changes any
// more and no host is overcommitted.
func TestChoicesConvergeWithoutOvercommittingAHost(t *testing.T) {
	placed, yielded := 0, 0
	for seed := range uint64(2000) {
		c := newCluster(t, seed)
		for round := range 6 {
			for range c.rng.IntN(4) {
				c.disturb()
			}
			rounds := 0
			for moved := true; moved; rounds++ {
				moved = false
				c.rng.Shuffle(len(c.gpus), func(i, j int) { c.gpus[i], c.gpus[j] = c.gpus[j], c.gpus[i] })
				for _, gpu := range c.gpus {
					had := gpu.Status.Reservation != nil
					if c.reconcile(gpu) {
						moved = true
						if had {
							yielded++
						} else {
							placed++
						}
					}
				}
				if rounds > 2*len(c.gpus)+2 {
					t.Fatalf("seed %d, round %d: %d GPUInfos did not converge in %d reconciles of each", seed, round, len(c.gpus), rounds)
				}
			}
			if hosts := c.overcommitted(); len(hosts) > 0 {
				t.Fatalf("seed %d, round %d: overcommitted: %v", seed, round, hosts)
			}
		}
	}
	if placed < 1000 || yielded < 1000 {
		t.Errorf("%d placements and %d losses are too few for this test", placed, yielded)
	}
}

// TestChoiceIsKeptWhileTimeGoesBy decreases the hours of hosts, which are whole
// numbers, as time goes by.
func TestChoiceIsKeptWhileTimeGoesBy(t *testing.T) {
	for seed := range uint64(500) {
		c := newCluster(t, seed)
		var placed []*pcapi.GPUInfo
		for _, gpu := range c.gpus {
			c.reconcile(gpu)
			if gpu.Status.Reservation != nil {
				placed = append(placed, gpu)
			}
		}
		begin, full := c.obs.now, maps.Clone(c.obs.hosts)
		for c.obs.now.Sub(begin) < 40*time.Hour {
			c.obs.now = c.obs.now.Add(time.Duration(1 + c.rng.IntN(int(2*time.Hour))))
			for name, host := range full {
				host.AvailableHours = max(0, int((time.Duration(host.AvailableHours)*time.Hour-c.obs.now.Sub(begin))/time.Hour))
				c.obs.hosts[name] = host
			}
			for _, gpu := range placed {
				c.reconcile(gpu)
				over := !begin.Add(time.Duration(gpu.Spec.DesAccTime) * time.Hour).After(c.obs.now)
				if kept := gpu.Status.Reservation; !over && (kept == nil || !kept.Since.Time.Equal(begin)) {
					t.Fatalf("seed %d: after %v, %d hours became %+v", seed, c.obs.now.Sub(begin), gpu.Spec.DesAccTime, kept)
				}
			}
		}
	}
}

// TestChoiceDoesNotOvercommitAHost reconciles one GPUInfo after the other.
func TestChoiceDoesNotOvercommitAHost(t *testing.T) {
	for seed := range uint64(2000) {
		c := newCluster(t, seed)
		for _, gpu := range c.gpus {
			c.reconcile(gpu)
			if hosts := c.overcommitted(); len(hosts) > 0 {
				t.Fatalf("seed %d: overcommitted: %v", seed, hosts)
			}
		}
	}
}

func TestDecisionDoesNotDependOnTheOrderOfTheObservation(t *testing.T) {
	for seed := range uint64(500) {
		c := newCluster(t, seed)
		for _, gpu := range c.gpus[:len(c.gpus)-1] {
			c.reconcile(gpu)
		}
		last := c.gpus[len(c.gpus)-1]
		want := last.DeepCopy()
		obs := *c.obs
		for _, other := range c.gpus[:len(c.gpus)-1] {
			if other.Status.Reservation != nil {
				obs.claim(claimOf(other))
			}
		}
		reconcileOnce(t, want, &obs)
		obs.nodes, obs.claims = slices.Clone(obs.nodes), slices.Clone(obs.claims)
		c.rng.Shuffle(len(obs.nodes), func(i, j int) { obs.nodes[i], obs.nodes[j] = obs.nodes[j], obs.nodes[i] })
		c.rng.Shuffle(len(obs.claims), func(i, j int) { obs.claims[i], obs.claims[j] = obs.claims[j], obs.claims[i] })
		got := last.DeepCopy()
		reconcileOnce(t, got, &obs)
		if diff := cmp.Diff(want.Status.Reservation, got.Status.Reservation); diff != "" {
			t.Fatalf("seed %d: reservation (-want +got):\n%s", seed, diff)
		}
		if diff := cmp.Diff(want.Status.Candidates, got.Status.Candidates); diff != "" {
			t.Fatalf("seed %d: candidates (-want +got):\n%s", seed, diff)
		}
	}
}
