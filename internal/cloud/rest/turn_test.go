package rest

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// gap is the time between two turns of slow.
const gap = 100 * time.Millisecond

var slow = Limits{RequestsPerSecond: 10, Burst: 5, MaxInFlight: 16}

// persist calls again and again as a VM does, at the time that it was told,
// until it is served. It returns how often it was refused.
func persist(ctx context.Context, c *Client, flow string) (refused int) {
	for {
		err := verbs["get"](cloud.WithFlow(ctx, flow), c)
		if err == nil || !pause(ctx, cloud.RetryAfter(err)) {
			return refused
		}
		refused++
	}
}

// crowd has many calls of a flow persist, and again once served, until the context ends.
func crowd(ctx context.Context, all *sync.WaitGroup, c *Client, flow string, n int) (served *atomic.Int64) {
	served = new(atomic.Int64)
	for range n {
		all.Go(func() {
			for {
				persist(ctx, c, flow)
				if ctx.Err() != nil {
					return
				}
				served.Add(1)
			}
		})
	}
	return served
}

func TestOneCallIsServedAtOnceBesideAFlowOfTenThousand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubbled(t, okServer, limited(slow))
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		crowd(ctx, &all, c, "crowd", 10_000)
		var waits []time.Duration
		for range 50 {
			time.Sleep(1370 * time.Millisecond)
			begun := time.Now()
			if err := verbs["get"](cloud.WithFlow(ctx, "one"), c); err != nil {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
			waits = append(waits, time.Since(begun))
		}
		stop()
		all.Wait()
		if longest := slices.Max(waits); longest > 2*gap {
			t.Errorf("it waited for up to %s, want %s at most: %s", longest, 2*gap, waits)
		}
	})
}

func TestFlowsShareEvenlyAndOneAloneHasTheWholeRate(t *testing.T) {
	t.Parallel()
	const lasting = 100 * time.Second
	for name, test := range map[string]struct {
		callers map[string]int
		// want is how many calls of each flow are served in the first lasting.
		want map[string]int64
	}{
		"one alone":                      {map[string]int{"a": 200}, map[string]int64{"a": 1000}},
		"two of a size":                  {map[string]int{"a": 40, "b": 40}, map[string]int64{"a": 500, "b": 500}},
		"two, one of them far bigger":    {map[string]int{"a": 400, "b": 4}, map[string]int64{"a": 500, "b": 500}},
		"five of a size":                 {map[string]int{"a": 40, "b": 40, "c": 40, "d": 40, "e": 40}, map[string]int64{"a": 200, "b": 200, "c": 200, "d": 200, "e": 200}},
		"calls of no flow are one, too":  {map[string]int{"": 40, "b": 40}, map[string]int64{"": 500, "b": 500}},
		"what one leaves is the other's": {map[string]int{"a": 200, "idle": 0}, map[string]int64{"a": 1000, "idle": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := bubbled(t, okServer, limited(slow))
				ctx, stop := context.WithTimeout(t.Context(), lasting)
				defer stop()
				var all sync.WaitGroup
				served := map[string]*atomic.Int64{}
				for flow, n := range test.callers {
					served[flow] = crowd(ctx, &all, c, flow, n)
				}
				all.Wait()
				for flow, want := range test.want {
					if got := served[flow].Load(); got < want*98/100 || got > want+want/50+int64(slow.Burst) {
						t.Errorf("%d calls of flow %q were served, want about %d", got, flow, want)
					}
				}
			})
		})
	}
}

func TestAFlowThatComesLaterGetsNoMoreThanItsShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubbled(t, okServer, limited(slow))
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Second)
		defer stop()
		var all sync.WaitGroup
		first := crowd(ctx, &all, c, "first", 40)
		time.Sleep(100 * time.Second)
		alone := first.Load()
		crowd(ctx, &all, c, "later", 40)
		all.Wait()
		if got := first.Load() - alone; got < 490 || got > 510 {
			t.Errorf("%d calls of the first flow were served beside the second, want about 500", got)
		}
	})
}

func TestAFlowThatIsNotInLineForAMomentGetsNoMoreThanItsShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubbled(t, okServer, limited(slow))
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Second)
		defer stop()
		var all sync.WaitGroup
		steady := crowd(ctx, &all, c, "steady", 40)
		for i := 0; ctx.Err() == nil; i++ {
			persist(ctx, c, "hasty")
			// A flow that is new has those forgotten that want nothing now.
			moment, end := context.WithTimeout(ctx, time.Millisecond)
			persist(moment, c, fmt.Sprintf("new-%d", i))
			end()
		}
		all.Wait()
		if got := steady.Load(); got < 490 {
			t.Errorf("%d calls of the steady flow were served, want about 500", got)
		}
	})
}

func TestWhoComesBackAtTheTimeToldIsServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubbled(t, okServer, limited(slow))
		ctx, stop := context.WithCancel(t.Context())
		var others, all sync.WaitGroup
		crowd(ctx, &others, c, "crowd", 1000)
		time.Sleep(10 * time.Second)
		begun := time.Now()
		var mu sync.Mutex
		times := map[int]int{}
		for range 100 {
			all.Go(func() {
				refused := persist(ctx, c, "told")
				mu.Lock()
				defer mu.Unlock()
				times[refused]++
			})
		}
		all.Wait()
		took := time.Since(begun)
		stop()
		others.Wait()
		// Half the rate is theirs: the first ones wait, all others are told once.
		if times[0] < 4 || times[0]+times[1] != 100 {
			t.Errorf("calls by how often they were refused: %v, want none twice", times)
		}
		if share := 2 * 100 * gap; took > share*13/10 {
			t.Errorf("all were served after %s, want about %s", took, share)
		}
	})
}

func TestWithinAFlowWhatBeganFirstIsServedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []string
		c := bubbled(t, func(w http.ResponseWriter, r *http.Request) {
			id := path.Base(r.URL.Path)
			got = append(got, id)
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"id":%q,"name":"web"}`, id)
		}, limited(Limits{RequestsPerSecond: 10, Burst: 1, MaxInFlight: 1}))
		var all sync.WaitGroup
		call := func(ctx context.Context, id string) {
			all.Go(func() {
				if _, err := c.GetServer(ctx, id); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			})
			synctest.Wait()
		}
		old := cloud.WithFlow(t.Context(), "flow")
		time.Sleep(time.Second)
		young := cloud.WithFlow(t.Context(), "flow")
		call(young, "young-1")
		call(young, "young-2")
		call(old, "old-1")
		all.Wait()
		if diff := cmp.Diff([]string{"young-1", "old-1", "young-2"}, got); diff != "" {
			t.Errorf("served (-want +got):\n%s", diff)
		}
	})
}

func TestAFlowHoldsOnlySoManyWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const slots = 4
		c := bubbled(t, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(900 * time.Millisecond)
			okServer(w, r)
		}, limited(Limits{RequestsPerSecond: 1000, Burst: 100, MaxInFlight: slots}))
		var all sync.WaitGroup
		var held atomic.Int64
		for range 50 {
			all.Go(func() {
				held.Add(1)
				_ = verbs["get"](cloud.WithFlow(t.Context(), "crowd"), c)
				held.Add(-1)
			})
		}
		synctest.Wait()
		if got := held.Load(); got != 2*slots {
			t.Errorf("%d calls under way or waiting, want %d of each", got, slots)
		}
		all.Go(func() {
			if err := verbs["get"](cloud.WithFlow(t.Context(), "other"), c); err != nil {
				t.Errorf("another flow's call: %v", err)
			}
		})
		all.Wait()
	})
}

func TestACallThatIsGivenUpLeavesItsTurnToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubbled(t, okServer, limited(Limits{RequestsPerSecond: 2, Burst: 1, MaxInFlight: 1}))
		if err := verbs["get"](t.Context(), c); err != nil {
			t.Fatal(err)
		}
		ctx, giveUp := context.WithCancel(cloud.WithFlow(t.Context(), "flow"))
		var all sync.WaitGroup
		all.Go(func() {
			if err := verbs["get"](ctx, c); err == nil || cloud.Is(err, cloud.Throttled) {
				t.Errorf("given up: %v, want the end of its context", err)
			}
		})
		synctest.Wait()
		giveUp()
		all.Wait()
		begun := time.Now()
		if err := verbs["get"](cloud.WithFlow(t.Context(), "flow"), c); err != nil || time.Since(begun) != 500*time.Millisecond {
			t.Errorf("the next call: %v after %s, want it served after 500ms", err, time.Since(begun))
		}
	})
}

func TestIdleFlowsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := bubbled(t, okServer, limited(slow))
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() { persist(t.Context(), c, fmt.Sprintf("flow-%d", i)) })
		}
		all.Wait()
		time.Sleep(2 * maxTurnAhead)
		for _, flow := range []string{"last-1", "last-2"} {
			if err := verbs["get"](cloud.WithFlow(t.Context(), flow), c); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(c.turns.flows); got > 2 {
			t.Errorf("%d flows are remembered, want those of the last calls", got)
		}
	})
}
