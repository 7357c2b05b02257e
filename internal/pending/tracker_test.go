package pending

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var start = time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC)

func TestUnknownSince(t *testing.T) {
	began := start
	tests := []struct {
		name string
		do   func(*Tracker)
		want time.Time
	}{
		{name: "no record: any create was sent before this process started", do: func(*Tracker) {}, want: began},
		{name: "two creates: the last one counts", do: func(c *Tracker) { c.Unknown("a", began.Add(time.Minute)); c.Unknown("a", began.Add(time.Hour)) }, want: began.Add(time.Hour)},
		{name: "an answered create that is not on record yet counts: a listing may lag behind it", do: func(c *Tracker) { c.Created("a", "s1", began.Add(time.Minute)) }, want: began.Add(time.Minute)},
		{name: "a create of another object does not count", do: func(c *Tracker) { c.Unknown("b", began.Add(time.Hour)) }, want: began},
		{name: "a forgotten create does not count", do: func(c *Tracker) { c.Unknown("a", began.Add(time.Hour)); c.Forget("a") }, want: began},
		{name: "a refused create cannot take effect", do: func(c *Tracker) { c.Refused("a") }},
		{name: "a create sent after a refused one counts", do: func(c *Tracker) { c.Refused("a"); c.Unknown("a", began.Add(time.Hour)) }, want: began.Add(time.Hour)},
		{name: "a clock that was set back: the start of this process counts", do: func(c *Tracker) { c.Unknown("a", began.Add(-time.Hour)) }, want: began},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := NewTracker()
			tc.do(c)
			if got := c.UnknownSince("a", began); !got.Equal(tc.want) {
				t.Errorf("unknown since %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCreatedIDReturnsIDOfCreate(t *testing.T) {
	type answer struct {
		ID    string
		Known bool
	}
	c := NewTracker()
	made := func() answer {
		id, known := c.CreatedID("a")
		return answer{id, known}
	}
	c.Unknown("a", start)
	want := func(when string, want answer) {
		t.Helper()
		if got := made(); got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	want("before the answer", answer{})
	c.Created("a", "s1", start)
	want("after the answer", answer{"s1", true})
	c.DeletedSince("a", start)
	c.Refused("a")
	c.Forget("a")
	want("after the id is recorded", answer{})
	if c.Len() != 0 {
		t.Errorf("%d records, want none", c.Len())
	}
}

func TestDeletedSinceReturnsTheFirstObservation(t *testing.T) {
	m := NewTracker()
	for _, now := range []time.Time{start, start.Add(time.Hour)} {
		if got := m.DeletedSince("a", now); !got.Equal(start) {
			t.Errorf("at %v: deleted since %v, want %v", now, got, start)
		}
	}
}

// TestTrackerConcurrently finds data races; run it with -race.
func TestTrackerConcurrently(*testing.T) {
	m := NewTracker()
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			uid := types.UID(fmt.Sprint(n % 2))
			for range 200 {
				m.Unknown(uid, start)
				m.Created(uid, "s1", start)
				m.CreatedID(uid)
				m.UnknownSince(uid, start)
				m.DeletedSince(uid, start)
				m.Refused(uid)
				m.Forget(uid)
			}
		})
	}
	group.Wait()
}
