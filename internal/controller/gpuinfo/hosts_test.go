package gpuinfo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/privatecloud/operator/internal/cloud"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/internal/reconciler"
)

// slowCloud takes a while to list hosts, and counts the calls.
type slowCloud struct {
	cloud.Client
	takes time.Duration
	err   error
	asked int
}

func (l *slowCloud) ListHosts(context.Context) ([]cloud.Host, error) {
	l.asked++
	<-time.After(l.takes)
	return []cloud.Host{{Name: "h1", AvailableHours: l.asked}}, l.err
}

// asker lists the hosts of one slowCloud.
type asker struct {
	t        *testing.T
	kind     *kind
	inv      *inventory.Inventory
	interval time.Duration
}

func newAsker(t *testing.T, l *slowCloud, interval time.Duration) *asker {
	d := &asker{t: t, inv: inventory.New(time.Now).Cloud("default"), interval: interval}
	d.kind = &kind{clock: time.Now, named: map[string]named{}}
	d.inv.Configure(inventory.Settings{PollInterval: interval})
	d.inv.Connect(l, nil)
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
					l := &slowCloud{takes: takes}
					d := newAsker(t, l, interval)
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
					if err != nil || hours != 1 || l.asked != 1 || time.Since(begin) > takes+2*inventory.HostsTimeout {
						t.Errorf("after %v: got listing %d of %d, %v; want the first and only one", time.Since(begin), hours, l.asked, err)
					}
				})
			})
		}
	}
}

func TestOldHostsAreListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowCloud{takes: inventory.HostsTimeout + 1}
		d := newAsker(t, l, time.Minute)
		d.wantError(inventory.HostsTimeout, unanswered)
		synctest.Wait()
		l.takes = 0
		<-time.After(time.Hour)
		d.wantHours(2)
		d.wantHours(2)
	})
}

func TestFailureToListHostsIsCachedForAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowCloud{takes: time.Second, err: &cloud.Error{Kind: cloud.Rejected, Op: "list hosts", Detail: "not now"}}
		d := newAsker(t, l, time.Minute)
		d.wantError(time.Second, "not now")
		<-time.After(time.Minute - 1)
		d.wantError(0, "not now")
		l.err = nil
		<-time.After(1)
		d.wantHours(2)
	})
}

func TestFailureAfterATimeoutIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowCloud{takes: inventory.HostsTimeout + 1, err: &cloud.Error{Kind: cloud.Rejected, Op: "list hosts", Detail: "not now"}}
		d := newAsker(t, l, time.Minute)
		d.wantError(inventory.HostsTimeout, unanswered)
		synctest.Wait()
		l.takes = time.Second
		<-time.After(inventory.HostsTimeout)
		d.wantError(time.Second, "not now")
		<-time.After(time.Minute - 1)
		d.wantError(0, "not now")
	})
}
