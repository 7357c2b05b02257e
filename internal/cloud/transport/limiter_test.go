package transport

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

// interval is the time between two requests within slow.
const interval = 100 * time.Millisecond

var slow = Limits{RequestsPerSecond: 10, Burst: 5, MaxInFlight: 16}

// persist sends a request as a reconciler does, again after each RetryAfter until
// it is served. It returns how often the request was refused.
func persist(ctx context.Context, c *Transport, flow string) (refused int) {
	for {
		err := get(cloud.WithFlow(ctx, flow), c)
		if err == nil || ctx.Err() != nil {
			return refused
		}
		retry := time.NewTimer(cloud.RetryAfter(err))
		select {
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			return refused
		}
		refused++
	}
}

// crowd starts n callers that each persist in a flow again and again until the
// context ends.
func crowd(ctx context.Context, all *sync.WaitGroup, c *Transport, flow string, n int) (served *atomic.Int64) {
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

func TestLimiterServesSingleRequestBesideFlowOfTenThousand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, ok, limited(slow))
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		crowd(ctx, &all, c, "crowd", 10_000)
		var waits []time.Duration
		for range 50 {
			time.Sleep(1370 * time.Millisecond)
			begun := time.Now()
			if err := get(cloud.WithFlow(ctx, "one"), c); err != nil {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
			waits = append(waits, time.Since(begun))
		}
		stop()
		all.Wait()
		if longest := slices.Max(waits); longest > 2*interval {
			t.Errorf("it waited for up to %s, want %s at most: %s", longest, 2*interval, waits)
		}
	})
}

func TestLimiterServesFlowWithFewRequestsAtOnceBesideTenThousand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, ok, limited(Limits{RequestsPerSecond: 20, Burst: 40, MaxInFlight: 16}))
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		crowd(ctx, &all, c, "crowd", 10_000)
		for range 50 {
			time.Sleep(time.Second)
			begun := time.Now()
			for range 4 { // check, create and two reads of one VM
				persist(ctx, c, "few")
			}
			if took := time.Since(begun); took > 0 {
				t.Errorf("four requests a second waited for %s, want none to wait", took)
			}
		}
		stop()
		all.Wait()
	})
}

// Calls that come one after the other leave no call under way in between.
func TestLimiterKeepsReserveFromFlowThatNeverWaitsForItself(t *testing.T) {
	t.Parallel()
	for name, lasting := range map[string]time.Duration{"calls that take no time": 0, "calls that take 10 ms": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newTransport(t, func(http.ResponseWriter, *http.Request) { time.Sleep(lasting) }, limited(Limits{RequestsPerSecond: 20, Burst: 40, MaxInFlight: 16}))
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				crowd(ctx, &all, c, "busy", 1)
				for range 50 {
					time.Sleep(time.Second)
					begun := time.Now()
					for range 4 {
						persist(ctx, c, "few")
					}
					if took := time.Since(begun); took > 4*lasting {
						t.Errorf("four requests a second took %s, want %s since none waits", took, 4*lasting)
					}
				}
				stop()
				all.Wait()
			})
		})
	}
}

func TestLimiterGivesReserveToManyFlowsInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, ok, limited(Limits{RequestsPerSecond: 20, Burst: 40, MaxInFlight: 16}))
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Second)
		defer stop()
		var all sync.WaitGroup
		var served []*atomic.Int64
		for i := range 20 {
			served = append(served, crowd(ctx, &all, c, fmt.Sprintf("flow-%d", i), 5))
		}
		all.Wait()
		total := int64(0)
		for i, s := range served {
			total += s.Load()
			if got := s.Load(); got < 96 || got > 100+45 {
				t.Errorf("%d calls of flow %d were served, want about 100", got, i)
			}
		}
		if total > 2040 {
			t.Errorf("%d calls were served in 100 s, want 2040 at most", total)
		}
	})
}

func TestLimiterSharesRateEvenlyBetweenFlows(t *testing.T) {
	t.Parallel()
	const lasting = 100 * time.Second
	for name, test := range map[string]struct {
		callers map[string]int
		// want is how many calls of each flow are served in the first lasting.
		want map[string]int64
	}{
		"one flow: the whole rate":               {map[string]int{"a": 200}, map[string]int64{"a": 1000}},
		"two equal flows: half each":             {map[string]int{"a": 40, "b": 40}, map[string]int64{"a": 500, "b": 500}},
		"two flows of different size: half each": {map[string]int{"a": 400, "b": 4}, map[string]int64{"a": 500, "b": 500}},
		"five equal flows: a fifth each":         {map[string]int{"a": 40, "b": 40, "c": 40, "d": 40, "e": 40}, map[string]int64{"a": 200, "b": 200, "c": 200, "d": 200, "e": 200}},
		"requests without a flow: they form one": {map[string]int{"": 40, "b": 40}, map[string]int64{"": 500, "b": 500}},
		"an idle flow: the other gets its share": {map[string]int{"a": 200, "idle": 0}, map[string]int64{"a": 1000, "idle": 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := newTransport(t, ok, limited(slow))
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

func TestLimiterGivesLaterFlowNoMoreThanItsShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, ok, limited(slow))
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

func TestLimiterGivesFlowWithGapsNoMoreThanItsShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, ok, limited(slow))
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Second)
		defer stop()
		var all sync.WaitGroup
		steady := crowd(ctx, &all, c, "steady", 40)
		for i := 0; ctx.Err() == nil; i++ {
			persist(ctx, c, "gaps")
			// A new flow displaces the idle ones.
			moment, end := context.WithTimeout(ctx, time.Millisecond)
			persist(moment, c, fmt.Sprintf("new-%d", i))
			end()
		}
		all.Wait()
		// The new flows together get as many calls as each of the others.
		if got := steady.Load(); got < 330 {
			t.Errorf("%d calls of the steady flow were served, want about 333", got)
		}
	})
}

func TestLimiterServesRetryAfterRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, ok, limited(slow))
		ctx, stop := context.WithCancel(t.Context())
		var others, all sync.WaitGroup
		crowd(ctx, &others, c, "crowd", 1000)
		time.Sleep(10 * time.Second)
		begun := time.Now()
		var mu sync.Mutex
		times := map[int]int{}
		for range 100 {
			all.Go(func() {
				refused := persist(ctx, c, "retry")
				mu.Lock()
				defer mu.Unlock()
				times[refused]++
			})
		}
		all.Wait()
		took := time.Since(begun)
		stop()
		others.Wait()
		// Half the rate is theirs: the first ones wait, all others are refused once.
		if times[0] < 4 || times[0]+times[1] != 100 {
			t.Errorf("calls by how often they were refused: %v, want none twice", times)
		}
		if share := 2 * 100 * interval; took > share*13/10 {
			t.Errorf("all were served after %s, want about %s", took, share)
		}
	})
}

func TestLimiterServesOldestWorkOfFlowFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []string
		c := newTransport(t, func(w http.ResponseWriter, r *http.Request) {
			got = append(got, path.Base(r.URL.Path))
			ok(w, r)
		}, limited(Limits{RequestsPerSecond: 10, Burst: 1, MaxInFlight: 1}))
		var all sync.WaitGroup
		call := func(ctx context.Context, id string) {
			all.Go(func() {
				if err := getPath(ctx, c, "/servers/"+id); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			})
			synctest.Wait()
		}
		old := cloud.WithFlow(t.Context(), "flow")
		time.Sleep(time.Second)
		newer := cloud.WithFlow(t.Context(), "flow")
		call(newer, "newer-1")
		call(newer, "newer-2")
		call(old, "old-1")
		all.Wait()
		if diff := cmp.Diff([]string{"newer-1", "old-1", "newer-2"}, got); diff != "" {
			t.Errorf("served (-want +got):\n%s", diff)
		}
	})
}

func TestLimiterBoundsWaitingRequestsOfFlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const maxInFlight = 4
		c := newTransport(t, func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(900 * time.Millisecond)
			ok(w, r)
		}, limited(Limits{RequestsPerSecond: 1000, Burst: 100, MaxInFlight: maxInFlight}))
		var all sync.WaitGroup
		var held atomic.Int64
		for range 50 {
			all.Go(func() {
				held.Add(1)
				_ = get(cloud.WithFlow(t.Context(), "crowd"), c)
				held.Add(-1)
			})
		}
		synctest.Wait()
		if got := held.Load(); got != 2*maxInFlight {
			t.Errorf("%d calls under way or waiting, want %d of each", got, maxInFlight)
		}
		all.Go(func() {
			if err := get(cloud.WithFlow(t.Context(), "other"), c); err != nil {
				t.Errorf("another flow's call: %v", err)
			}
		})
		all.Wait()
	})
}

func TestLimiterPassesOnSlotOfCanceledRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTransport(t, ok, limited(Limits{RequestsPerSecond: 2, Burst: 1, MaxInFlight: 1}))
		if err := get(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(cloud.WithFlow(t.Context(), "flow"))
		var all sync.WaitGroup
		all.Go(func() {
			if err := get(ctx, c); err == nil || cloud.Is(err, cloud.Throttled) {
				t.Errorf("the canceled request: %v, want the end of its context", err)
			}
		})
		synctest.Wait()
		cancel()
		all.Wait()
		begun := time.Now()
		if err := get(cloud.WithFlow(t.Context(), "flow"), c); err != nil || time.Since(begun) != 500*time.Millisecond {
			t.Errorf("the next call: %v after %s, want it served after 500ms", err, time.Since(begun))
		}
	})
}

func TestLimiterForgetsIdleFlows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(slow)
		c := &Transport{chain: limit(handlerBase(ok), l, 0)}
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() { persist(t.Context(), c, fmt.Sprintf("flow-%d", i)) })
		}
		all.Wait()
		time.Sleep(2 * maxRetryAhead)
		for _, flow := range []string{"last-1", "last-2", "last-3"} {
			time.Sleep(time.Second) // what a flow has used of the reserve is forgotten
			if err := get(cloud.WithFlow(t.Context(), flow), c); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(l.flows); got > 1 {
			t.Errorf("%d flows are remembered, want the last one at most while no call is under way", got)
		}
	})
}
