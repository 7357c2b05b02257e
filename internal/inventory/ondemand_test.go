package inventory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/internal/cloud"
)

// counter lists its number of calls. Each call takes a while on synctest's clock.
type counter struct {
	takes time.Duration
	calls int
	err   error
}

func (c *counter) list(context.Context) ([]int, error) {
	<-time.After(c.takes)
	c.calls++
	return []int{c.calls}, c.err
}

// query asks for a listing begun at or after notBefore. Failures are kept for a minute.
func (c *counter) query(notBefore time.Time) listQuery[int] {
	return listQuery[int]{notBefore: notBefore, list: c.list, failureTTL: time.Minute}
}

// answer is what get returned, and after which time.
type answer struct {
	Item int
	// Begun and Took are relative to the call of get.
	Begun, Took time.Duration
	Err         error
}

func ask(ctx context.Context, l *onDemandList[int], query listQuery[int]) answer {
	asked := time.Now()
	got, err := l.get(ctx, query)
	if err != nil {
		return answer{Took: time.Since(asked), Err: err}
	}
	return answer{Item: got.items[0], Begun: got.begun.Sub(asked), Took: time.Since(asked)}
}

func wantAnswer(t *testing.T, want, got answer) {
	t.Helper()
	if !errors.Is(got.Err, want.Err) {
		t.Errorf("get failed with %v, want %v", got.Err, want.Err)
	}
	want.Err, got.Err = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}

var errDown = &cloud.Error{Kind: cloud.Unavailable, Op: "list", Detail: "connection refused"}

func TestOnDemandListCallsOnlyForWhatItDoesNotHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		l, c := newOnDemandList[int](time.Now), &counter{takes: time.Hour}
		get := func(notBefore time.Time) (int, time.Duration) {
			t.Helper()
			got, err := l.get(t.Context(), c.query(notBefore))
			if err != nil {
				t.Fatal(err)
			}
			return got.items[0], got.begun.Sub(start)
		}
		type answer struct {
			Item  int
			Begun time.Duration
		}
		var got []answer
		for _, notBefore := range []time.Duration{0, 0, time.Minute, 30 * time.Minute, 100 * time.Hour} {
			item, begun := get(start.Add(notBefore))
			got = append(got, answer{item, begun})
		}
		want := []answer{{1, 0}, {1, 0}, {2, time.Hour}, {2, time.Hour}, {3, 2 * time.Hour}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
	})
}

func TestOnDemandListSharesOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		l, c := newOnDemandList[int](time.Now), &counter{takes: time.Hour}
		answers := make(chan int, 11)
		get := func(notBefore time.Time) {
			got, err := l.get(t.Context(), c.query(notBefore))
			if err != nil {
				t.Error(err)
			}
			answers <- got.items[0]
		}
		for range 10 {
			go get(start)
		}
		synctest.Wait()
		go get(start.Add(time.Second)) // the call under way was begun too early for this caller
		got := map[int]int{}
		for range 11 {
			got[<-answers]++
		}
		if diff := cmp.Diff(map[int]int{1: 10, 2: 1}, got); diff != "" {
			t.Errorf("answers by listing (-want +got):\n%s", diff)
		}
	})
}

func TestOnDemandListDoesNotHoldAFailedListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newOnDemandList[int](time.Now), &counter{takes: time.Hour, err: errors.New("no cloud error")}
		wantAnswer(t, answer{Err: c.err, Took: time.Hour}, ask(t.Context(), l, c.query(time.Time{})))
		c.err = nil
		wantAnswer(t, answer{Item: 2, Took: time.Hour}, ask(t.Context(), l, c.query(time.Time{})))
	})
}

func TestOnDemandListGoesOnWhenOneCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newOnDemandList[int](time.Now), &counter{takes: time.Hour}
		hurried, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		gaveUp := make(chan error, 1)
		go func() {
			_, err := l.get(hurried, c.query(time.Time{}))
			gaveUp <- err
		}()
		synctest.Wait()
		wantAnswer(t, answer{Item: 1, Took: time.Hour}, ask(t.Context(), l, c.query(time.Time{})))
		if err := <-gaveUp; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of its own context", err)
		}
	})
}

func TestOnDemandListKeepsACloudErrorForTheFailureTTL(t *testing.T) {
	tests := []struct {
		name string
		err  error
		kept time.Duration
	}{
		{name: "the cloud asks for nothing: the TTL", err: errDown, kept: time.Minute},
		{name: "the cloud asks for less: the TTL", err: &cloud.Error{Kind: cloud.Throttled, RetryAfter: time.Second}, kept: time.Minute},
		{name: "the cloud asks for more: what it asks for", err: &cloud.Error{Kind: cloud.Throttled, RetryAfter: time.Hour}, kept: time.Hour},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, c := newOnDemandList[int](time.Now), &counter{takes: time.Second, err: tc.err}
				now := func() listQuery[int] { return c.query(time.Now()) }
				wantAnswer(t, answer{Err: tc.err, Took: time.Second}, ask(t.Context(), l, now()))
				<-time.After(tc.kept - 1)
				wantAnswer(t, answer{Err: tc.err}, ask(t.Context(), l, now()))
				<-time.After(1)
				c.err = nil
				wantAnswer(t, answer{Item: 2, Took: time.Second}, ask(t.Context(), l, now()))
			})
		})
	}
}

func TestOnDemandListSharesAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newOnDemandList[int](time.Now), &counter{takes: time.Second, err: errDown}
		start := time.Now()
		answers := make(chan answer, 3)
		for _, notBefore := range []time.Duration{0, 0, time.Millisecond} { // the call is begun too early for the last caller
			go func() { answers <- ask(t.Context(), l, c.query(start.Add(notBefore))) }()
			synctest.Wait()
		}
		for range cap(answers) {
			wantAnswer(t, answer{Err: errDown, Took: time.Second}, <-answers)
		}
		if c.calls != 1 {
			t.Errorf("%d calls, want 1", c.calls)
		}
	})
}

func TestOnDemandListReturnsAListingThatIsNewEnoughDespiteAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newOnDemandList[int](time.Now), &counter{}
		start := time.Now()
		wantAnswer(t, answer{Item: 1}, ask(t.Context(), l, c.query(start)))
		<-time.After(time.Second)
		c.err = errDown
		wantAnswer(t, answer{Err: errDown}, ask(t.Context(), l, c.query(time.Now())))
		wantAnswer(t, answer{Item: 1, Begun: -time.Second}, ask(t.Context(), l, c.query(start)))
	})
}

func TestOnDemandListDoesNotKeepTheEndOfACallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newOnDemandList[int](time.Now), &counter{}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		wantAnswer(t, answer{Err: context.Canceled}, ask(ended, l, c.query(time.Now())))
		if c.calls != 0 {
			t.Errorf("%d calls for a caller whose context ended, want 0", c.calls)
		}
		wantAnswer(t, answer{Item: 1}, ask(t.Context(), l, c.query(time.Now())))
	})
}

// impatient asks as query does, and waits for five seconds.
func (c *counter) impatient(notBefore time.Time) listQuery[int] {
	query := c.query(notBefore)
	query.maxWait = 5 * time.Second
	return query
}

func TestOnDemandListDoesNotLetOtherCallersWaitForALateCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newOnDemandList[int](time.Now), &counter{takes: 12 * time.Second}
		get := func(want answer) {
			t.Helper()
			wantAnswer(t, want, ask(t.Context(), l, c.impatient(time.Now())))
		}
		get(answer{Err: ErrNotAnswered, Took: 5 * time.Second})
		get(answer{Err: ErrNotAnswered})
		<-time.After(5*time.Second - 1)
		get(answer{Err: ErrNotAnswered})
		<-time.After(1)
		get(answer{Item: 1, Begun: -10 * time.Second, Took: 2 * time.Second}) // late, and older than asked for
		get(answer{Err: ErrNotAnswered, Took: 5 * time.Second})               // a new call
		<-time.After(c.takes)                                                 // which ends before the test
	})
}

func TestOnDemandListAcceptsALateListingForALimitedTime(t *testing.T) {
	tests := []struct {
		name  string
		after time.Duration
		want  answer
	}{
		{name: "as soon as it is there: accepted", after: time.Second, want: answer{Item: 1, Begun: -6 * time.Second}},
		{name: "within the failure TTL: accepted", after: 70*time.Second - 1, want: answer{Item: 1, Begun: -75*time.Second + 1}},
		{name: "later: listed again", after: 70 * time.Second, want: answer{Item: 2}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, c := newOnDemandList[int](time.Now), &counter{takes: 5*time.Second + 1}
				wantAnswer(t, answer{Err: ErrNotAnswered, Took: 5 * time.Second}, ask(t.Context(), l, c.impatient(time.Now())))
				synctest.Wait()
				c.takes = 0
				<-time.After(tc.after)
				wantAnswer(t, tc.want, ask(t.Context(), l, c.impatient(time.Now())))
			})
		})
	}
}

func TestOnDemandListDoesNotKeepAFailureThatNobodyWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newOnDemandList[int](time.Now), &counter{takes: 6 * time.Second, err: errDown}
		wantAnswer(t, answer{Err: ErrNotAnswered, Took: 5 * time.Second}, ask(t.Context(), l, c.impatient(time.Now())))
		<-time.After(5 * time.Second)
		synctest.Wait()
		c.takes, c.err = time.Second, nil
		wantAnswer(t, answer{Item: 2, Took: time.Second}, ask(t.Context(), l, c.impatient(time.Now())))
	})
}

func TestOnDemandListReturnsTheEndOfACallersContextBeforeMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := newOnDemandList[int](time.Now), &counter{takes: 5 * time.Second}
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantAnswer(t, answer{Err: context.DeadlineExceeded, Took: time.Second}, ask(hurried, l, c.impatient(time.Now())))
		wantAnswer(t, answer{Item: 1, Took: 4 * time.Second, Begun: -time.Second}, ask(t.Context(), l, c.impatient(time.Now().Add(-time.Second))))
	})
}
