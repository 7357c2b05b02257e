package probe

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// guests are the ports of a network in memory.
type guests struct {
	mu sync.Mutex
	// answers are how dials of an address end; one without is open.
	answers map[netip.AddrPort]func(ctx context.Context) error
	// dials are when each address was dialled, since the begin.
	dials map[netip.AddrPort][]time.Duration
	begun time.Time
	// now and most are how many are dialled at a time.
	now, most int
}

func (g *guests) dial(ctx context.Context, address netip.AddrPort) error {
	g.mu.Lock()
	g.dials[address] = append(g.dials[address], time.Since(g.begun))
	g.now++
	g.most = max(g.most, g.now)
	answer := g.answers[address]
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.now--
		g.mu.Unlock()
	}()
	if answer == nil {
		return nil
	}
	return answer(ctx)
}

func (g *guests) set(address netip.AddrPort, answer func(context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers[address] = answer
}

func (g *guests) dialled(address netip.AddrPort) []time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.dials[address])
}

func refuse(context.Context) error { return syscall.ECONNREFUSED }

func ignore(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// bench is a Prober that runs, in a bubble where the time is simulated.
type bench struct {
	*testing.T
	*Prober

	guests  *guests
	mu      sync.Mutex
	changed []string
}

// inBubble runs a test with a Prober that may dial 10.0.0.0/8.
func inBubble(t *testing.T, test func(b *bench)) {
	t.Helper()
	inBubbleExcept(t, func(b *bench, e *Exclusion) {
		e.MarkComplete()
		test(b)
	})
}

// inBubbleExcept does so with an Exclusion, which is not complete.
func inBubbleExcept(t *testing.T, test func(b *bench, e *Exclusion)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := NewExclusion()
		g := &guests{answers: map[netip.AddrPort]func(context.Context) error{}, dials: map[netip.AddrPort][]time.Duration{}, begun: time.Now()}
		b := &bench{T: t, guests: g, Prober: New(Options{Networks: mustParse(t, "10.0.0.0/8").Except(e), Dial: g.dial})}
		b.Subscribe(func(k Key) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.changed = append(b.changed, k.Name)
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- b.Start(ctx) }()
		test(b, e)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Start: %v", err)
		}
	})
}

// pass lets time pass.
func (b *bench) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (b *bench) wantChanges(names ...string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.changed, names) {
		b.Errorf("changes of %v, want %v", b.changed, names)
	}
	b.changed = nil
}

func (b *bench) wantState(uid string, want State) {
	b.Helper()
	if got := b.State(uid); got != want {
		b.Errorf("state of %s: %v %s, want %v %s", uid, got.Address, got.Result, want.Address, want.Result)
	}
}

func key(name string) Key { return Key{UID: name, Namespace: "ns", Name: name} }

func at(address string) Target {
	return Target{Address: netip.MustParseAddrPort(address), Period: 10 * time.Second, Timeout: 3 * time.Second, FailureThreshold: 3}
}

func TestTargetIsDialledOnceAPeriod(t *testing.T) {
	inBubble(t, func(b *bench) {
		target := at("10.0.0.5:22")
		b.Watch(key("a"), target, Unknown)
		b.pass(0)
		b.wantState("a", State{target.Address, Open})
		b.wantChanges("a")
		b.pass(time.Minute)
		b.wantChanges()
		dials := b.guests.dialled(target.Address)
		if dials[0] != 0 {
			b.Errorf("first dial after %s, want at once", dials[0])
		}
		for i := 1; i < len(dials); i++ {
			if gap := dials[i] - dials[i-1]; gap < 10*time.Second || gap > 11*time.Second {
				b.Errorf("%s between two dials, want 10 to 11 s", gap)
			}
		}
		if len(dials) < 6 || len(dials) > 7 {
			b.Errorf("%d dials in a minute, want 6 or 7", len(dials))
		}
	})
}

func TestChangeIsReportedAfterTheThreshold(t *testing.T) {
	inBubble(t, func(b *bench) {
		target := at("10.0.0.5:22")
		b.Watch(key("a"), target, Unknown)
		b.pass(0)
		b.wantChanges("a")
		b.guests.set(target.Address, refuse)
		b.pass(25 * time.Second)
		b.wantState("a", State{target.Address, Open})
		b.pass(10 * time.Second)
		b.wantState("a", State{target.Address, Refused})
		b.wantChanges("a")
		b.guests.set(target.Address, nil)
		b.pass(11 * time.Second)
		b.wantState("a", State{target.Address, Open})
		b.wantChanges("a")
	})
}

func TestDialEndsAfterItsTimeout(t *testing.T) {
	inBubble(t, func(b *bench) {
		target := at("10.0.0.5:22")
		b.guests.set(target.Address, ignore)
		b.Watch(key("a"), target, Unknown)
		b.pass(2900 * time.Millisecond)
		b.wantState("a", State{})
		b.pass(200 * time.Millisecond)
		b.wantState("a", State{target.Address, NoAnswer})
	})
}

func TestRecordIsKeptUntilTheFirstResult(t *testing.T) {
	inBubble(t, func(b *bench) {
		open, refused := at("10.0.0.5:22"), at("10.0.0.6:22")
		b.guests.set(refused.Address, refuse)
		b.Watch(key("open"), open, Open)
		b.Watch(key("refused"), refused, Open)
		b.wantState("open", State{})
		b.pass(11 * time.Second)
		b.wantState("open", State{open.Address, Open})
		b.wantState("refused", State{refused.Address, Open}) // below the threshold
		b.wantChanges()
		b.pass(24 * time.Second)
		b.wantState("refused", State{refused.Address, Refused})
		b.wantChanges("refused")
	})
}

func TestRecordThatIsRemovedBeforeTheFirstResult(t *testing.T) {
	inBubble(t, func(b *bench) {
		target := at("10.0.0.5:22")
		target.Period = time.Hour
		b.Watch(key("a"), target, Open)
		b.pass(0)
		b.Watch(key("a"), target, Unknown)
		b.pass(0)
		b.wantState("a", State{target.Address, Open})
		b.wantChanges("a")
	})
}

func TestPortThatFlapsIsReportedSeldom(t *testing.T) {
	inBubble(t, func(b *bench) {
		target := at("10.0.0.5:22")
		target.Period, target.FailureThreshold = 5*time.Second, 1
		dials := 0
		b.guests.set(target.Address, func(context.Context) error {
			dials++
			if dials%2 == 0 {
				return syscall.ECONNREFUSED
			}
			return nil
		})
		b.Watch(key("a"), target, Unknown)
		b.pass(time.Hour)
		b.mu.Lock()
		defer b.mu.Unlock()
		const most = 2*(burst+int(time.Hour/interval)) + 1 // of about 700
		if n := len(b.changed); n < most/2 || n > most {
			b.Errorf("%d changes in an hour, want %d at most", n, most)
		}
	})
}

func TestShorterPeriodBeginsAtOnce(t *testing.T) {
	inBubble(t, func(b *bench) {
		target := at("10.0.0.5:22")
		target.Period = time.Hour
		b.Watch(key("a"), target, Unknown)
		b.pass(0)
		target.Period = 5 * time.Second
		b.Watch(key("a"), target, Open)
		b.pass(5 * time.Second)
		if n := len(b.guests.dialled(target.Address)); n != 2 {
			b.Errorf("%d dials, want the second one period after the change", n)
		}
		b.wantChanges("a")
	})
}

func TestForgottenTargetIsNotDialled(t *testing.T) {
	inBubble(t, func(b *bench) {
		waiting, dialled := at("10.0.0.5:22"), at("10.0.0.6:22")
		b.guests.set(dialled.Address, ignore)
		b.Watch(key("waiting"), waiting, Unknown)
		b.Watch(key("dialled"), dialled, Unknown)
		b.pass(0)
		b.wantChanges("waiting")
		b.Forget("waiting")
		b.Forget("dialled")
		b.Forget("never watched")
		b.pass(time.Minute)
		b.wantChanges()
		for _, target := range []Target{waiting, dialled} {
			if n := len(b.guests.dialled(target.Address)); n != 1 {
				b.Errorf("%d dials of %s, want those before it was forgotten", n, target.Address)
			}
		}
		if len(b.entries) > 0 || len(b.schedule.lanes) > 0 {
			b.Errorf("forgotten targets are kept: %v, %v", b.entries, b.schedule.lanes)
		}
	})
}

func TestDialsAreBounded(t *testing.T) {
	inBubble(t, func(b *bench) {
		const targets = 4 * MaxInFlight
		for i := range targets {
			target := at(fmt.Sprintf("10.0.%d.%d:22", i/256, i%256))
			b.guests.set(target.Address, ignore)
			b.Watch(Key{UID: fmt.Sprint(i), Namespace: fmt.Sprint(i % 2)}, target, Unknown)
		}
		b.pass(time.Minute)
		if b.guests.most != MaxInFlight {
			b.Errorf("%d dials at a time, want %d", b.guests.most, MaxInFlight)
		}
		// Four rounds of 3 s take longer than the period, which is stretched alike for all.
		for address, dials := range b.guests.dials {
			if len(dials) < 4 || len(dials) > 6 {
				b.Errorf("%s was dialled %d times in a minute, want 4 to 6", address, len(dials))
			}
		}
	})
}

func TestNamespaceWithoutAnswersDelaysNoOther(t *testing.T) {
	inBubble(t, func(b *bench) {
		for i := range 100 * MaxInFlight {
			target := at(fmt.Sprintf("10.1.%d.%d:22", i/256, i%256))
			target.Timeout = 30 * time.Second
			b.guests.set(target.Address, ignore)
			b.Watch(Key{UID: fmt.Sprint(i), Namespace: "silent", Name: "x"}, target, Unknown)
		}
		b.pass(20 * time.Second)
		target := at("10.0.0.5:22")
		b.Watch(key("a"), target, Unknown)
		b.pass(10 * time.Second)
		b.wantState("a", State{target.Address, Open})
		b.pass(10 * time.Minute)
		if n := len(b.guests.dialled(target.Address)); n < 50 {
			b.Errorf("%d dials in ten minutes, want about one in ten seconds, its period", n)
		}
		if b.guests.most > maxOfNamespace+1 {
			b.Errorf("%d dials at a time, want %d of the other namespace at the most", b.guests.most, maxOfNamespace)
		}
	})
}

func TestMetricsOfProbes(t *testing.T) {
	inBubble(t, func(b *bench) {
		registry := prometheus.NewRegistry()
		b.metrics = NewMetrics(registry)
		b.guests.set(at("10.0.0.6:22").Address, refuse)
		b.Watch(key("a"), at("10.0.0.5:22"), Unknown)
		b.Watch(key("b"), at("10.0.0.6:22"), Unknown)
		b.pass(time.Second)
		for metric, want := range map[prometheus.Collector]float64{
			b.metrics.targets:                              2,
			b.metrics.excluded:                             0,
			b.metrics.results.WithLabelValues("open"):      1,
			b.metrics.results.WithLabelValues("refused"):   1,
			b.metrics.results.WithLabelValues("no_answer"): 0,
			b.metrics.results.WithLabelValues("error"):     0,
		} {
			if got := testutil.ToFloat64(metric); got != want {
				b.Errorf("%v is %v, want %v", metric, got, want)
			}
		}
		if n := testutil.CollectAndCount(b.metrics.delay); n != 1 {
			b.Errorf("%d histograms of delays, want 1", n)
		}
		b.Forget("a")
		if got := testutil.ToFloat64(b.metrics.targets); got != 1 {
			b.Errorf("%v targets, want 1", got)
		}
	})
}
