package gpuinfo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/controller"
)

// following returns a kind by these clocks that has handled the events of GPUInfos.
func following(t *testing.T, c *clocks, gpus ...pcapi.GPUInfo) *kind {
	t.Helper()
	k := newKind(&reader{items: gpus}, controller.Options{
		Clock: func() time.Time { return c.wall }, Elapsed: func() time.Duration { return c.elapsed },
	})
	if c.ends != nil {
		k.ends, k.claims.ends = c.ends, c.ends
	}
	events := k.followReservations(finderOf(t))
	for i := range gpus {
		events.Create(t.Context(), event.CreateEvent{Object: &gpus[i]}, nil)
	}
	return k
}

func TestObserveClaimsReadsReservationsOfOthers(t *testing.T) {
	mine, other := asking(called("m"), holding("n1", 0)), asking(called("o"), holding("n1", time.Hour))
	elsewhere := asking(called("e"), holding("n1", 0), func(gpu *pcapi.GPUInfo) { gpu.Status.Reservation.Cloud = "elsewhere" })
	deleted := asking(called("d"), holding("n1", 0), deleting)
	for name, test := range map[string]struct {
		hours int
		taken map[string]int64
		want  []claim
	}{
		"all fit: their sum": {19, map[string]int64{"h1": 9 * hour, "h2": 0}, nil},
		"they do not fit: their sum, and each on the host of the own reservation": {
			18, map[string]int64{"h1": 9 * hour, "h2": 0}, []claim{{uid: "o", host: "h1", since: noon.Add(-time.Hour), until: noon.Add(9 * time.Hour)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, obs := following(t, &clocks{wall: noon}, *mine, *other, *elsewhere, *deleted), world(2, hostIs("h1", true, test.hours))
			if err := k.observeClaims(t.Context(), mine, obs); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.taken, obs.taken); diff != "" {
				t.Errorf("seconds that others have reserved (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want, obs.claims, cmp.AllowUnexported(claim{})); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObserveClaimsOnTheHostOfANodeWithAProviderID(t *testing.T) {
	obs := world(1, nodeIs(1, func(n *node) { n.providerID = "openstack:///sn1" }), func(s *observation) {
		s.servers = map[string][]cloud.Server{s.nodes[0].key(): s.servers["n1"]}
	})
	k := following(t, &clocks{wall: noon}, *asking(called("o"), holding("n1", time.Hour)))
	if err := k.observeClaims(t.Context(), asking(called("m")), obs); err != nil {
		t.Fatal(err)
	}
	if got := obs.taken["h1"]; got != 9*hour {
		t.Errorf("%d seconds are reserved on h1, want %d", got, 9*hour)
	}
}

// observed observes the claims of others, as the reconcile of a GPUInfo does, and returns the
// seconds that are reserved on h1.
func (k *kind) observed(t *testing.T, gpu *pcapi.GPUInfo) (int64, error) {
	t.Helper()
	obs := world(1)
	err := k.observeClaims(t.Context(), gpu, obs)
	return obs.taken["h1"], err
}

func TestObserveClaimsReadsItsOwnWrites(t *testing.T) {
	first, second := asking(called("first")), asking(called("second"))
	k := following(t, &clocks{wall: noon}, *first, *second)
	s := k.client.(*reader)
	if taken, err := k.observed(t, first); err != nil || taken != 0 {
		t.Fatalf("%d seconds are reserved, %v; want none", taken, err)
	}
	s.onWait = func() { s.items = []pcapi.GPUInfo{*asking(called("first"), holding("n1", 0)), *second} } // its event is not handled yet
	if taken, err := k.observed(t, second); err != nil || taken != 10*hour {
		t.Errorf("%d seconds are reserved, %v; want what the reconcile before wrote", taken, err)
	}
	if diff := cmp.Diff([]string{"first"}, s.waited); diff != "" {
		t.Errorf("reads that waited for the writes of this client (-want +got):\n%s", diff)
	}
}

func TestEventOfAnOlderStateDoesNotEndTheWaitForOwnWrites(t *testing.T) {
	first, second := asking(called("first")), asking(called("second"))
	k := following(t, &clocks{wall: noon}, *first, *second)
	s := k.client.(*reader)
	if _, err := k.observed(t, first); err != nil {
		t.Fatal(err)
	}
	k.claims.follow(t.Context(), client.ObjectKeyFromObject(first)) // the cache lacks the write
	s.onWait = func() { s.items = []pcapi.GPUInfo{*asking(called("first"), holding("n1", 0)), *second} }
	if taken, err := k.observed(t, second); err != nil || taken != 10*hour {
		t.Errorf("%d seconds are reserved, %v; want what the reconcile before wrote", taken, err)
	}
}

func TestEventOfAnOlderStateFreesNoHours(t *testing.T) {
	first, second := asking(called("first"), holding("n1", 0)), asking(called("second"))
	k := following(t, &clocks{wall: noon}, *first, *second)
	events := k.followReservations(finderOf(t))
	older := asking(called("first"))
	events.Update(t.Context(), event.UpdateEvent{ObjectOld: older, ObjectNew: older}, immediate{})
	if taken, err := k.observed(t, second); err != nil || taken != 10*hour {
		t.Errorf("%d seconds are reserved, %v; want what the cache holds", taken, err)
	}
}

func TestNoChoiceIsMadeWhileTheLastOneCannotBeRead(t *testing.T) {
	first, second := asking(called("first")), asking(called("second"))
	k := following(t, &clocks{wall: noon}, *first, *second)
	s := k.client.(*reader)
	if _, err := k.observed(t, first); err != nil {
		t.Fatal(err)
	}
	s.err = errors.New("the cache does not catch up")
	for range 2 {
		if _, err := k.observed(t, second); !errors.Is(err, s.err) {
			t.Fatalf("got %v, want %v", err, s.err)
		}
	}
	s.err, s.items[0] = nil, *asking(called("first"), holding("n1", 0))
	if taken, err := k.observed(t, second); err != nil || taken != 10*hour {
		t.Errorf("%d seconds are reserved, %v; want what the first has", taken, err)
	}
}

func TestGPUInfoThatAnEventCouldNotReadIsReadBeforeTheNextChoice(t *testing.T) {
	first, second := asking(called("first")), asking(called("second"))
	k := following(t, &clocks{wall: noon}, *first, *second)
	s := k.client.(*reader)
	s.items[0], s.err = *asking(called("first"), holding("n1", 0)), errors.New("the cache is not ready")
	k.claims.follow(t.Context(), client.ObjectKeyFromObject(first))
	s.err = nil
	if taken, err := k.observed(t, second); err != nil || taken != 10*hour {
		t.Errorf("%d seconds are reserved, %v; want what the first has", taken, err)
	}
}

// TestClaimsAreSummedUp makes, changes, ends and deletes reservations, and lets time go by
// on clocks that are set. The sums must be those of the reservations that the cache holds.
func TestClaimsAreSummedUp(t *testing.T) {
	counted := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		c := &clocks{wall: noon}
		k := following(t, c)
		s := k.client.(*reader)
		for range 60 {
			switch rng.IntN(5) {
			case 0:
				c.pass(time.Duration(rng.IntN(8 * int(time.Hour))))
			case 1:
				if rng.IntN(4) == 0 {
					c.set(time.Duration(rng.IntN(20)-10) * time.Hour)
				}
			case 2:
				if len(s.items) > 0 {
					i := rng.IntN(len(s.items))
					gone := s.items[i]
					s.items = slices.Delete(s.items, i, i+1)
					k.claims.follow(t.Context(), client.ObjectKeyFromObject(&gone))
					k.ends.forget(gone.UID)
				}
			default:
				gpu := randomlyHeld(rng, c.wall)
				s.items = slices.DeleteFunc(s.items, func(o pcapi.GPUInfo) bool { return o.Name == gpu.Name })
				s.items = append(s.items, gpu)
				k.claims.follow(t.Context(), client.ObjectKeyFromObject(&gpu))
			}
			counted += wantSums(t, seed, k, s.items, c.wall)
		}
	}
	if counted < 1000 {
		t.Errorf("%d hosts with reservations are too few for this test", counted)
	}
}

// randomlyHeld returns one of eight GPUInfos, with or without a reservation.
func randomlyHeld(rng *rand.Rand, now time.Time) pcapi.GPUInfo {
	gpu := asking(called(fmt.Sprintf("gpu-%d", rng.IntN(8))))
	if rng.IntN(4) > 0 {
		since := now.Add(-time.Duration(rng.IntN(5)) * time.Hour).Truncate(time.Second)
		gpu.Status.Reservation = &pcapi.GPUReservation{
			Host: fmt.Sprintf("h%d", rng.IntN(2)), Cloud: []string{"home", "away"}[rng.IntN(2)],
			Since: metav1.NewTime(since), Until: metav1.NewTime(since.Add(time.Duration(rng.IntN(20)) * time.Hour)),
		}
	}
	return *gpu
}

// wantSums compares the sum of each host, as each GPUInfo reads it, and the claims, with the
// reservations of all others. It returns the number of hosts with reservations.
func wantSums(t *testing.T, seed uint64, k *kind, gpus []pcapi.GPUInfo, now time.Time) int {
	t.Helper()
	counted := 0
	for i := range 8 {
		reads := types.NamespacedName{Namespace: "jobs", Name: fmt.Sprintf("gpu-%d", i)}
		want := map[hostKey]int64{}
		lasting := map[hostKey]int{}
		for _, gpu := range gpus {
			if held := gpu.Status.Reservation; held != nil && gpu.Name != reads.Name {
				is := claimOf(&gpu)
				is.until = is.until.Add(k.ends.extension(&gpu, now))
				want[hostKey{held.Cloud, held.Host}] += is.left(now)
				if ceil(is.until) > ceil(now) {
					lasting[hostKey{held.Cloud, held.Host}]++
				}
			}
		}
		for _, cloudName := range []string{"home", "away"} {
			for _, host := range []string{"h0", "h1"} {
				at := hostKey{cloudName, host}
				// An end that is extended is rounded up to a second.
				if got := k.claims.taken(at, reads, now); got < want[at] || got > want[at]+int64(lasting[at]) {
					t.Fatalf("seed %d: %s reads %d seconds on %v, want %d", seed, reads, got, at, want[at])
				}
				if got := len(k.claims.others(at, reads, now)); got != lasting[at] {
					t.Fatalf("seed %d: %s reads %d claims on %v, want %d", seed, reads, got, at, lasting[at])
				}
				if want[at] > 0 {
					counted++
				}
			}
		}
	}
	return counted
}
