package gpuinfo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	cloudfake "github.com/privatecloud/operator/internal/cloud/fake"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// slowCloud returns a cloud that takes a while to list its only host. Err is how
// the listings fail, if they do.
func slowCloud(takes time.Duration, err error) *cloudfake.Cloud {
	c := cloudfake.New(cloudfake.Options{Capabilities: cloud.NewCapabilities(cloud.Hosts)})
	c.FailAlways(cloudfake.ListHosts, err, false)
	setDelay(c, takes)
	return c
}

// setDelay sets how long a listing takes. The host is available for as many hours
// as there were listings.
func setDelay(c *cloudfake.Cloud, takes time.Duration) {
	c.OnCall(func(context.Context, cloudfake.Verb, string) {
		c.SetHosts(cloud.Host{Name: "h1", AvailableHours: c.Sent(cloudfake.ListHosts)})
		<-time.After(takes)
	})
}

// asker lists the hosts of one cloud.
type asker struct {
	t        *testing.T
	kind     *kind
	inv      *inventory.Inventory
	interval time.Duration
}

func newAsker(t *testing.T, c cloud.Client, interval time.Duration) *asker {
	d := &asker{t: t, inv: inventory.New(time.Now, "c").Cloud("default"), interval: interval}
	d.kind = &kind{clock: time.Now, named: map[string]named{}, listed: map[string]listed{}}
	d.inv.Configure(inventory.Settings{PollInterval: interval})
	d.inv.Connect(c, nil)
	return d
}

// look lists hosts as a reconcile does. It returns the hours of h1, 0 if there is none.
func (d *asker) look() (hours int, took time.Duration, err error) {
	d.t.Helper()
	obs := world(0, func(s *observation) { s.now, s.interval = time.Now(), d.interval })
	err = d.kind.observeHosts(d.t.Context(), obs, d.inv)
	return obs.hosts["h1"].AvailableHours, time.Since(obs.now), err
}

func (d *asker) wantHours(want int) {
	d.t.Helper()
	if hours, _, err := d.look(); err != nil || hours != want {
		d.t.Errorf("got listing %d, %v; want listing %d", hours, err, want)
	}
}

func (d *asker) wantError(took time.Duration, want string) {
	d.t.Helper()
	_, was, err := d.look()
	if err == nil || !strings.Contains(err.Error(), want) || was != took {
		d.t.Errorf("got %v after %v; want %q after %v", err, was, want, took)
	}
}

const unanswered = "the cloud has not answered yet"

func TestHostsListedAfterTheTimeoutAreUsed(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, time.Minute, time.Hour} {
		for _, takes := range []time.Duration{inventory.HostsTimeout + 1, 2*inventory.HostsTimeout - 1, 29 * time.Second} {
			t.Run(interval.String()+" "+takes.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := slowCloud(takes, nil)
					d := newAsker(t, c, interval)
					begin := time.Now()
					hours, took, err := d.look()
					if took != inventory.HostsTimeout {
						t.Errorf("the first reconcile took %v, want %v", took, inventory.HostsTimeout)
					}
					d.wantError(0, unanswered) // others do not wait as well
					for err != nil && time.Since(begin) <= takes+inventory.HostsTimeout {
						wait, _ := errors.AsType[*reconciler.WaitError](err)
						<-time.After(wait.After)
						hours, _, err = d.look()
					}
					if err != nil || hours != 1 || c.Sent(cloudfake.ListHosts) != 1 || time.Since(begin) > takes+2*inventory.HostsTimeout {
						t.Errorf("after %v: got listing %d of %d, %v; want the first and only one", time.Since(begin), hours, c.Sent(cloudfake.ListHosts), err)
					}
				})
			})
		}
	}
}

func TestOldHostsAreListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := slowCloud(inventory.HostsTimeout+1, nil)
		d := newAsker(t, c, time.Minute)
		d.wantError(inventory.HostsTimeout, unanswered)
		synctest.Wait()
		setDelay(c, 0)
		<-time.After(time.Hour)
		d.wantHours(2)
		d.wantHours(2)
	})
}

func TestFailureToListHostsIsCachedForAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := slowCloud(time.Second, &cloud.Error{Kind: cloud.Rejected, Op: "list hosts", Detail: "not now"})
		d := newAsker(t, c, time.Minute)
		d.wantError(time.Second, "not now")
		<-time.After(time.Minute - 1)
		d.wantError(0, "not now")
		c.Heal()
		<-time.After(1)
		d.wantHours(2)
	})
}

func TestFailureAfterATimeoutIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := slowCloud(inventory.HostsTimeout+1, &cloud.Error{Kind: cloud.Rejected, Op: "list hosts", Detail: "not now"})
		d := newAsker(t, c, time.Minute)
		d.wantError(inventory.HostsTimeout, unanswered)
		synctest.Wait()
		setDelay(c, time.Second)
		<-time.After(inventory.HostsTimeout)
		d.wantError(time.Second, "not now")
		<-time.After(time.Minute - 1)
		d.wantError(0, "not now")
	})
}

func TestFailureToListHostsSaysNothingOfThePlatform(t *testing.T) {
	platform := []string{"https://cloud.internal:8443/api", "10.0.0.7", "production-credentials", "private-cloud-system", "team-b"}
	for _, failure := range []cloud.Kind{
		cloud.NotFound, cloud.NotFoundUnproven, cloud.Taken, cloud.Unauthorized, cloud.Untrusted, cloud.Throttled, cloud.Unavailable, cloud.Unreadable,
	} {
		t.Run(string(failure), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := slowCloud(0, &cloud.Error{Kind: failure, Op: "list hosts", Detail: strings.Join(platform, " ")})
				_, _, err := newAsker(t, c, time.Minute).look()
				if err == nil || !strings.HasPrefix(err.Error(), "list hosts: ") {
					t.Fatalf("got %v, want a failure to list hosts", err)
				}
				gpu := asking()
				obs := world(1, func(s *observation) { s.unknown = err })
				reported := fmt.Sprint(reconcileOnce(t, gpu, obs), (&kind{}).Plan(gpu, obs).Outcome, gpu.Status)
				for _, word := range platform {
					if strings.Contains(reported, word) {
						t.Errorf("%q is in %q", word, reported)
					}
				}
			})
		})
	}
}
