package gpuinfo

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

// clocks are the wall clock and the monotonic one of a process that observes a
// GPUInfo with a reservation from noon for ten hours.
type clocks struct {
	wall    time.Time
	elapsed time.Duration
	ends    *ends
	gpu     *pcapi.GPUInfo
}

// startAt returns the clocks of a process that starts at a time.
func startAt(wall time.Time) *clocks {
	c := &clocks{wall: wall, gpu: asking(holding("n1", 0))}
	c.restart()
	return c
}

// restart begins to observe with an empty memory.
func (c *clocks) restart() {
	c.ends = newEnds(func() time.Duration { return c.elapsed })
	c.observe()
}

func (c *clocks) observe() { c.ends.observe(c.gpu, c.wall) }

// pass lets time go by on both clocks.
func (c *clocks) pass(d time.Duration) {
	c.wall, c.elapsed = c.wall.Add(d), c.elapsed+d
}

// set sets the wall clock forward, or back.
func (c *clocks) set(d time.Duration) { c.wall = c.wall.Add(d) }

// expired reports whether a reconcile takes the reservation as over.
func (c *clocks) expired() bool {
	obs := world(1, func(s *observation) { s.now, s.extension = c.wall, c.ends.extension(c.gpu, c.wall) })
	return decide(c.gpu, obs).expired
}

func (c *clocks) want(t *testing.T, expired bool, when string) {
	t.Helper()
	if got := c.expired(); got != expired {
		t.Errorf("%s: expired %t, want %t", when, got, expired)
	}
}

func TestReservationEndsByBothClocks(t *testing.T) {
	const years = 30 * 365 * 24 * time.Hour
	for name, play := range map[string]func(*testing.T){
		"the clocks agree: it ends at its recorded end": func(t *testing.T) {
			c := startAt(noon)
			c.pass(10*time.Hour - time.Second)
			c.want(t, false, "a second before the end")
			c.pass(time.Second)
			c.want(t, true, "at the end")
		},
		"the wall clock is set forward: it ends once its hours have passed": func(t *testing.T) {
			c := startAt(noon)
			c.pass(time.Hour)
			c.set(20 * time.Hour)
			c.want(t, false, "after the jump")
			c.observe()
			c.pass(9*time.Hour - time.Second)
			c.want(t, false, "a second before its hours have passed")
			c.pass(time.Second)
			c.want(t, true, "after its hours")
		},
		"the wall clock is set forward by years: nothing ends": func(t *testing.T) {
			c := startAt(noon)
			c.set(years)
			c.want(t, false, "after the jump")
		},
		"the wall clock is set forward and back: it ends at its recorded end": func(t *testing.T) {
			c := startAt(noon)
			c.set(20 * time.Hour)
			c.want(t, false, "after the jump")
			c.pass(time.Hour)
			c.set(-20 * time.Hour)
			c.want(t, false, "after the correction")
			c.pass(9 * time.Hour)
			c.want(t, true, "at the end")
		},
		"it was over at the start of the process: it ends at the second look": func(t *testing.T) {
			c := startAt(noon.Add(11 * time.Hour))
			c.want(t, false, "at the first look")
			c.pass(confirmAfter - time.Nanosecond)
			c.want(t, false, "before the second look")
			c.pass(time.Nanosecond)
			c.want(t, true, "at the second look")
		},
		"the wall clock is ahead at the start and corrected before the second look: it stays": func(t *testing.T) {
			c := startAt(noon.Add(11 * time.Hour))
			c.pass(confirmAfter / 2)
			c.set(-5 * time.Hour)
			c.pass(confirmAfter)
			c.want(t, false, "after the correction")
			c.pass(4 * time.Hour)
			c.want(t, true, "at its recorded end")
		},
		"the process restarts after a jump: it lasts until the second look": func(t *testing.T) {
			c := startAt(noon)
			c.set(20 * time.Hour)
			c.restart()
			c.want(t, false, "after the restart")
			c.pass(confirmAfter)
			c.want(t, true, "at the second look")
		},
		"the process restarts before the end: it ends at its recorded end": func(t *testing.T) {
			c := startAt(noon)
			for range 9 {
				c.pass(time.Hour)
				c.restart()
			}
			c.want(t, false, "an hour before the end")
			c.pass(time.Hour)
			c.want(t, true, "at the end")
		},
		"the wall clock is years behind at the start: it lasts for its whole length at most": func(t *testing.T) {
			c := startAt(noon.Add(-years))
			c.set(years + 11*time.Hour)
			c.want(t, false, "after the correction")
			c.pass(10 * time.Hour)
			c.want(t, true, "after its whole length")
		},
		"the wall clock is set back: it ends at its recorded end": func(t *testing.T) {
			c := startAt(noon)
			c.pass(9 * time.Hour)
			c.set(-2 * time.Hour)
			c.pass(3*time.Hour - time.Second)
			c.want(t, false, "a second before the recorded end")
			c.pass(time.Second)
			c.want(t, true, "at the recorded end")
		},
		"its event is not handled yet: as the wall clock says": func(t *testing.T) {
			c := startAt(noon)
			c.ends = newEnds(func() time.Duration { return c.elapsed })
			c.want(t, false, "before the end")
			c.set(20 * time.Hour)
			c.want(t, false, "over at the first look")
		},
		"it is made anew after a jump: the new one lasts for its hours": func(t *testing.T) {
			c := startAt(noon)
			c.set(20 * time.Hour)
			c.gpu.Status.Reservation.Since = metav1.NewTime(c.wall)
			c.gpu.Status.Reservation.Until = metav1.NewTime(c.wall.Add(10 * time.Hour))
			c.want(t, false, "before its event")
			c.observe()
			c.pass(10*time.Hour - time.Second)
			c.want(t, false, "a second before the end")
			c.pass(time.Second)
			c.want(t, true, "at the end")
		},
	} {
		t.Run(name, play)
	}
}

func TestJumpOfTheClockDoesNotFreeTheHoursOfOthers(t *testing.T) {
	c := startAt(noon)
	c.set(20 * time.Hour)
	other := asking(called("other"))
	k := &kind{client: &reader{items: []pcapi.GPUInfo{*c.gpu}}, ends: c.ends}
	obs := world(1, hostIs("h1", true, 10), func(s *observation) { s.now = c.wall })
	if err := k.observeClaims(t.Context(), other, obs); err != nil {
		t.Fatal(err)
	}
	if d := decide(other, obs); d.chosen != nil {
		t.Errorf("%s was reserved twice: %+v", d.chosen.host, d.reservation)
	}
}

func TestReportRequeuesAtTheEndByTheMonotonicClock(t *testing.T) {
	ahead := func(s *observation) { s.now, s.extension = noon.Add(20*time.Hour), 12*time.Hour } // noon is an hour after it began
	for name, test := range map[string]struct {
		obs  *observation
		node string
		want time.Duration
	}{
		"the choice is kept":                          {world(1, ahead), "n1", time.Hour},
		"the cloud is unavailable":                    {world(1, ahead, away), "n1", time.Hour},
		"another is chosen: it has hours of its own":  {world(2, ahead, nodeIs(1, func(n *node) { n.cordoned = true })), "n2", 10 * time.Hour},
		"the clocks agree: the recorded end is used":  {world(1), "n1", 9 * time.Hour},
		"the cloud is unavailable, the clocks agree":  {world(1, away), "n1", 9 * time.Hour},
		"the Cloud is gone: the outcome requeues too": {world(1, ahead, away, func(s *observation) { s.cloudless = true }), "n1", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			gpu := asking(reported)
			summary := reconcileOnce(t, gpu, test.obs)
			if gpu.Status.SuitableNodeName != test.node || gpu.Status.ExpiredGeneration != 0 {
				t.Errorf("node %q, expired generation %d; want node %q", gpu.Status.SuitableNodeName, gpu.Status.ExpiredGeneration, test.node)
			}
			if summary.RequeueAfter != test.want {
				t.Errorf("reconciled again after %v, want %v", summary.RequeueAfter, test.want)
			}
		})
	}
}

func TestEndsOfReservationsAreForgotten(t *testing.T) {
	held, without := asking(holding("n1", 0)), asking()
	clock := func() time.Time { return noon }
	for name, then := range map[string]func(*ends){
		"the reservation ends": func(e *ends) {
			e.follow(clock).Update(t.Context(), event.UpdateEvent{ObjectOld: held, ObjectNew: without}, nil)
		},
		"the GPUInfo is deleted": func(e *ends) { e.follow(clock).Delete(t.Context(), event.DeleteEvent{Object: held}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnds(func() time.Duration { return 0 })
			e.follow(clock).Create(t.Context(), event.CreateEvent{Object: without}, nil)
			e.follow(clock).Update(t.Context(), event.UpdateEvent{ObjectOld: without, ObjectNew: held}, nil)
			if len(e.known) != 1 {
				t.Fatalf("%d ends are known, want 1", len(e.known))
			}
			then(e)
			if diff := cmp.Diff(0, len(e.known)); diff != "" {
				t.Errorf("ends (-want +got):\n%s", diff)
			}
		})
	}
}
