package creates

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

var dawn = time.Date(2026, 1, 1, 6, 0, 0, 0, time.UTC)

func TestUncertainSince(t *testing.T) {
	began := dawn
	tests := []struct {
		name string
		do   func(*Memory)
		want time.Time
	}{
		{name: "of what an earlier process sent, nothing is known but that it was before this one began", do: func(*Memory) {}, want: began},
		{name: "the create that was sent last counts", do: func(c *Memory) { c.Mark("a", began.Add(time.Minute)); c.Mark("a", began.Add(time.Hour)) }, want: began.Add(time.Hour)},
		{name: "an answer that came is not on record yet: a listing may lag behind it", do: func(c *Memory) { c.Answered("a", "s1", began.Add(time.Minute)) }, want: began.Add(time.Minute)},
		{name: "another's create does not count", do: func(c *Memory) { c.Mark("b", began.Add(time.Hour)) }, want: began},
		{name: "one that is settled does not count", do: func(c *Memory) { c.Mark("a", began.Add(time.Hour)); c.Forget("a") }, want: began},
		{name: "nothing comes of what was refused", do: func(c *Memory) { c.Refused("a") }},
		{name: "but of what was sent after that", do: func(c *Memory) { c.Refused("a"); c.Mark("a", began.Add(time.Hour)) }, want: began.Add(time.Hour)},
		{name: "a clock that was set back makes nothing certain sooner", do: func(c *Memory) { c.Mark("a", began.Add(-time.Hour)) }, want: began},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := New()
			tc.do(c)
			if got := c.UncertainSince("a", began); !got.Equal(tc.want) {
				t.Errorf("uncertain since %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCreatesRememberTheServerThatWasMade(t *testing.T) {
	type answer struct {
		ID    string
		Known bool
	}
	c := New()
	made := func() answer {
		id, known := c.MadeFor("a")
		return answer{id, known}
	}
	c.Mark("a", dawn)
	want := func(when string, want answer) {
		t.Helper()
		if got := made(); got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	want("before an answer came", answer{})
	c.Answered("a", "s1", dawn)
	want("once it came", answer{"s1", true})
	c.DoomedSince("a", dawn)
	c.Refused("a")
	c.Forget("a")
	want("once it is on record", answer{})
	if c.Len() != 0 {
		t.Errorf("%d entries are left behind", c.Len())
	}
}

func TestADeletionIsOldAsWhenItWasFirstSeen(t *testing.T) {
	m := New()
	for _, now := range []time.Time{dawn, dawn.Add(time.Hour)} {
		if got := m.DoomedSince("a", now); !got.Equal(dawn) {
			t.Errorf("at %v: doomed since %v, want %v", now, got, dawn)
		}
	}
}

// TestMemoryAtOnce finds data races; run it with -race.
func TestMemoryAtOnce(*testing.T) {
	m := New()
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			uid := types.UID(fmt.Sprint(n % 2))
			for range 200 {
				m.Mark(uid, dawn)
				m.Answered(uid, "s1", dawn)
				m.MadeFor(uid)
				m.UncertainSince(uid, dawn)
				m.DoomedSince(uid, dawn)
				m.Refused(uid)
				m.Forget(uid)
			}
		})
	}
	group.Wait()
}
