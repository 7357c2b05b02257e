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

// landlord takes its time to list hosts, and counts.
type landlord struct {
	cloud.Client
	takes time.Duration
	err   error
	asked int
}

func (l *landlord) ListHosts(context.Context) ([]cloud.Host, error) {
	l.asked++
	<-time.After(l.takes)
	return []cloud.Host{{Name: "h1", AvailableHours: l.asked}}, l.err
}

// desk is where passes ask one landlord.
type desk struct {
	t        *testing.T
	kind     *kind
	inv      *inventory.Inventory
	interval time.Duration
}

func newDesk(t *testing.T, l *landlord, interval time.Duration) *desk {
	d := &desk{t: t, inv: inventory.New(time.Now).Cloud("default"), interval: interval}
	d.kind = &kind{clock: time.Now, silent: map[string]silence{}, named: map[string]named{}}
	d.inv.Connect(l, nil)
	return d
}

// look makes a pass ask for hosts; hours are those of h1, 0 where there was none.
func (d *desk) look() (hours int, took time.Duration, err error) {
	d.t.Helper()
	obs := world(0, func(s *scope) { s.now, s.interval = time.Now(), d.interval })
	err = d.kind.observeHosts(d.t.Context(), obs, d.inv)
	return obs.hosts["h1"].AvailableHours, time.Since(obs.now), err
}

func (d *desk) wantHours(want int) {
	d.t.Helper()
	if hours, _, err := d.look(); err != nil || hours != want {
		d.t.Errorf("got listing %d, %v; want listing %d", hours, err, want)
	}
}

func (d *desk) wantError(took time.Duration, want string) {
	d.t.Helper()
	_, was, err := d.look()
	if err == nil || !strings.Contains(err.Error(), want) || was != took {
		d.t.Errorf("got %v after %v; want %q after %v", err, was, want, took)
	}
}

const unanswered = "the cloud has not answered yet"

func TestHostsThatTakeLongerThanAPassWaitsAreUsed(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, time.Minute, time.Hour} {
		for _, takes := range []time.Duration{hostsTime + 1, 2*hostsTime - 1, 29 * time.Second} {
			t.Run(interval.String()+" "+takes.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := &landlord{takes: takes}
					d := newDesk(t, l, interval)
					begin := time.Now()
					hours, took, err := d.look()
					if took != hostsTime {
						t.Errorf("the first pass took %v, want %v", took, hostsTime)
					}
					d.wantError(0, unanswered) // others do not wait as well
					for err != nil && time.Since(begin) <= takes+hostsTime {
						wait, _ := errors.AsType[*reconciler.WaitError](err)
						<-time.After(wait.After)
						hours, _, err = d.look()
					}
					if err != nil || hours != 1 || l.asked != 1 || time.Since(begin) > takes+2*hostsTime {
						t.Errorf("after %v: got listing %d of %d, %v; want the first and only one", time.Since(begin), hours, l.asked, err)
					}
				})
			})
		}
	}
}

func TestHostsThatNobodyLookedAtForLongAreListedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &landlord{takes: hostsTime + 1}
		d := newDesk(t, l, time.Minute)
		d.wantError(hostsTime, unanswered)
		l.takes = 0
		<-time.After(time.Hour)
		d.wantHours(2)
		d.wantHours(2)
	})
}

func TestAFailureToListHostsIsThatOfAllForAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &landlord{takes: time.Second, err: &cloud.Error{Kind: cloud.Rejected, Op: "list hosts", Detail: "not now"}}
		d := newDesk(t, l, time.Minute)
		d.wantError(time.Second, "not now")
		<-time.After(time.Minute - 1)
		d.wantError(0, "not now")
		l.err = nil
		<-time.After(1)
		d.wantHours(2)
	})
}

func TestAFailureAfterALongTimeIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &landlord{takes: hostsTime + 1, err: &cloud.Error{Kind: cloud.Rejected, Op: "list hosts", Detail: "not now"}}
		d := newDesk(t, l, time.Minute)
		d.wantError(hostsTime, unanswered)
		l.takes = time.Second
		<-time.After(hostsTime)
		d.wantError(time.Second, "not now")
		<-time.After(time.Minute - 1)
		d.wantError(0, "not now")
	})
}
