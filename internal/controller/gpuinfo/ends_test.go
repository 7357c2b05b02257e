package gpuinfo

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/controller"
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

// happening is what happens to the clocks, or what a reconcile finds.
type happening func(*testing.T, *clocks)

// later lets time go by, jump sets the wall clock, forward or back.
func later(d time.Duration) happening { return func(_ *testing.T, c *clocks) { c.pass(d) } }
func jump(d time.Duration) happening  { return func(_ *testing.T, c *clocks) { c.set(d) } }

func restart(_ *testing.T, c *clocks) { c.restart() }
func observe(_ *testing.T, c *clocks) { c.observe() }

// lasts and over check whether a reconcile takes the reservation as over.
func lasts(when string) happening { return expires(false, when) }
func over(when string) happening  { return expires(true, when) }

func expires(want bool, when string) happening {
	return func(t *testing.T, c *clocks) {
		t.Helper()
		if got := c.expired(); got != want {
			t.Errorf("%s: expired %t, want %t", when, got, want)
		}
	}
}

// endsAfter lets time go by and checks that the reservation ends then, and not a moment before.
func endsAfter(d, moment time.Duration, when string) happening {
	return func(t *testing.T, c *clocks) {
		t.Helper()
		for _, then := range []happening{later(d - moment), lasts("a moment before: " + when), later(moment), over(when)} {
			then(t, c)
		}
	}
}

func TestReservationEndsByBothClocks(t *testing.T) {
	const years = 30 * 365 * 24 * time.Hour
	for name, test := range map[string]struct {
		start time.Time
		then  []happening
	}{
		"the clocks agree: it ends at its recorded end": {noon, []happening{
			endsAfter(10*time.Hour, time.Second, "at the end"),
		}},
		"the wall clock is set forward: it ends once its hours have passed": {noon, []happening{
			later(time.Hour), jump(20 * time.Hour), lasts("after the jump"),
			observe, endsAfter(9*time.Hour, time.Second, "after its hours"),
		}},
		"the wall clock is set forward by years: nothing ends": {noon, []happening{
			jump(years), lasts("after the jump"),
		}},
		"the wall clock is set forward and back: it ends at its recorded end": {noon, []happening{
			jump(20 * time.Hour), lasts("after the jump"),
			later(time.Hour), jump(-20 * time.Hour), lasts("after the correction"),
			later(9 * time.Hour), over("at the end"),
		}},
		"it was over at the start of the process: it ends at the second look": {noon.Add(11 * time.Hour), []happening{
			lasts("at the first look"), endsAfter(confirmAfter, time.Nanosecond, "at the second look"),
		}},
		"the wall clock is ahead at the start and corrected before the second look: it stays": {noon.Add(11 * time.Hour), []happening{
			later(confirmAfter / 2), jump(-5 * time.Hour), later(confirmAfter), lasts("after the correction"),
			later(4 * time.Hour), over("at its recorded end"),
		}},
		"the process restarts after a jump: it lasts until the second look": {noon, []happening{
			jump(20 * time.Hour), restart, lasts("after the restart"), later(confirmAfter), over("at the second look"),
		}},
		"the process restarts before the end: it ends at its recorded end": {noon, append(
			slices.Repeat([]happening{later(time.Hour), restart}, 9),
			lasts("an hour before the end"), later(time.Hour), over("at the end"),
		)},
		"the wall clock is years behind at the start: it lasts for its whole length at most": {noon.Add(-years), []happening{
			jump(years + 11*time.Hour), lasts("after the correction"), later(10 * time.Hour), over("after its whole length"),
		}},
		"the wall clock is set back: it ends at its recorded end": {noon, []happening{
			later(9 * time.Hour), jump(-2 * time.Hour), endsAfter(3*time.Hour, time.Second, "at the recorded end"),
		}},
		"its event is not handled yet: as the wall clock says": {noon, []happening{
			func(_ *testing.T, c *clocks) { c.ends = newEnds(func() time.Duration { return c.elapsed }) },
			lasts("before the end"), jump(20 * time.Hour), lasts("over at the first look"),
		}},
		"it is made anew after a jump: the new one lasts for its hours": {noon, []happening{
			jump(20 * time.Hour),
			func(_ *testing.T, c *clocks) {
				c.gpu.Status.Reservation.Since = metav1.NewTime(c.wall)
				c.gpu.Status.Reservation.Until = metav1.NewTime(c.wall.Add(10 * time.Hour))
			},
			lasts("before its event"), observe, endsAfter(10*time.Hour, time.Second, "at the end"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := startAt(test.start)
			for _, then := range test.then {
				then(t, c)
			}
		})
	}
}

func TestJumpOfTheClockDoesNotFreeTheHoursOfOthers(t *testing.T) {
	c := startAt(noon)
	c.set(20 * time.Hour)
	other := asking(called("other"))
	k := following(t, c, *c.gpu)
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
		"the choice is kept":                         {world(1, ahead), "n1", time.Hour},
		"the cloud is unavailable":                   {world(1, ahead, away), "n1", time.Hour},
		"another is chosen: it has hours of its own": {world(2, ahead, nodeIs(1, func(n *node) { n.cordoned = true })), "n2", 10 * time.Hour},
		"the clocks agree: the recorded end is used": {world(1), "n1", 9 * time.Hour},
		"the cloud is unavailable, the clocks agree": {world(1, away), "n1", 9 * time.Hour},
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
	for name, test := range map[string]struct {
		left []pcapi.GPUInfo
		then func(handler.EventHandler)
	}{
		"the reservation ends": {[]pcapi.GPUInfo{*without}, func(h handler.EventHandler) {
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: held, ObjectNew: without}, immediate{})
		}},
		"the GPUInfo is deleted": {nil, func(h handler.EventHandler) { h.Delete(t.Context(), event.DeleteEvent{Object: held}, immediate{}) }},
		"the GPUInfo is deleted, and another has its name": {[]pcapi.GPUInfo{*asking(func(gpu *pcapi.GPUInfo) { gpu.UID = "new" })}, func(h handler.EventHandler) {
			h.Delete(t.Context(), event.DeleteEvent{Object: held}, immediate{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &reader{items: []pcapi.GPUInfo{*without}}
			k := newKind(s, controller.Options{Clock: func() time.Time { return noon }, Elapsed: func() time.Duration { return 0 }})
			h := k.followReservations(finderOf(t))
			h.Create(t.Context(), event.CreateEvent{Object: without}, nil)
			s.items = []pcapi.GPUInfo{*held}
			h.Update(t.Context(), event.UpdateEvent{ObjectOld: without, ObjectNew: held}, immediate{})
			if len(k.ends.known) != 1 || len(k.claims.held) != 1 {
				t.Fatalf("%d ends and %d claims are known, want 1", len(k.ends.known), len(k.claims.held))
			}
			s.items = test.left
			test.then(h)
			if len(k.ends.known) != 0 || len(k.claims.held) != 0 || len(k.claims.hosts) != 0 {
				t.Errorf("%d ends, %d claims and %d hosts are known, want 0", len(k.ends.known), len(k.claims.held), len(k.claims.hosts))
			}
		})
	}
}
