package inventory_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/cloud/transport"
	"github.com/privatecloud/operator/internal/inventory"
)

const shortPoll = 10 * time.Second

// limitedCloud answers within limits.
type limitedCloud struct {
	cloud.Client
	http *http.Client
}

type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newLimitedCloud(t *testing.T) *limitedCloud {
	t.Helper()
	ok := answers(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
	})
	limits := transport.Limits{RequestsPerSecond: 20, Burst: 40, MaxInFlight: 16}
	c, err := transport.New(transport.Config{Name: "home", Host: "cloud.test", Limits: limits, Timeout: 10 * time.Second, Base: ok})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return &limitedCloud{http: c.Client()}
}

func (c *limitedCloud) call(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://cloud.test/", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func (c *limitedCloud) ServerStatus(ctx context.Context, _ string) (cloud.Status, error) {
	return cloud.Status{CPUUtilization: new(40)}, c.call(ctx)
}

// busy makes calls of a namespace without end.
func (c *limitedCloud) busy(ctx context.Context, all *sync.WaitGroup, namespace string) {
	for range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := c.call(cloud.WithFlow(ctx, namespace)); err != nil {
					after(ctx, cloud.RetryAfter(err))
				}
			}
		})
	}
}

// after waits for d, or until the context ends.
func after(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// readings is how the utilization of the servers of a namespace was read.
type readings struct {
	mu sync.Mutex
	// reads are the calls that the cloud answered, and lost the times that a utilization
	// was unknown after it was known.
	reads, lost int
	// longest is the longest time from one read of a server to the next.
	longest time.Duration
}

// follow reads the utilization of servers as the controller of VMs does.
func (r *readings) follow(ctx context.Context, all *sync.WaitGroup, inv *inventory.Inventory, namespace string, servers []cloud.Server) {
	for _, s := range servers {
		all.Go(func() {
			known, last := false, time.Now()
			for {
				use, err := inv.Utilization.Read(cloud.WithFlow(ctx, namespace), s.ID)
				if ctx.Err() != nil {
					return
				}
				r.mu.Lock()
				r.longest = max(r.longest, time.Since(last))
				if known && !use.Known {
					r.lost++
				}
				if err == nil {
					r.reads++
					last = time.Now()
				}
				r.mu.Unlock()
				known = use.Known
				after(ctx, use.Again)
			}
		})
	}
}

// followed reads the utilization of the servers of namespaces for a time, beside others
// that make calls without end.
func followed(t *testing.T, d time.Duration, servers map[string]int, others int) map[string]*readings {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	c := newLimitedCloud(t)
	inv := inventory.New(time.Now, "c").Cloud("home")
	inv.Configure(inventory.Settings{PollInterval: shortPoll, RequestsPerSecond: 20})
	inv.Connect(c, nil)
	var wg sync.WaitGroup
	var all []cloud.Server
	read := map[string]*readings{}
	for namespace, n := range servers {
		of := serversNamed(namespace, n)
		all = append(all, of...)
		read[namespace] = &readings{}
		read[namespace].follow(ctx, &wg, inv, namespace, of)
	}
	for n := range others {
		c.busy(ctx, &wg, fmt.Sprintf("busy-%d", n))
	}
	for ctx.Err() == nil {
		snap, err := inventory.List(t.Context(), pages(all), time.Now)
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		inv.Publish(snap)
		after(ctx, shortPoll)
	}
	wg.Wait()
	return read
}

// A namespace with few servers does not pay for one with many, and neither does its
// utilization become unknown when other calls take most of the rate.
func TestUtilizationOfNamespacesThatShareACloud(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		servers map[string]int
		// busy is the number of namespaces that make calls without end.
		busy int
		// longest is the most time from one read of a server to the next, by namespace.
		longest map[string]time.Duration
		// atLeast is how many are read in twenty minutes.
		atLeast int
	}{
		"few beside many: few are read each ten seconds, and the others at the rest of half the rate": {
			servers: map[string]int{"few": 2, "many": 1000},
			longest: map[string]time.Duration{"few": 2 * shortPoll, "many": 5 * time.Minute}, atLeast: 11_000,
		},
		"beside seven busy namespaces: all stay known": {
			servers: map[string]int{"ns": 600}, busy: 7,
			longest: map[string]time.Duration{"ns": 10 * time.Minute}, atLeast: 2_800,
		},
		"few beside many and seven busy namespaces: all stay known, and few are read more often": {
			servers: map[string]int{"few": 2, "many": 600}, busy: 7,
			longest: map[string]time.Duration{"few": 2 * time.Minute, "many": 10 * time.Minute}, atLeast: 2_800,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				reads := 0
				for namespace, read := range followed(t, 20*time.Minute, test.servers, test.busy) {
					t.Logf("%s: %d reads, the longest time between two is %s, unknown %d times", namespace, read.reads, read.longest, read.lost)
					if read.longest > test.longest[namespace] {
						t.Errorf("%s: %s from one read of a server to the next, want %s at most", namespace, read.longest, test.longest[namespace])
					}
					if read.lost > 0 {
						t.Errorf("%s: a utilization became unknown %d times", namespace, read.lost)
					}
					reads += read.reads
				}
				if reads < test.atLeast {
					t.Errorf("%d reads in twenty minutes, want %d", reads, test.atLeast)
				}
			})
		})
	}
}
